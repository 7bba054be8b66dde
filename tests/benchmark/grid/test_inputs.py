"""What identifies a cell: every module that its numbers come from counts, and what only shows them does not."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import regionmarker
from regionmarker.benchmark.grid import Grid
from regionmarker.benchmark.grid.experiment import compute
from regionmarker.benchmark.grid.inputs import GridInputs, source_digest
from regionmarker.benchmark.grid.parts import CellParts
from regionmarker.encoders import load_encoder

PACKAGE = Path(regionmarker.__file__).parent
SHOWS = (
    "benchmark/figures/curves.py",
    "benchmark/page/page.css",
    "benchmark/tables/leaderboard.py",
    "cli/bench.py",
    "errors.py",
    "evidence/report.py",
    "gateway/app.py",
    "plots.py",
)
SAYS_ONLY = {"errors.py", "progress.py"}  # on the walk, and no number comes from them


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package that a test may change."""
    root = tmp_path_factory.mktemp("source") / "regionmarker"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def changed_by(root, name):
    """Return whether a change of one file changes the digest."""
    path = root / name
    before, kept = source_digest.__wrapped__(root), path.read_bytes()
    path.write_bytes(kept + b"\n# another line\n")
    after = source_digest.__wrapped__(root)
    path.write_bytes(kept)
    return before != after


@pytest.fixture(scope="module")
def walk(corpus_file):
    """The modules that three cells walk through: a stolen copy after an attack, of a rival and of RegionMarker."""
    grid = Grid.parse(
        f'[[block]]\ncorpora = ["{corpus_file}"]\nprovider = "wordllama"\npublic = "wordllama"\nqueries = [300]\n'
        'defenses = ["regionmarker:pool=128", "wet:pool=128,probes=64", "embmarker:pool=128,high=0.1"]\n'
        'attacks = ["cse:clusters=2"]\nstealers = ["head:wordllama,hidden=0"]\nsuspects = ["copy"]\n'
    )
    entered = set()

    def enter(frame, event, _):
        if event == "call":
            entered.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        inputs = GridInputs({}, {})
        inputs.gather(grid, None, load_encoder)
        inputs.embed(grid.cells, load_encoder)
        parts = CellParts(inputs)
        rows = [compute(cell, parts) for cell in grid.cells]
    finally:
        sys.setprofile(before)
    assert [row.get("error") for row in rows] == [None] * 3
    files = [Path(name) for name in entered if name.startswith(str(PACKAGE))]
    return {path.relative_to(PACKAGE).as_posix() for path in files}


def test_every_module_on_a_cells_walk_counts(copy, walk):
    assert len(walk) > 30
    assert {"benchmark/grid/parts.py", "benchmark/grid/experiment.py", "measures.py", "vectors.py"} <= walk
    assert [name for name in sorted(walk - SAYS_ONLY) if not changed_by(copy, name)] == []


@pytest.mark.parametrize("name", SHOWS)
def test_what_only_shows_or_says_does_not_count(copy, name):
    assert not changed_by(copy, name)


def test_what_is_new_counts_until_somebody_says_otherwise(copy):
    before = source_digest.__wrapped__(copy)
    (copy / "marks" / "another.py").write_text("STRENGTH = 0.2\n")
    assert source_digest.__wrapped__(copy) != before


def test_a_table_of_paraphrases_counts_by_what_is_in_it(corpus_file, tmp_path):
    from regionmarker.benchmark.attacks.paraphrasers import write_table
    from regionmarker.benchmark.grid.inputs import _file_digest

    def digest(said):
        _file_digest.cache_clear()
        write_table(tmp_path / "said.parquet", ["a"], [[said]])
        grid = Grid.parse(
            f'[[block]]\ncorpora = ["{corpus_file}"]\nprovider = "wordllama"\ndefenses = ["none"]\n'
            f'attacks = ["paraphrase:texts=paraphrased,table:{tmp_path}/said.parquet"]\nsuspects = ["copy"]\n'
        )
        inputs = GridInputs({}, {})
        inputs.gather(grid, None, load_encoder)
        return inputs.digests(grid.cells)[grid.cells[0]]

    assert digest("b") == digest("b") != digest("c")


class Counted:
    """An encoder that remembers how many texts it was given at a time."""

    name = "counted"

    def __init__(self):
        self.sizes = []

    def encode(self, texts, /):
        self.sizes.append(len(texts))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_embedding_tells_how_far_it_is_and_changes_no_vector(corpus_file, monkeypatch):
    """The public encoder embeds for minutes, and whoever waits wants to know how many texts are left."""
    grid = Grid.parse(
        f'[[block]]\ncorpora = ["{corpus_file}"]\nprovider = "wordllama"\npublic = "wordllama"\nqueries = [300]\n'
        'defenses = ["wet:pool=128,probes=64"]\nattacks = ["noise"]\nstealers = ["head:wordllama,hidden=0"]\n'
        'suspects = ["copy"]\n'
    )
    monkeypatch.setattr("regionmarker.benchmark.grid.inputs._BLOCK", 256)
    gathered = GridInputs({}, {})
    gathered.gather(grid, None, load_encoder)
    encoder, told = Counted(), []
    gathered.embed(grid.cells, lambda _spec: encoder, lambda done, total: told.append((done, total)))
    assert told == [(0, 700), (256, 700), (512, 700), (700, 700)]
    assert encoder.sizes == [256, 256, 188]
    ((found, rows),) = gathered.features.items()
    assert found[1] == "wordllama"
    assert np.array_equal(rows, Counted().encode(gathered.corpora[found[0]].texts))
    gathered.embed(grid.cells, lambda _spec: encoder, lambda done, total: told.append((done, total)))
    assert (len(told), len(encoder.sizes)) == (4, 3)  # all is there
