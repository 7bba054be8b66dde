"""What is fuzzed: each target takes bytes and returns, or raises only what its reader promises.

The first byte chooses among the ways in; a payload behind an authenticated envelope, or a file below a manifest of
digests, would otherwise never be reached.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from regionmarker.bulk.job import Job, JobPaths, list_shards, open_storage
from regionmarker.bulk.manifest import Entry, JobFile, KeyLabel, write_manifest
from regionmarker.crypto.envelope import Kind, Opener, UnreadableError, open_envelope
from regionmarker.crypto.secret import Secret
from regionmarker.errors import RegionMarkerError
from regionmarker.evidence.beacon import read_round
from regionmarker.evidence.bundle import MANIFEST, SIGNATURE, SIGNER, manifest_of
from regionmarker.evidence.check import check_evidence
from regionmarker.evidence.statement import read_fields, wanted_round
from regionmarker.evidence.transparency_log import check_log_entry
from regionmarker.gateway.dialects.openapi import DIALECTS
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.upstreams.answer_reader import AnswerReader
from regionmarker.keys.file_format import load_ring, load_serving
from regionmarker.verification.answers import Answers
from regionmarker.verification.ledger import LookLines

GOLDEN = Path(__file__).parents[1] / "golden"
CORPORA = Path(__file__).with_name("corpora")
WIDTHS = (1, 2, 3)  # short vectors: a mutation then hits structure, not numbers


def answer(data: bytes) -> None:
    """An upstream's answer, in one piece and cut in three: both give the same, and never a wrong number of vectors."""
    if len(data) < 4:
        return
    count, width, body = 1 + data[0] % 4, WIDTHS[data[1] % len(WIDTHS)], data[4:]
    cuts = sorted({0, len(body), *(place * len(body) // 255 for place in data[2:4])})
    pieces = [body[start:end] for start, end in pairwise(cuts)]
    whole, cut = (_read_answer(parts, count, width) for parts in ([body], pieces))
    if isinstance(whole, str) or isinstance(cut, str):
        assert isinstance(whole, str) == isinstance(cut, str), (whole, cut)
        return
    assert whole == cut
    assert len(whole) == count


def _read_answer(pieces: list[bytes], count: int, width: int) -> list[bytes] | str:
    reader = AnswerReader(count, width, lambda rows, _first: [row.tobytes() for row in rows])
    try:
        for piece in pieces:
            reader.feed(piece)
        found = reader.finish()
    except ApiError as error:
        return str(error)
    assert reader.tokens is None or reader.tokens >= 0
    return [bytes(vector) for vector in found]


def request(data: bytes) -> None:
    """A client's request, in every dialect."""
    for dialect in DIALECTS:
        try:
            found = dialect.read_request(data)
        except ApiError as error:
            json.loads(dialect.error_body(error))
            continue
        assert found.inputs
        assert all(found.inputs)
        assert found.formats


def key(data: bytes) -> None:
    """A key file: as sealed bytes, as a payload, or as the document of a payload whose arrays are whole."""
    if not data:
        return
    way, rest = data[0] % 5, data[1:]
    try:
        if way == 0:
            open_envelope(rest, Kind.RING, Opener.secret(Secret(bytes(32))))
        elif way < 3:
            (load_ring, load_serving)[way - 1](Secret(rest))
        else:
            opening, arrays = ((load_ring, _arrays("v1.rmkey")), (load_serving, _arrays("v1-serving.rmkey")))[way - 3]
            document = np.frombuffer(rest, dtype=np.uint8)
            opening(Secret(bytes(save({**arrays, "document": document}))))
    except UnreadableError:
        return


@cache
def payload(name: str) -> bytes:
    """What is inside a key file of version 0.1.0."""
    kind = Kind.SERVING if "serving" in name else Kind.RING
    secret = Opener.secret(Secret((GOLDEN / f"{name}.secret").read_bytes()))
    return open_envelope((GOLDEN / name).read_bytes(), kind, secret).reveal()


@cache
def _arrays(name: str) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = load(payload(name))
    del arrays["document"]
    return arrays


def bundle(data: bytes) -> None:
    """A bundle of evidence: as a zip, or one of its files below a manifest that its forger wrote again."""
    if not data:
        return
    files = _bundle_files()
    names = sorted(files)
    way, rest = data[0] % (len(names) + 1), data[1:]
    content = rest if way == 0 else _forged({**files, names[way - 1]: rest}, names[way - 1])
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(content)
        file.flush()
        try:
            report = check_evidence(file.name)
        except RegionMarkerError:
            return
    assert isinstance(report.ok, bool)
    json.dumps(report.to_dict())


@cache
def _bundle_files() -> dict[str, bytes]:
    with zipfile.ZipFile(GOLDEN / "v1-evidence" / "copy-summary.zip") as packed:
        return {name: packed.read(name) for name in packed.namelist() if name not in (SIGNATURE, SIGNER)}


def _forged(files: dict[str, bytes], changed: str) -> bytes:
    if changed != MANIFEST:
        files[MANIFEST] = manifest_of("summary", {name: files[name] for name in files if name != MANIFEST})
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for name, content in files.items():
            target.writestr(name, content)
    return packed.getvalue()


def manifest(data: bytes) -> None:
    """What a bulk job finds written in its folders: an entry, whose job it is, the state of a data set."""
    entry = Entry.from_json(data)
    if entry is not None:
        paths, _ = _job()
        write_manifest(paths, {}, [entry, entry])
    for case in (_belongs, _lists):
        try:
            case(data)
        except RegionMarkerError:
            continue


def _belongs(data: bytes) -> None:
    paths, job = _job()
    paths.target.write(f"{paths.state}/job.json", data)
    JobFile(paths, job, KeyLabel("00" * 8, "ab", None, False)).belongs()


def _lists(data: bytes) -> None:
    source = open_storage("memory://fuzz-listed")
    source.write("set/state.json", data)
    source.write("set/a.arrow", b"")
    list_shards(source)


@cache
def _job() -> tuple[JobPaths, Job]:
    job = Job("memory://fuzz-source", "memory://fuzz-target")
    return JobPaths.of(job), job


def proof(data: bytes) -> None:
    """What vouches for a key: a statement, a beacon's round, an entry on a log, a ledger of looks."""
    if not data:
        return
    way, rest = data[0] % 4, data[1:]
    try:
        if way == 0:
            document = read_fields(rest)
            wanted_round(document, datetime(2026, 1, 2, tzinfo=UTC))
        elif way == 1:
            number, signature = read_round(rest, "round.json")
            assert type(number) is int
            assert isinstance(signature, bytes)
        elif way == 2:
            statement = (CORPORA / "proof" / "statement").read_bytes()[1:]
            entry = check_log_entry(rest, statement, json.loads(statement)["log_key"].encode())
            entry.time.astimezone(UTC)
        else:
            ledger = LookLines(rest, "ledger.jsonl")
            json.dumps(ledger.looks)
            ledger.look("ab", "cd")
    except RegionMarkerError:
        return


def answers(data: bytes) -> None:
    """A file of a suspect's answers; what is read of it is usable, or it is refused."""
    if not data:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"answers.{('jsonl', 'csv')[data[0] % 2]}"
        path.write_bytes(data[1:])
        try:
            found = Answers.from_file(path)
        except RegionMarkerError:
            return
    there = found.vectors[~np.isnan(found.vectors[:, 0])]
    assert np.allclose(np.linalg.norm(there.astype(np.float64), axis=1), 1.0, atol=1e-3)
    assert len(found.digest) == 64


TARGETS: dict[str, Callable[[bytes], None]] = {
    "answer": answer, "request": request, "key": key, "bundle": bundle, "manifest": manifest,
    "proof": proof, "answers": answers,
}  # fmt: skip


def seeds(name: str) -> list[bytes]:
    """Return whole inputs of a target, which need not lie in the repository a second time."""
    if name == "key":
        ring, serving = payload("v1.rmkey"), payload("v1-serving.rmkey")
        documents = [load(whole)["document"].tobytes() for whole in (ring, serving)]
        return [b"\1" + ring[:4096], b"\2" + serving, b"\3" + documents[0], b"\4" + documents[1]]
    if name == "bundle":
        files = _bundle_files()
        whole = (GOLDEN / "v1-evidence" / "copy-summary.zip").read_bytes()
        named = enumerate(sorted(files), start=1)
        return [b"\0" + whole, *(bytes([way]) + files[part] for way, part in named if part != "report.html")]
    return _SEEDS.get(name, [])


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


_ITEM = {"object": "embedding", "index": 0, "embedding": [0.5]}
_ENTRY = json.loads(Entry("a.parquet", "a.npy", 0, "done", None, 1, "1", "ab", 1, "cd", 1, 0, (), None).to_json())
_SEEDS = {
    "answers": [
        b"\0" + _json({"text": "one", "embedding": [0.6, 0.8]}),
        b"\0" + _json({"text": "one", "embedding": "[3, 4]"}) + b"\n" + _json({"text": "two", "embedding": [1, 0]}),
        b'\1text,embedding\none,"[0.6, 0.8]"\n"two, or three","[1, 0]"\n',
    ],
    "answer": [
        b"\0\0\x40\x80" + _json({"data": [_ITEM], "model": "m", "usage": {"prompt_tokens": 3, "total_tokens": 3}}),
        b"\1\1\x10\x90" + _json({"data": [{"index": i, "embedding": "AACAPwAAAAA="} for i in (1, 0)]}),
    ],
    "request": [
        _json({"model": "m", "input": ["one", "two"], "encoding_format": "base64", "dimensions": 8, "user": "u"}),
        _json({"model": "m", "input": [[1, 2], [3]]}),
        _json({"model": "m", "texts": ["one"], "embedding_types": ["int8", "base64"], "input_type": "clustering"}),
        _json({"model": "m", "input": ["one"], "keep_alive": "5m", "options": {}, "truncate": True, "dimensions": 8}),
    ],
    "manifest": [
        _json(_ENTRY),
        _json({"format": 1, "key": {"id": "00" * 8, "commitment": "ab", "public_salt": None, "test": False},
               "settings": Job("a", "b").settings()}),
        _json({"_data_files": [{"filename": "a.arrow"}]}),
    ],
}  # fmt: skip
