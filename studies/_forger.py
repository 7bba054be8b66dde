"""A dishonest claimant: edits every field and every file of a bundle, and signs the result again with the own key.

The claimant holds all of this software: after an edit the page for people is rendered again, so that it says the lie.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import httpx2

from regionmarker.evidence import Signer, check_evidence
from regionmarker.evidence.bundle import MANIFEST, SIGNATURE, SIGNER, UNLISTED, Bundle, manifest_of, read_bundle
from regionmarker.evidence.check import CheckReport
from regionmarker.evidence.check_report import disclosed
from regionmarker.evidence.fields import REPORT, STATEMENT, STATEMENT_LOG, STATEMENT_SIGNATURE, written
from regionmarker.evidence.report import render_report
from regionmarker.evidence.transparency_log import put_on_log

CHECKER = Path(__file__).parents[1] / "checker" / "check_bundle.py"
DOCUMENTS = (".json", ".jsonl")
STRANGE = ("confession.json", "report2.html", "timestamp.tsq", "timestamp.tsr", "own-probes.parquet", "statement.json")
Place = tuple[Any, ...]


@dataclass(frozen=True)
class Edit:
    """One lie: what was done to which field of which file; no field is the whole file."""

    file: str
    field: str
    kind: str
    content: bytes | None  # None removes the file

    def __str__(self) -> str:
        return f"{self.kind} {self.file}:{self.field}"


def edits(bundle: Bundle, *, most_per_list: int = 2) -> Iterator[Edit]:
    """Yield every field changed, dropped and added, and every file replaced, dropped and added."""
    for name in sorted(set(bundle.files) - {MANIFEST, SIGNATURE}):
        whole = bundle.files[name]
        if name.endswith(DOCUMENTS):
            document = bundle.lines(name) if name.endswith(".jsonl") else bundle.json(name)
            yield from _document_edits(name, document, most_per_list)
        yield Edit(name, "", "dropped", None)
        yield Edit(name, "", "grown", whole + b"\n")
        if not whole:  # a transcript of nothing
            continue
        yield Edit(name, "", "emptied", b"")
        middle = len(whole) // 2
        yield Edit(name, "", "flipped", whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    for name in STRANGE:
        if name not in bundle.files:
            yield Edit(name, "", "added", b"{}\n")


def _document_edits(name: str, document: Any, most: int) -> Iterator[Edit]:
    for place, value in _places(document, (), most):
        field = _named(place)
        for kind, other in _others(value):
            yield Edit(name, field, kind, _with(name, document, place, other))
        if isinstance(value, dict):
            yield Edit(name, field, "field added", _with(name, document, place, {**value, "confession": "I did it"}))
        if isinstance(value, list) and value:
            yield Edit(name, field, "last dropped", _with(name, document, place, value[:-1]))
            yield Edit(name, field, "first doubled", _with(name, document, place, [value[0], *value]))
        if place:
            yield Edit(name, field, "field dropped", _without(name, document, place))


def _places(value: Any, place: Place, most: int) -> Iterator[tuple[Place, Any]]:
    yield place, value
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*place, key), most)
    elif isinstance(value, list):
        chosen = sorted({*range(min(most, len(value))), len(value) - 1}) if value else []
        for number in chosen:
            yield from _places(value[number], (*place, number), most)


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield other values: near, far, of another kind."""
    if isinstance(value, bool):
        yield "turned round", not value
        yield "of another kind", int(value)
    elif isinstance(value, int):
        yield "one more", value + 1
        yield "turned round", -value - 1
        yield "of another kind", float(value)
    elif isinstance(value, float):
        yield "halved", value / 2 if value else 0.5
        yield "grown", value * 1.5 + 0.25
        yield "of another kind", round(value)
    elif isinstance(value, str):
        yield "lengthened", value + "0"
        yield "replaced", "0" * len(value) if value.strip("0") else "1" * len(value)
        yield "turned round", value[::-1] if value[::-1] != value else value + "ab"
    elif value is None:
        yield "filled", 1
        yield "worded", "matched"
    if value is not None:
        yield "emptied", None


def _named(place: Place) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


def _with(name: str, document: Any, place: Place, value: Any) -> bytes:
    if not place:
        return _spelled(name, value)
    changed = copy.deepcopy(document)
    _parent(changed, place)[place[-1]] = value
    return _spelled(name, changed)


