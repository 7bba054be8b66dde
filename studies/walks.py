"""Which modules one job walks through: a map for readers, and a figure for those who move code about.

    python -m studies.walks [TREE ...] [--list | --json]

Every TREE is a checkout; the default is this one, and two trees are compared. Each walk runs in a process of its own,
with a key and files that the tree's own code made. A module counts as entered when a function of its file runs, in
whichever thread; what runs because something is imported does not count, nor do methods that ``dataclass`` writes.

Two modules are a mutual pair when each calls into the other within one walk. A call comes from the nearest function of
the package that is under way, through whatever library stands between. Where one direction consists of functions that
were handed over (nested ones and lambdas), or of methods of the very object that calls (a class and its base class),
the pair is listed apart, as *by callback* or *by inheritance*: there, one module need not know the other.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from studies._study import Command
from studies._tracer import DIRECT, Walk

PAGE = "CONTRIBUTING.md"
ROOT = Path(__file__).resolve().parents[1]
CELL = """
[[block]]
corpora = ["python"]
provider = "wordllama"
limit = 2000
defenses = ["regionmarker:pool=256"]
attacks = ["cse"]
stealers = ["head:wordllama"]
suspects = ["copy"]
queries = [600]
"""


# ---- the walks; everything is reached by public names and by the command line, so that they run on every version


def prepare(folder: Path) -> None:
    """Make a key and vectors."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import regionmarker as rm

    texts = rm.python_sentences(3000)
    rows = rm.load_encoder("wordllama").encode(texts)
    marker = rm.RegionMarker(pool=128, reservoir=1200).fit(texts, embeddings=rows)
    marker.save(folder / "key.rmkey")
    pq.write_table(pa.table({"embedding": list(rows)}), folder / "vectors.parquet")


def prepare_evidence(folder: Path) -> None:
    """Make evidence of two levels."""
    for level in ("summary", "court"):
        _verify(folder, "--out", folder / level, "--disclosure", level)


def transform(walk: Walk, folder: Path) -> None:
    """Mark rows that are in memory, with a marker that has marked before."""
    import regionmarker as rm

    marker = rm.RegionMarker.load(folder / "key.rmkey")
    rows = rm.load_encoder("wordllama").encode(["one text", "another text"])
    marker.transform(rows)  # compiles what is compiled
    with walk.recorded():
        marker.transform(rows)


def post(walk: Walk, folder: Path) -> None:
    """Answer one POST: the real server on a real socket, the embedded encoder as its upstream, no database."""
    log = io.StringIO()

    def client() -> None:
        try:
            url = f"http://127.0.0.1:{_port(log)}/v1/embeddings"
            _ask(url)  # loads and compiles
            walk.wait(1.0)
            with walk.recorded():
                _ask(url)
                time.sleep(0.5)  # what is done after the answer belongs to it
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=client)
    thread.start()
    _command("serve", "--key", folder / "key.rmkey", "--port", 0, "--drain-delay", 0, said=log)
    thread.join()


def _ask(url: str) -> None:
    body = json.dumps({"model": "wordllama", "input": ["one text", "another text"]}).encode()
    asked = urllib.request.Request(url, body, {"content-type": "application/json", "authorization": "Bearer sk-walk"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=60) as answer:
        assert len(json.load(answer)["data"]) == 2


def _port(log: io.StringIO) -> int:
    for _ in range(600):
        for line in log.getvalue().splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                return int(json.loads(line)["port"])
        time.sleep(0.1)
    raise SystemExit(f"the gateway does not listen: {log.getvalue()}")


def shard(walk: Walk, folder: Path) -> None:
    """Mark one file from the command line."""
    with walk.recorded():
        _command("mark", folder / "vectors.parquet", folder / "out.parquet", "--key", folder / "key.rmkey", "--json")


def verify(walk: Walk, folder: Path) -> None:
    """Judge an encoder, without power and without evidence."""
    with walk.recorded():
        _verify(folder, "--no-power")


def verify_out(walk: Walk, folder: Path) -> None:
    """Judge an encoder, estimate the power, and write evidence."""
    with walk.recorded():
        _verify(folder, "--out", folder / "evidence")


def _verify(folder: Path, *options: object) -> None:
    _command("verify", "--key", folder / "key.rmkey", "--suspect", "wordllama", "--budget", 800, "--json", *options)


def check(walk: Walk, folder: Path, level: str = "summary") -> None:
    """Check a bundle of evidence."""
    with walk.recorded():
        _command("evidence", "check", folder / level, "--json")


def cell(walk: Walk, folder: Path) -> None:
    """Compute one cell in this process: RegionMarker, the attack cse, a head on frozen features."""
    from regionmarker.benchmark.grid import Grid, run_grid

    grid = Grid.parse(CELL)
    with walk.recorded():
        summary = run_grid(grid, folder / "grid", engine="here", workers=1)
    assert (summary.computed, summary.failed) == (1, 0), summary


def _command(*words: object, said: io.StringIO | None = None) -> None:
    from regionmarker.cli import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said or io.StringIO()) as said:
        try:
            main([str(word) for word in words])
        except SystemExit as left:
            if left.code:
                raise SystemExit(f"{words[0]} failed: {said.getvalue()}") from None


