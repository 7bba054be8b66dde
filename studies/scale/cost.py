"""Processor seconds per million vectors: marking in every way that there is, beside embedding the texts.

    python -m studies.scale.cost --encoders wordllama FOLDER... [--data-dir DIR] [--rate 0.05]

Marking is of vectors of width 1536, wider than those of any encoder measured here, with a graded key: in memory, in
bulk (Parquet files read, marked and written again, with digests) and through the gateway (all that its process does
for a request: HTTP, JSON, base64, marking). Embedding is of texts of two corpora, short ones and long ones, in batches
as the encoders make them. One thread each. ``--rate`` is an example: what an hour of one processor costs, in any
currency.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from studies._study import Command, encoder_spec, markdown, unit_rows
from studies.bulk import speed
from studies.gateway.load import drive, request
from studies.gateway.targets import MODEL, gateway, processor_seconds, stub
from studies.scale._scale import WIDTH, conditions, graded_key

PAGE = "docs/results/scale.md"
MILLION = 1e6
CORPORA = {"sst2": "SST-2", "ag_news": "AG News"}
Costs = dict[str, float]  # what -> processor seconds per million


def in_memory(key: Path, rows: int, rounds: int) -> Costs:
    """Mark arrays: the median of some rounds."""
    from regionmarker import RegionMarker

    marker, vectors = RegionMarker.load(key), unit_rows(rows, WIDTH)
    out = np.empty_like(vectors)
    marker.transform(vectors, out=out)  # compiled, and every page of memory touched
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        marker.transform(vectors, out=out)
        taken.append(time.process_time() - started)
    return {"in memory": float(np.median(taken)) * MILLION / rows}


def in_bulk(key: Path, folder: Path, gigabytes: float, rounds: int, shard_rows: int) -> Costs:
    """Mark Parquet files, and copy them plainly, in turn: medians."""
    options = Namespace(codec="none", width=WIDTH, shard_rows=shard_rows)
    source = speed.make_shards(folder, gigabytes, options, linked=True)
    for suffix in ("", ".secret"):
        (folder / f"key.rmkey{suffix}").hardlink_to(key.with_name(key.name + suffix))
    rows = shard_rows * len(list(source.iterdir()))
    taken: dict[str, list[float]] = {"copy": [], "mark": []}
    for _ in range(rounds):
        for what, found in taken.items():
            run = speed.run(what, source, folder / "out", WIDTH, workers=1 if what == "mark" else None)
            found.append(run["processor_seconds"] * MILLION / rows)
    return {"in bulk": float(np.median(taken["mark"])), "a plain copy of the files": float(np.median(taken["copy"]))}


def through_gateway(key: Path, batches: list[int], seconds: float, rounds: int) -> Costs:
    """Load the gateway with one connection; the processor time of its process: medians."""
    found: dict[str, list[float]] = {}
    with stub() as upstream, gateway(key, upstream) as (port, pid):
        for _ in range(rounds):
            for batch in batches:
                message = request(port, batch, "base64", MODEL)
                drive(port, message, connections=1, seconds=seconds / 5)
                before = processor_seconds(pid)
                run = drive(port, message, connections=1, seconds=seconds)
                each = (processor_seconds(pid) - before) / run.statuses[200] / batch
                found.setdefault(f"through the gateway, batches of {batch}", []).append(each * MILLION)
    return {name: float(np.median(values)) for name, values in found.items()}


def corpora(folder: Path, count: int) -> Iterator[tuple[str, list[str]]]:
    """Give texts of each corpus, drawn once."""
    from regionmarker.parquet import read_columns

    for name, title in CORPORA.items():
        (texts,) = read_columns(folder / f"{name}.parquet", ["text"])
        chosen = np.random.default_rng(1).permutation(len(texts))[:count]
        yield title, [texts[row] for row in chosen]


def embedding(spec: str, folder: Path, count: int) -> Costs:
    """Embed texts of each corpus."""
    from regionmarker import load_encoder

    encoder = load_encoder(encoder_spec(spec), cache=False)
    found = {}
    for title, texts in corpora(folder, count):
        encoder.encode(texts[:4])
        started, done = time.process_time(), 0
        while done < count or time.process_time() - started < 0.5:  # a fast encoder goes round
            encoder.encode(texts)
            done += len(texts)
        found[title] = (time.process_time() - started) * MILLION / done
    return found


def called(spec: str) -> str:
    """Return an encoder's name without its folders."""
    return Path(spec.partition(":")[2] or spec).name


def table(marking: Costs, embedded: dict[str, Costs], rate: float) -> str:
    """Processor seconds and money per million; marking as a share of embedding the longer texts' and the shorter's."""
    titles = [f"{name}, {corpus}" for name, costs in embedded.items() for corpus in costs]
    seconds = [found for costs in embedded.values() for found in costs.values()]
    header = ["per million", "processor s", f"at {rate:g} an hour", *(f"% of {title}" for title in titles)]
    rows = {**dict(zip((f"embedding: {title}" for title in titles), seconds, strict=True)), **marking}
    body = []
    for name, took in rows.items():
        shares = [""] * len(seconds) if name.startswith("embedding") else [_short(took / one * 100) for one in seconds]
        body.append([name, _short(took), _short(took / 3600 * rate), *shares])
    return markdown(header, body)


def _short(value: float) -> str:
    """Two digits that count, or all before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def main() -> None:
    smoke = {"rounds": 1, "rows": 512, "gigabytes": 0.01, "shard_rows": 512, "seconds": 0.2, "batches": [16]}
    command = Command(__doc__, PAGE, data=True, smoke={**smoke, "texts": 20})
    command.add_argument(
        "--encoders", nargs="+", default=["wordllama"], help="specs, or sentence-transformers' folders"
    )
    command.add_argument("--texts", type=int, default=200, help="of each corpus")
    command.add_argument("--rate", type=float, default=0.05, help="what an hour of one processor costs: an example")
    command.add_argument("--rounds", type=int, default=5)
    command.add_argument("--rows", type=int, default=32_768, help="marked in memory")
    command.add_argument("--gigabytes", type=float, default=1.0, help="marked in bulk")
    command.add_argument("--shard-rows", type=int, default=20_000)
    command.add_argument("--seconds", type=float, default=2.0, help="of load on the gateway")
    command.add_argument("--batches", type=int, nargs="+", default=[1, 16, 256])
    given = command.read()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(f"{conditions()} at the start\n", flush=True)
    embedded = {called(spec): embedding(spec, given.data_dir, given.texts) for spec in given.encoders}
    with tempfile.TemporaryDirectory() as folder:
        key = graded_key(Path(folder) / "k.rmkey")
        below = Path(folder) / "bulk"
        below.mkdir()
        marking = in_memory(key, given.rows, given.rounds)
        marking |= in_bulk(key, below, given.gigabytes, given.rounds, given.shard_rows)
        marking |= through_gateway(key, given.batches, given.seconds, given.rounds)
    print(table(marking, embedded, given.rate))
    print(f"\n{conditions()} at the end", file=sys.stdout)
    print(json.dumps({"embedding": embedded, "marking": marking}))


if __name__ == "__main__":
    main()
