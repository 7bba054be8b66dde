"""The long run: ``python -m tests.fuzz TARGET [--seconds 60] [--runs N] [--seed N] [--keep]``; needs atheris.

Every input that reaches new code is kept for this run; ``--keep`` adds a few small ones to the corpus of the
repository. An input that breaks a promise is written to ``out/fuzz/`` and named.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from tests.fuzz.json_changes import changed

LONGEST = 32_768
SMALL = 2048  # bytes of an input that is kept in the repository
FEW = 60


def fuzz(target: str, arguments: list[str]) -> None:
    import atheris

    with atheris.instrument_imports(include=["regionmarker"]):
        from tests.fuzz.targets import TARGETS

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        draw = random.Random(seed)
        found = changed(data, target, draw) if draw.random() < 0.5 else None
        if found is None or len(found) > longest:
            return bytes(atheris.Mutate(data, longest))
        return found

    atheris.Setup([sys.argv[0], *arguments], TARGETS[target], custom_mutator=mutate)
    atheris.Fuzz()


def child(target: str, arguments: list[str]) -> int:
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz", target, "--child", *arguments]
    return subprocess.run(command, check=False).returncode


def main() -> None:
    if "--child" in sys.argv:
        place = sys.argv.index("--child")
        fuzz(sys.argv[1], sys.argv[place + 1 :])
        return
    from tests.fuzz.targets import CORPORA, TARGETS, seeds

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=-1, help="stop after so many inputs")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0 for another each time")
    parser.add_argument("--keep", action="store_true", help="add what was found to the corpus of the repository")
    options = parser.parse_args()
    found = Path("out/fuzz")
    found.mkdir(parents=True, exist_ok=True)
    code = 0
    for target in TARGETS if options.target == "all" else [options.target]:
        with tempfile.TemporaryDirectory() as folder:
            work, kept = Path(folder) / "work", CORPORA / target
            work.mkdir()
            kept.mkdir(parents=True, exist_ok=True)
            for seed in seeds(target):
                (work / sha256(seed).hexdigest()).write_bytes(seed)
            limits = [f"-max_len={LONGEST}", f"-artifact_prefix={found}/{target}-", "-timeout=20", "-rss_limit_mb=4096"]
            limits += [f"-max_total_time={options.seconds}", f"-runs={options.runs}", f"-seed={options.seed}"]
            ended = child(target, [*limits, str(work), str(kept)])
            print(f"{target}: {'held' if not ended else f'broke a promise; its input is in {found}/'}", flush=True)
            code = code or ended
            if options.keep and not ended:
                keep(work, kept, set(seeds(target)))
    sys.exit(1 if code else 0)


def keep(work: Path, kept: Path, known: set[bytes]) -> None:
    """Add the small inputs that reached something new, the smallest first, until there are a few."""
    found = sorted((path.read_bytes() for path in work.iterdir()), key=len)
    new = [data for data in found if data not in known and len(data) <= SMALL]
    for data in new[: max(0, FEW - len(list(kept.iterdir())))]:
        (kept / sha256(data).hexdigest()[:16]).write_bytes(data)


if __name__ == "__main__":
    main()
