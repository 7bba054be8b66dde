"""Kill a bulk job with SIGKILL at random points, go on, and compare with a run that nobody disturbed.

    python -m studies.bulk.kill --engine local --points 50
    python -m studies.bulk.kill --engine ray --points 50 --chain 10

A job of 100 shards is killed when a random number of shards is done, plus a random moment; ``--chain`` times over, each
kill after a resume; then it is let finish. On Ray one cluster stays alive, and kills fall in turn on the driver (then
the same command must go on) and on a worker (then the job must finish by itself). After every kill each output that is
visible must be whole; at the end every id must be there exactly once, the manifest and every file must equal the
undisturbed run's byte for byte, and nothing temporary may be left.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from studies._study import Command, unit_rows

PAGE = "docs/results/bulk-performance.md"
SHARDS, ROWS, WIDTH = 100, 1000, 256
PATIENCE = 1800.0  # seconds for one run on a busy machine


def make_input(folder: Path, shards: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from regionmarker import RegionMarker

    rows = unit_rows(shards * ROWS, WIDTH, seed=0)
    texts = [f"text {number}" for number in range(2000)]
    RegionMarker(pool=64, reservoir=256).fit(texts, embeddings=rows[:2000]).save(folder / "key.rmkey")
    (folder / "in").mkdir()
    for shard in range(shards):
        part = slice(shard * ROWS, (shard + 1) * ROWS)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows[part].reshape(-1)), WIDTH)
        table = pa.table({"id": pa.array(range(part.start, part.stop)), "embedding": vectors})
        pq.write_table(table, folder / "in" / f"part-{shard:03d}.parquet", compression="none")


def drive(folder: Path, name: str, engine: str, address: str | None) -> None:
    """Run the job in this process, from its start or from where a killed one left off."""
    from regionmarker import RegionMarker
    from regionmarker.bulk.job import Job
    from regionmarker.bulk.manifest import KeyLabel
    from regionmarker.bulk.ray_engine import ray_engine
    from regionmarker.bulk.run import local_engine, run_job
    from regionmarker.keys.files import KeyReference

    reference = KeyReference(str(folder / "key.rmkey"))
    marker = RegionMarker.from_opened(reference.open())
    job = Job(str(folder / "in"), str(folder / name))
    chosen = (
        local_engine(job, marker, 2) if engine == "local" else ray_engine(job, reference, address=address, workers=2)
    )
    assert run_job(job, KeyLabel.of(marker), chosen).whole


def done(folder: Path, name: str) -> int:
    entries = folder / name / "_regionmarker" / "entries"
    return sum(path.suffix == ".json" for path in entries.iterdir()) if entries.is_dir() else 0


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.parquet"))}


def workers_of(session: str) -> list[int]:
    """Find the worker processes of our own cluster: named by Ray, and children of the raylet of this session."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes().startswith(b"ray::MapWorker"):
                parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
                if session.encode() in (Path("/proc") / parent / "cmdline").read_bytes():
                    found.append(int(path.name))
        except OSError:
            continue
    return found


def strike(process: Any, session: str | None, at_worker: bool) -> str:
    """Kill the driver, or one worker where there is one to kill."""
    victims = workers_of(session) if at_worker and session else []
    if victims:
        os.kill(random.choice(victims), signal.SIGKILL)
        return "worker"
    process.kill()
    process.join()
    return "driver"


def chain(folder: Path, name: str, options: Any, wanted: dict[str, str], ray: dict[str, Any], first: int) -> list[str]:
    """Kill one job ``options.chain`` times, let it finish, check it; return what was hit."""
    context = multiprocessing.get_context("forkserver")
    moments = sorted(random.randrange(options.shards) for _ in range(min(options.chain, options.points - first)))
    hit: list[str] = []

    def start() -> Any:
        process = context.Process(target=drive, args=(folder, name, options.engine, ray.get("address")))
        process.start()
        return process

    process = start()
    for moment in moments:
        deadline = time.monotonic() + PATIENCE
        while done(folder, name) < moment and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(random.uniform(0.0, 0.2))
        if not process.is_alive():
            raise SystemExit(f"the job ended with {process.exitcode} before it was killed: give more --shards")
        hit.append(strike(process, ray.get("session"), at_worker=(first + len(hit)) % 2 == 1))
        visible = digests(folder / name)
        assert all(wanted[shard] == digest for shard, digest in visible.items()), "something half-written was visible"
        if hit[-1] == "driver":
            process = start()
    process.join(PATIENCE)
    assert process.exitcode == 0, process.exitcode
    return hit


def check(folder: Path, name: str, wanted: dict[str, str], shards: int) -> None:
    import pyarrow.parquet as pq

    assert digests(folder / name) == wanted
    ids = pq.read_table(folder / name, columns=["id"]).column("id").to_pylist()
    assert sorted(ids) == list(range(shards * ROWS)), "an id is missing or there twice"
    manifests = [(folder / run / "_regionmarker" / "manifest.json").read_bytes() for run in ("unbroken", name)]
    assert manifests[0] == manifests[1]
    left = [str(path) for path in (folder / name).rglob("*") if path.suffix == ".tmp" or "partial" in path.parts]
    assert not left, left


def main() -> None:
    smoke = {"points": 1, "shards": 120, "seed": 1}  # kills after 17 shards: early, however fast the machine
    parser = Command(__doc__, PAGE, smoke=smoke)
    parser.add_argument("--engine", choices=["local", "ray"], default="local")
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--chain", type=int, default=1, help="kills of one job before it may finish")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--shards", type=int, default=SHARDS)
    options = parser.read()
    random.seed(options.seed)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["regionmarker.bulk.run", "regionmarker.bulk.ray_engine", "regionmarker.keys.files", "ray.data"]
    )
    folder = Path(tempfile.mkdtemp(prefix="bulk-kill-"))
    ray: dict[str, Any] = {}
    points: list[str] = []
    try:
        make_input(folder, options.shards)
        drive(folder, "unbroken", "local", None)
        wanted = digests(folder / "unbroken")
        if options.engine == "ray":
            from regionmarker.ray_cluster import import_ray, start_ray

            started = start_ray(import_ray(), num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
            ray = {"address": started.address_info["address"], "session": started.address_info["session_dir"]}
        while len(points) < options.points:
            start = time.monotonic()
            points += chain(folder, "killed", options, wanted, ray, len(points))
            check(folder, "killed", wanted, options.shards)
            shutil.rmtree(folder / "killed")
            print(f"{len(points)} points, last job {time.monotonic() - start:.0f} s", flush=True)
        kinds = {kind: points.count(kind) for kind in sorted(set(points))}
        print(json.dumps({"engine": options.engine, "points": len(points), "hit": kinds, "all_equal": True}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
