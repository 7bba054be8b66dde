"""Whether another version marks and serves as fast as this one.

    python -m studies.versions --before CHECKOUT [--after CHECKOUT] [--rounds 12] [--only marking|gateway]

Both versions run in every round, one after the other and in turns the first, each in a process of its own: a busy
machine slows both alike. Each round gives one ratio after/before; printed are their geometric mean and a 95 % interval
(Student's t on logarithms). The exit code is 1 where the upper end of an interval is above ``--most``.

marking   `transform` of 65,536 x 1536 float32 on one thread, divided by ``np.copyto`` of the same array in the same
          process; and of one row.
gateway   a fixed number of POSTs of 1 and of 16 texts to the real server before the null upstream of
          ``studies.gateway``: the server's processor time for one POST.

All times are processor times, and within a process the best of several turns counts. Key, rows, upstream and clients
are the same for both versions, and what they mark is compared to the last bit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from studies._study import Command, unit_rows

PAGE = "CONTRIBUTING.md"
ROOT = Path(__file__).resolve().parents[1]
MOST = 1.05
WIDTH, ROWS = 1536, 65_536
TURNS = 9
SINGLE_ROWS = 2000
POSTS = {1: 1500, 16: 600}  # by texts in a POST
CONNECTIONS = 8
DIGEST = "digest"  # of what was marked


# ---- what one version does in one round, in a process of its own


def marking(key: Path, count: int) -> dict[str, Any]:
    """Return the time of marking as multiples of a copy's, and the microseconds of one row."""
    import numpy as np

    import regionmarker as rm

    marker = rm.RegionMarker.load(key)
    rows = unit_rows(count, WIDTH)
    out, row = np.zeros_like(rows), rows[:1].copy()
    copy, mark, single = best_of(
        lambda: np.copyto(out, rows),
        lambda: marker.transform(rows, out=out),
        lambda: [marker.transform(row) for _ in range(SINGLE_ROWS)],
    )
    digest = sha256(marker.transform(rows[:1000]).tobytes()).hexdigest()
    return {f"{count:,} rows, times a copy": mark / copy, "one row, us": single / SINGLE_ROWS * 1e6, DIGEST: digest}


def best_of(*jobs: Callable[[], object]) -> list[float]:
    """Run the jobs in turns; return the least processor seconds of each."""
    best = [float("inf")] * len(jobs)
    for turn in range(TURNS + 1):
        for place, job in enumerate(jobs):
            started = time.process_time()
            job()
            if turn:  # the first one warms up
                best[place] = min(best[place], time.process_time() - started)
    return best


def gateway(key: Path, _count: int) -> dict[str, Any]:
    """Return the server's milliseconds of processor time for a POST, by its number of texts."""
    from studies.gateway.load import drive, request
    from studies.gateway.targets import MODEL, processor_seconds, stub
    from studies.gateway.targets import gateway as serving

    best = dict.fromkeys(POSTS, float("inf"))
    with stub() as upstream, serving(key, upstream) as (port, process):
        for turn in range(TURNS // 2 + 1):
            for texts, posts in POSTS.items():
                message = request(port, texts, "base64", MODEL)
                started = processor_seconds(process)
                outcome = drive(port, message, connections=CONNECTIONS, seconds=300.0, requests=posts)
                used = processor_seconds(process) - started
                if outcome.statuses != {200: posts}:
                    raise SystemExit(f"the gateway answered {dict(outcome.statuses)}")
                if turn:
                    best[texts] = min(best[texts], used / posts)
        digest = sha256(b"".join(_served(port, texts, MODEL) for texts in POSTS)).hexdigest()
    return {**{f"a POST of {texts}, ms": seconds * 1e3 for texts, seconds in best.items()}, DIGEST: digest}


def _served(port: int, texts: int, model: str) -> bytes:
    import urllib.request

    body = json.dumps({"model": model, "input": [f"text {number}" for number in range(texts)]}).encode()
    url, headers = f"http://127.0.0.1:{port}/v1/embeddings", {"content-type": "application/json"}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, body, headers), timeout=60) as answer:
        return json.dumps(json.load(answer)["data"]).encode()


