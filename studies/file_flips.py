"""Ten thousand damaged files: what becomes of a key, a bundle of evidence or a shard with a flipped byte.

    python -m studies.file_flips [--cases 12000] [--seed 0]

A sixth of the cases each: sealed key files; key payloads that were sealed again after the flip, as their owner could;
bundles as zips; files of a bundle below a manifest that was written again; Parquet shards with a flip in the footer,
and anywhere. Keys and bundles of 0.1.0 from tests/golden, real marking of the shards. Counted are tracebacks, dead
processes, keys that opened in spite of a flip, bundles that check although their content changed and no digest says so,
and rows that were served without being what the key makes of the damaged input.
"""

from __future__ import annotations

import json
import random
import resource
import tempfile
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from studies._study import Command, unit_rows

PAGE = "docs/results/hostile-files.md"
GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
BUNDLE = GOLDEN / "v1-evidence" / "copy-summary.zip"
WIDTH, ROWS, JOB = 64, 200, 500


def flipped(content: bytes, draw: random.Random, last: int | None = None) -> bytes:
    """Change one byte, in the last ``last`` bytes or anywhere."""
    damaged = bytearray(content)
    damaged[draw.randrange(len(content) - (last or len(content)), len(content))] ^= draw.randrange(1, 256)
    return bytes(damaged)


def outcome_of(call: Any) -> str:
    """Say how a reader ended: well, in a sentence of ours, or in a traceback."""
    from regionmarker.errors import RegionMarkerError

    try:
        return call() or "opened"
    except RegionMarkerError:
        return "refused in a sentence"
    except Exception as error:  # noqa: BLE001 - what is counted
        print("traceback:", type(error).__name__, error, flush=True)
        return "TRACEBACK"


def keys(count: int, draw: random.Random) -> Counter[str]:
    from regionmarker.crypto.envelope import Kind, Opener, open_envelope
    from regionmarker.crypto.secret import Secret
    from regionmarker.keys.file_format import load_ring, load_serving

    found: Counter[str] = Counter()
    for number in range(count):
        name, kind, load = (("v1.rmkey", Kind.RING, load_ring), ("v1-serving.rmkey", Kind.SERVING, load_serving))[
            number % 2
        ]
        opener = Opener.secret(Secret((GOLDEN / f"{name}.secret").read_bytes()))
        damaged = flipped((GOLDEN / name).read_bytes(), draw)

        def opened(damaged: bytes = damaged, kind: Any = kind, opener: Any = opener, load: Any = load) -> str:
            load(open_envelope(damaged, kind, opener))
            return "OPENED"

        found[outcome_of(opened)] += 1
    return found


def payloads(count: int, draw: random.Random) -> Counter[str]:
    """Flip inside what the envelope protects, use what opens, and let it mark: it may mark otherwise, not crash."""
    import numpy as np

    from regionmarker import RegionMarker
    from regionmarker.crypto.envelope import Kind, Opener, open_envelope
    from regionmarker.crypto.secret import Secret
    from regionmarker.keys.file_format import load_ring, load_serving

    sources = []
    for name, kind, load in (("v1.rmkey", Kind.RING, load_ring), ("v1-serving.rmkey", Kind.SERVING, load_serving)):
        opener = Opener.secret(Secret((GOLDEN / f"{name}.secret").read_bytes()))
        sources.append((open_envelope((GOLDEN / name).read_bytes(), kind, opener).reveal(), load))
    found: Counter[str] = Counter()
    for number in range(count):
        payload, load = sources[number % 2]
        place = random.Random(draw.random())
        near = len(payload) if number % 4 < 2 else 4096  # half of them where the structure is, not the numbers
        damaged = flipped(payload[:near], place) + payload[near:]

        def used(damaged: bytes = damaged, load: Any = load) -> str:
            opened = load(Secret(damaged))
            for serving in [key.serving() for key in opened] if isinstance(opened, tuple) else [opened]:
                RegionMarker.from_opened(serving).transform(unit_rows(4, serving.width))
            return "opened and marked"

        with np.errstate(all="ignore"):
            found[outcome_of(used)] += 1
    return found


