"""How fast bulk marking is beside a plain copy of the same files, how much memory it takes, how it scales on Ray.

    python -m studies.bulk.speed throughput [--gigabytes 4] [--codec none|zstd] [--rounds 3] [--before CHECKOUT]
    python -m studies.bulk.speed memory [--gigabytes 1 4 16]
    python -m studies.bulk.speed scaling [--gigabytes 1] [--workers 1 2]
    python -m studies.bulk.speed nodes [--gigabytes 1] [--workers 1 2] [--rounds 3]

The plain copy reads each Parquet file in batches and writes them again with the same options: one loop, pyarrow's own
threads, no digest and no sync. Every run is a process of its own; wall-clock and processor time are both reported,
because on a machine with other work only the second means much. ``--before`` marks with another checkout in between,
and the ratio is of processor time, with that of the children. `nodes` starts a Ray cluster of a head that does not work
and of so many nodes with one processor and one thread each. Files go to TMPDIR and are removed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from studies._study import Command, unit_rows

PAGE = "docs/results/bulk-performance.md"
GIGABYTES = {"throughput": [4.0], "memory": [1.0, 4.0, 16.0], "scaling": [1.0], "nodes": [1.0]}
WIDTH = 1536
SHARD_ROWS = 40_000  # about a quarter of a gigabyte
_STORE = 100_000_000  # bytes of Ray's object store, which holds no vectors
_ON_RAY = ("ray", "nodes")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def make_key(folder: Path, width: int) -> None:
    from regionmarker import RegionMarker

    rows = unit_rows(2000, width)
    texts = [f"text {number}" for number in range(len(rows))]
    RegionMarker(pool=64, reservoir=256, grid="float32").fit(texts, embeddings=rows).save(folder / "key.rmkey")


def make_shards(folder: Path, gigabytes: float, options: Any, *, linked: bool = False) -> Path:
    """Write shards of unit rows; ``linked``: the same file under many names, where only the volume matters."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    codec, width, count = options.codec, options.width, options.shard_rows
    source = folder / f"in-{codec}-{gigabytes}"
    source.mkdir()
    rows = unit_rows(count, width, seed=0)
    for shard in range(max(1, round(gigabytes * 1e9 / (4 * count * width)))):
        path = source / f"part-{shard:04d}.parquet"
        if linked and shard:
            path.hardlink_to(source / "part-0000.parquet")
            continue
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.roll(rows, shard, axis=1).reshape(-1)), width)
        ids = pa.array(range(shard * count, (shard + 1) * count))
        table = pa.table({"id": ids, "embedding": vectors})
        pq.write_table(
            table, path, compression=codec, use_dictionary=["id"], write_statistics=["id"], row_group_size=8192
        )
    return source


def copy(source: Path, target: Path) -> None:
    import contextlib

    import pyarrow.parquet as pq

    from regionmarker.bulk.formats import ParquetSource

    target.mkdir()
    for path in sorted(source.iterdir()):
        with contextlib.ExitStack() as stack:
            options = ParquetSource(stack, path).writer_options("embedding")
            file = stack.enter_context(pq.ParquetFile(path))
            writer = stack.enter_context(pq.ParquetWriter(target / path.name, file.schema_arrow, **options))
            for batch in file.iter_batches(batch_size=8192):
                writer.write_batch(batch)


def mark(source: Path, target: Path, engine: str = "local", workers: int | None = None) -> None:
    from regionmarker import RegionMarker
    from regionmarker.bulk.job import Job
    from regionmarker.bulk.manifest import KeyLabel
    from regionmarker.bulk.run import local_engine, run_job
    from regionmarker.keys.files import KeyReference

    reference = KeyReference(str(source.parent / "key.rmkey"))
    marker = RegionMarker.from_opened(reference.open())
    job = Job(str(source), str(target))
    if engine == "ray":
        from regionmarker.bulk.ray_engine import ray_engine

        chosen = ray_engine(job, reference, workers=workers)
    else:
        chosen = local_engine(job, marker, workers)
    assert run_job(job, KeyLabel.of(marker), chosen).whole


def child(what: str, source: Path, target: Path, width: int, workers: int | None) -> None:
    """Do one thing, and print how long it took and how much memory was the most."""
    if what == "copy":
        import pyarrow.parquet  # noqa: F401 - what is loaded before the clock starts
    else:
        import numpy as np

        from regionmarker import RegionMarker

        marked = RegionMarker.load(source.parent / "key.rmkey").transform(np.eye(1, width, dtype=np.float32))
        assert marked.shape[1] == width  # and the engine is compiled
    if what == "ray":
        from regionmarker.ray_cluster import import_ray, start_ray

        start_ray(import_ray(), num_cpus=workers, include_dashboard=False, object_store_memory=_STORE)
    if what == "nodes":
        join_nodes(workers or 1)
    start, before = time.perf_counter(), processor_seconds()
    if what == "copy":
        copy(source, target)
    else:
        mark(source, target, "ray" if what in _ON_RAY else "local", workers)
    facts = {
        "seconds": time.perf_counter() - start,
        "processor_seconds": processor_seconds() - before,
        "peak_megabytes": peak_megabytes(),
    }
    print(json.dumps(facts))