def make_key(folder: Path) -> None:
    """Make the key that both versions use; the version before makes it."""
    from studies.gateway.targets import make_key as make

    make(folder)


PARTS: dict[str, Callable[[Path, int], dict[str, Any]]] = {"marking": marking, "gateway": gateway}


# ---- rounds


def run(tree: Path, part: str, folder: Path, count: int) -> dict[str, Any]:
    """Let one version do one part, and return what it measured."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    compiled = folder / f"compiled-{sha256(bytes(tree)).hexdigest()[:8]}"
    places = {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}", "NUMBA_CACHE_DIR": str(compiled)}
    command = [sys.executable, "-m", "studies.versions", "--child", part, "--folder", str(folder), "--rows", str(count)]
    done = subprocess.run(command, env=os.environ | threads | places, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not Path(found.pop("package")).is_relative_to(tree):
        raise SystemExit(f"{tree}/src holds no package regionmarker")
    return found


def rounds(
    before: Path, after: Path, part: str, count: int, folder: Path, rows: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield what both versions measured, round by round."""
    for number in range(count):
        found: list[dict[str, Any]] = [{}, {}]
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            found[side] = run((before, after)[side], part, folder, rows)
        if found[0].pop(DIGEST) != found[1].pop(DIGEST):
            raise SystemExit("the two versions do not mark alike")
        print(f"round {number + 1} of {part}: {' -> '.join(map(_short, found))}", file=sys.stderr, flush=True)
        yield found[0], found[1]


def _short(measured: dict[str, float]) -> str:
    return ", ".join(f"{value:.4g}" for value in measured.values())


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the geometric mean of ratios and its 95 % interval."""
    import numpy as np
    from scipy.stats import t

    logs = np.log(ratios)
    half = t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return tuple(float(np.exp(logs.mean() + side)) for side in (0.0, -half, half))  # type: ignore[return-value]


def compare(before: Path, after: Path, parts: list[str], count: int, most: float, rows: int) -> bool:
    """Print the table; return whether every interval ends at or below ``most``."""
    import numpy as np

    print("| what | before (median) | after (median) | after / before | 95 % interval | at most " + f"{most:g} |")
    print("|---|---:|---:|---:|---:|---|")
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(before, "key", folder, rows)
        for part in parts:
            found = list(rounds(before, after, part, count, folder, rows))
            for what in found[0][0]:
                old, new = ([pair[side][what] for pair in found] for side in (0, 1))
                mean, low, high = interval([b / a for a, b in zip(old, new, strict=True)])
                good &= high <= most
                print(
                    f"| {part}: {what} | {np.median(old):.4g} | {np.median(new):.4g} | {mean:.3f} "
                    f"| {low:.3f} to {high:.3f} | {'yes' if high <= most else 'NO'} |",
                    flush=True,
                )
    return good


def _child(part: str, folder: Path, rows: int) -> None:
    import regionmarker

    if part == "key":
        make_key(folder)
    found = PARTS[part](folder / "bench.rmkey", rows) if part in PARTS else {}
    print(json.dumps({**found, "package": regionmarker.__file__}))


def main() -> None:
    smoke = {"before": ROOT, "rounds": 2, "only": "marking", "rows": 4096, "most": 1e9}
    parser = Command(__doc__, PAGE, smoke=smoke)
    parser.add_argument("--before", type=Path, help="a checkout of the other version")
    parser.add_argument("--after", type=Path, default=ROOT, help="default: this checkout")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", choices=list(PARTS), help="one part")
    parser.add_argument("--most", type=float, default=MOST, help="what the upper end of a ratio's interval may be")
    parser.add_argument("--rows", type=int, default=ROWS, help="that are marked at once")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.read()
    if given.child is not None:
        _child(given.child, given.folder, given.rows)
        return
    if given.before is None or given.rounds < 2:
        parser.error("give --before and at least two rounds")
    print(
        f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start, {given.rounds} rounds\n",
        flush=True,
    )
    parts = [given.only] if given.only else list(PARTS)
    good = compare(given.before.resolve(), given.after.resolve(), parts, given.rounds, given.most, given.rows)
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