def _without(name: str, document: Any, place: Place) -> bytes:
    changed = copy.deepcopy(document)
    del _parent(changed, place)[place[-1]]
    return _spelled(name, changed)


def _parent(document: Any, place: Place) -> Any:
    for part in place[:-1]:
        document = document[part]
    return document


def _spelled(name: str, document: Any) -> bytes:
    try:
        return written(name, document)
    except (TypeError, AttributeError):  # no such document can be spelled: the forger writes something
        return json.dumps(document).encode()


class Log(Protocol):
    """A transparency log that takes what it is given."""

    @property
    def transport(self) -> httpx2.MockTransport: ...


def forge(bundle: Bundle, edit: Edit, signer: Signer, place: Path, log: Log | None = None) -> Path:
    """Write the bundle with the lie, its page rendered again, its digests and its signature made to fit.

    A changed statement is signed again, and put on the log at the time of the old one where there is a log.
    """
    files = {name: content for name, content in bundle.files.items() if name not in (MANIFEST, SIGNATURE)}
    files.pop(edit.file, None)
    if edit.content is not None:
        files[edit.file] = edit.content
    if edit.file != SIGNER:
        files[SIGNER] = signer.public_pem
    if edit.file == STATEMENT and edit.content is not None and STATEMENT_SIGNATURE in files:
        files[STATEMENT_SIGNATURE] = signer.sign(edit.content)
        if log is not None:
            files[STATEMENT_LOG] = put_on_log(edit.content, signer, "https://log.example", transport=log.transport)
    seal(files, bundle, signer, place)
    return place


def rendered_again(place: Path, signer: Signer) -> None:
    """Let the page say the lie, where it can be rendered at all."""
    bundle = read_bundle(place)
    try:
        page = render_report(disclosed(bundle)).encode()
    except Exception:  # noqa: BLE001 - a lie that no page can tell
        return
    files = {name: content for name, content in bundle.files.items() if name not in (MANIFEST, SIGNATURE)}
    seal({**files, REPORT: page}, bundle, signer, place)


def seal(files: dict[str, bytes], bundle: Bundle, signer: Signer, place: Path) -> None:
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    listed = {name: content for name, content in files.items() if name not in UNLISTED}
    manifest = manifest_of(bundle.disclosure, listed, bundle.written_by)
    for name, content in {**files, MANIFEST: manifest, SIGNATURE: signer.sign(manifest)}.items():
        (place / name).write_bytes(content)


def verdict_on_lie(bundle: Bundle, edit: Edit, signer: Signer, place: Path, log: Log | None = None) -> CheckReport:
    """Check a lie as the claimant would hand it over: if the page alone gives it away, with another page."""
    report = check_evidence(forge(bundle, edit, signer, place, log))
    if [check.name for check in report.checks if check.fails] == ["report"] and edit.file != REPORT:
        rendered_again(place, signer)
        report = check_evidence(place)
    return report


def is_accepted_lie(report: CheckReport, edit: Edit) -> bool:
    """Whether a lie passed and stands where the output does not say that it is the claimant's word."""
    return report.ok and not any(word.covers(edit.file, edit.field) for word in report.words)


def contradictions(place: Path, report: CheckReport) -> list[str]:
    """Return the names of checks of which the checker without our code says something else than ``evidence check``."""
    ours = {check.name: check.fails for check in report.checks}
    theirs = {name: status == "failed" for name, status, _ in checker().check(place)}
    differing = [name for name in theirs if name in ours and theirs[name] != ours[name]]
    return differing + (["the whole"] if any(theirs.values()) and report.ok else [])


@cache
def checker() -> ModuleType:
    """Load checker/check_bundle.py, which is no part of any package."""
    spec = importlib.util.spec_from_file_location("check_bundle", CHECKER)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(CHECKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sample(found: list[Edit], count: int, seed: int) -> list[Edit]:
    """Choose edits, the same in every run, from all files alike."""
    rng = random.Random(seed)
    by_file: dict[str, list[Edit]] = {}
    for edit in found:
        by_file.setdefault(edit.file, []).append(edit)
    for group in by_file.values():
        rng.shuffle(group)
    chosen: list[Edit] = []
    while len(chosen) < min(count, len(found)):
        for group in by_file.values():
            if group and len(chosen) < count:
                chosen.append(group.pop())
    return chosen