def bundles(count: int, draw: random.Random, folder: Path) -> Counter[str]:
    from regionmarker.evidence.bundle import read_bundle
    from regionmarker.evidence.check import check_evidence

    content, whole = BUNDLE.read_bytes(), dict(read_bundle(BUNDLE).files)
    path = folder / "flipped.zip"
    found: Counter[str] = Counter()
    for _ in range(count):
        path.write_bytes(flipped(content, draw))

        def checked() -> str:
            if not check_evidence(path).ok:
                return "a check failed"
            return "ok, content unchanged" if dict(read_bundle(path).files) == whole else "LIE ACCEPTED"

        found[outcome_of(checked)] += 1
    return found


def forged(count: int, draw: random.Random, folder: Path) -> Counter[str]:
    """Flip a byte of a file that is recomputed, and write the manifest again: the signature is gone, the sum is not."""
    from regionmarker.evidence.bundle import MANIFEST, SIGNATURE, SIGNER, manifest_of
    from regionmarker.evidence.check import check_evidence

    with zipfile.ZipFile(BUNDLE) as packed:
        files = {name: packed.read(name) for name in packed.namelist() if name not in (MANIFEST, SIGNATURE, SIGNER)}
    found: Counter[str] = Counter()
    path = folder / "forged.zip"
    for number in range(count):
        name = sorted(files)[number % len(files)]
        changed = {**files, name: flipped(files[name], draw)}
        with zipfile.ZipFile(path, "w") as target:
            for entry, data in {**changed, MANIFEST: manifest_of("summary", changed)}.items():
                target.writestr(entry, data)

        def checked(name: str = name) -> str:
            return f"unsigned, ok: {name}" if check_evidence(path).ok else "a check failed"

        found[outcome_of(checked)] += 1
    return found


def shards(count: int, draw: random.Random, folder: Path, *, footer: bool) -> Counter[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from regionmarker import RegionMarker
    from regionmarker.bulk.job import Job
    from regionmarker.bulk.manifest import KeyLabel
    from regionmarker.bulk.run import local_engine, run_job

    rows = unit_rows(2000, WIDTH)
    marker = RegionMarker(pool=64, reservoir=256, grid="float32").fit(
        [f"text {number}" for number in range(2000)], embeddings=rows
    )
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows[:ROWS].reshape(-1)), WIDTH)
    table = pa.table({"id": range(ROWS), "text": [f"text {number}" for number in range(ROWS)], "embedding": vectors})
    pq.write_table(table, folder / "whole.parquet", compression="zstd" if footer else "none")
    content = (folder / "whole.parquet").read_bytes()
    last = int.from_bytes(content[-8:-4], "little") + 8 if footer else None
    found: Counter[str] = Counter()
    for first in range(0, count, JOB):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            source, target = Path(place) / "in", Path(place) / "out"
            source.mkdir()
            for number in range(first, min(first + JOB, count)):
                (source / f"part-{number:05d}.parquet").write_bytes(flipped(content, draw, last))
            (source / "whole.parquet").write_bytes(content)
            job = Job(str(source), str(target), on_bad_row="set-aside", verify_output=True)
            done = run_job(job, KeyLabel.of(marker), local_engine(job, marker))
            assert (target / "whole.parquet").exists()
            for entry in done.manifest["shards"]:
                crashed = "crashed" in (entry["reason"] or "")
                refused = "refused: pyarrow crashed, in the child" if crashed else "refused by name"
                found[refused if entry["status"] != "done" else "marked, and verified"] += entry["shard"][0] == "p"
    return found


def main() -> None:
    parser = Command(__doc__, PAGE, smoke={"cases": 60})
    parser.add_argument("--cases", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.read()
    warnings.simplefilter("ignore")
    draw, share = random.Random(options.seed), options.cases // 6
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = {
            "sealed key files": keys(share, draw),
            "key payloads, sealed again": payloads(share, draw),
            "bundles as zips": bundles(share, draw, folder),
            "files of a bundle, manifest written again": forged(share, draw, folder),
            "Parquet shards, footer": shards(share, draw, folder, footer=True),
            "Parquet shards, anywhere": shards(share, draw, folder, footer=False),
        }
    for what, found in rows.items():
        print(json.dumps({what: dict(sorted(found.items()))}))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = [pair for found in rows.values() for pair in found.items()]
    bad = sum(count for outcome, count in outcomes if outcome.isupper())
    print(json.dumps({"cases": 6 * share, "bad": bad, "peak_megabytes": peak >> 10, "before_megabytes": before >> 10}))
    assert not bad


if __name__ == "__main__":
    main()