PREPARED = {"key": prepare, "evidence": prepare_evidence}
WALKS: dict[str, Callable[[Walk, Path], None]] = {
    "`transform`": transform,
    "one POST": post,
    "one shard by `mark`": shard,
    "`verify` alone": verify,
    "`verify --out` with power": verify_out,
    "`evidence check`, summary": check,
    "`evidence check`, court": partial(check, level="court"),
    "one grid cell": cell,
}


# ---- one process for each


def _child(title: str, folder: Path) -> None:
    import regionmarker

    walk = Walk(Path(regionmarker.__file__).resolve().parent)
    if title in PREPARED:
        PREPARED[title](folder)
        return
    walk.watch()
    WALKS[title](walk, folder)
    sys.setprofile(None)
    print(json.dumps(walk.facts()))


def traced(tree: Path, titles: list[str]) -> dict[str, dict[str, Any]]:
    """Return the facts of every walk on the code of ``tree``."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        places = {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}", "XDG_CACHE_HOME": folder}
        needed = ["key", *(["evidence"] if any("evidence" in title for title in titles) else [])]
        for title in [*needed, *titles]:
            command = [sys.executable, "-m", "studies.walks", "--child", title, "--folder", folder]
            done = subprocess.run(
                command, env=os.environ | places, stdout=subprocess.PIPE, text=True, cwd=folder, check=True
            )
            if title in WALKS:
                found[title] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Lay out the counts, two columns per tree, and the mutual pairs below."""
    lines = ["| walk | " + " | ".join(f"{tree}: modules | mutual pairs" for tree in found) + " |"]
    lines.append("|---|" + "---:|---:|" * len(found))
    for title in next(iter(found.values())):
        cells = []
        for walks in found.values():
            kinds = [pair["kind"] for pair in walks[title]["pairs"]]
            cells.append(f"{len(walks[title]['modules'])} | {kinds.count(DIRECT)}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    for tree, walks in found.items():
        lines += ["", f"Pairs in {tree}:", ""]
        for title, walk in walks.items():
            for pair in walk["pairs"]:
                one, other = pair["modules"]
                there, back = (", ".join(f"`{name}`" for name in pair[way]) for way in ("calls", "back"))
                lines.append(f"- {title}, {pair['kind']}: {one} calls {other} ({there}), and back ({back})")
    return "\n".join(lines)


def main() -> None:
    parser = Command(__doc__, PAGE, smoke={"only": ["`transform`"]})
    parser.add_argument("trees", metavar="TREE", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--only", choices=list(WALKS), action="append", help="this walk; may be given several times")
    parser.add_argument("--list", action="store_true", help="print the modules in the order in which they are entered")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.read()
    if given.child is not None:
        _child(given.child, given.folder)
        return
    found = {str(tree): traced(tree.resolve(), given.only or list(WALKS)) for tree in given.trees}
    if given.json:
        print(json.dumps(found, indent=1))
        return
    print(table(found))
    for tree, walks in found.items() if given.list else ():
        for title, walk in walks.items():
            print(f"\n{tree}, {title}: {len(walk['modules'])} modules\n")
            print("\n".join(f"{place:3} {module}" for place, module in enumerate(walk["modules"], start=1)))


if __name__ == "__main__":
    main()
