"""The short run: every kept input, a fixed number of mutations, and a run with coverage where atheris is installed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.json_changes import changed
from tests.fuzz.targets import CORPORA, TARGETS, seeds

MUTATIONS = {"bundle": 300}
PIECES = (
    b"null",
    b"1e999",
    b"-1",
    b"18446744073709551616",
    b'"\\ud800"',
    b"[[",
    b"{}",
    b"\xff",
    b"\0",
    b"NaN",
    b"true",
)


def inputs(target: str) -> list[bytes]:
    kept = sorted((CORPORA / target).iterdir()) if (CORPORA / target).is_dir() else []
    return [*seeds(target), *(path.read_bytes() for path in kept)]


def mutated(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        place = draw.randrange(len(changed) + 1)
        match draw.randrange(4):
            case 0 if place < len(changed):
                changed[place] ^= 1 << draw.randrange(8)
            case 1:
                changed[place:place] = draw.choice(PIECES)
            case 2:
                del changed[place : place + draw.randrange(1, 20)]
            case _:
                changed[place : place + draw.randrange(1, 20)] = draw.choice(PIECES)
    return bytes(changed)


@pytest.mark.parametrize("target", TARGETS)
def test_kept_inputs_and_mutations_keep_every_promise(target):
    known, draw = inputs(target), random.Random(17)
    assert len(known) >= 2
    for data in known:
        TARGETS[target](data)
    for _ in range(MUTATIONS.get(target, 2000)):
        data = draw.choice(known)
        TARGETS[target](mutated(data, draw))
        TARGETS[target](changed(data, target, draw) or b"")


@pytest.mark.parametrize("target", TARGETS)
def test_a_short_run_with_coverage(target, tmp_path):
    pytest.importorskip("atheris", reason="atheris is not installed: pip install atheris")
    runs = str(MUTATIONS.get(target, 3000))
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", target, "--runs", runs, "--seconds", "120", "--seed", "5"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=_environment(),
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, f"{target}: held"), done.stderr[-3000:]


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path)])}


def test_a_broken_promise_is_found():
    """The harness can fail: a reader that forgets one error is caught by the mutations."""

    def careless(data: bytes) -> None:
        json.loads(data)

    def run() -> None:
        draw = random.Random(17)
        for _ in range(200):
            careless(mutated(b'{"a": 1}', draw))

    with pytest.raises(ValueError, match=r"Expecting|Extra|decode|Invalid|Unterminated"):
        run()