def join_nodes(count: int) -> None:
    """Start a cluster of some nodes on this machine, each with raylet, object store and one processor of its own."""
    from regionmarker.ray_cluster import import_ray, start_ray

    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))  # what the nodes inherit
    ray = import_ray()
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _STORE}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(count):
        cluster.add_node(num_cpus=1, object_store_memory=_STORE)
    cluster.wait_for_nodes()
    start_ray(ray, tries=1, address=cluster.address)


def processor_seconds() -> float:
    """Return the processor time of this process and of the children that it has waited for."""
    from regionmarker.first_look import LOOKER

    LOOKER.close()
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def peak_megabytes() -> float:
    """Return this process's own peak; getrusage would count what its parent had in memory when it was started."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def run(
    what: str, source: Path, target: Path, width: int, workers: int | None = None, checkout: Path | None = None
) -> dict[str, float]:
    command = [sys.executable, "-m", __spec__.name, "--width", str(width), "--child", what, str(source), str(target)]
    done = subprocess.run(
        [*command, *([] if workers is None else ["--workers", str(workers)])],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=checkout,
        env=os.environ if checkout is None else {**os.environ, "PYTHONPATH": f"{checkout / 'src'}:{checkout}"},
    )
    shutil.rmtree(target)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def throughput(folder: Path, options: Any) -> dict[str, Any]:
    (size,) = options.gigabytes
    source = make_shards(folder, size, options)
    make_key(folder, options.width)
    rounds = []
    for _ in range(options.rounds):
        copied, marked = (run(what, source, folder / "out", options.width) for what in ("copy", "mark"))
        rounds.append({"copy": copied, "mark": marked, "ratio": copied["seconds"] / marked["seconds"]})
        if options.before is not None:
            before = run("mark", source, folder / "out", options.width, checkout=options.before)
            rounds[-1] |= {"before": before, "after_to_before": _ratio(marked, before)}
        print(json.dumps(rounds[-1]), flush=True)
    ratios = sorted(found["ratio"] for found in rounds)
    versions = [found["after_to_before"] for found in rounds if "after_to_before" in found]
    best = {what: min(found[what]["seconds"] for found in rounds) for what in ("copy", "mark")}
    return {
        "gigabytes": size, "codec": options.codec, "median_ratio": ratios[len(ratios) // 2],
        "best_ratio_of_bests": best["copy"] / best["mark"], "best_seconds": best,
        "after_to_before": {"median": statistics.median(versions), "all": sorted(versions)} if versions else None,
    }  # fmt: skip


def _ratio(after: dict[str, float], before: dict[str, float]) -> float:
    return after["processor_seconds"] / before["processor_seconds"]


def memory(folder: Path, options: Any) -> dict[str, Any]:
    make_key(folder, options.width)
    peaks = {}
    for size in options.gigabytes:
        source = make_shards(folder, size, options, linked=True)
        found = run("mark", source, folder / "out", options.width)
        shutil.rmtree(source)
        peaks[str(size)] = found["peak_megabytes"]
        print(json.dumps({"gigabytes": size, **found}), flush=True)
    return {"peak_megabytes": peaks, "largest_over_smallest": max(peaks.values()) / min(peaks.values())}


def scaling(folder: Path, options: Any) -> dict[str, Any]:
    (size,) = options.gigabytes
    source = make_shards(folder, size, options, linked=True)
    make_key(folder, options.width)
    seconds = {
        str(count): run("ray", source, folder / "out", options.width, count)["seconds"] for count in options.workers
    }
    return {"gigabytes": size, "seconds_by_workers": seconds}


def nodes(folder: Path, options: Any) -> dict[str, Any]:
    """Mark with each number of nodes in turns, so that what else the machine does is shared."""
    (size,) = options.gigabytes
    source = make_shards(folder, size, options, linked=True)
    make_key(folder, options.width)
    seconds: dict[str, list[float]] = {str(count): [] for count in options.workers}
    for _ in range(options.rounds):
        for count in options.workers:
            found = run("nodes", source, folder / "out", options.width, count)
            seconds[str(count)].append(found["seconds"])
            print(json.dumps({"nodes": count, **found}), flush=True)
    first, *_ = seconds.values()
    return {
        "gigabytes": size, "seconds_by_nodes": seconds,
        "speed": {count: min(first) / min(found) for count, found in seconds.items()},
    }  # fmt: skip


def main() -> None:
    smoke = {"gigabytes": [0.002], "rounds": 1, "width": 64, "shard_rows": 4000}
    parser = Command(__doc__, PAGE, smoke=smoke)
    parser.add_argument("verb", choices=list(GIGABYTES), nargs="?", default="throughput")
    parser.add_argument("--gigabytes", type=float, nargs="+", help="of each run; several for memory")
    parser.add_argument("--codec", choices=["none", "zstd"], default="none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--before", type=Path, help="another checkout, to mark with in every round as well")
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument("--shard-rows", type=int, default=SHARD_ROWS)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.read()
    if options.child:
        what, source, target = options.child
        child(what, Path(source), Path(target), options.width, options.workers[0] if what in _ON_RAY else None)
        return
    options.gigabytes = options.gigabytes or GIGABYTES[options.verb]
    folder = Path(tempfile.mkdtemp(prefix="bulk-bench-"))
    try:
        answer = {"throughput": throughput, "memory": memory, "scaling": scaling, "nodes": nodes}[options.verb](
            folder, options
        )
        print(json.dumps({"load": os.getloadavg()[0], "cores": os.cpu_count(), **answer}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
