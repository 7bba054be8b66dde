"""Grid files: what they mean, and one sentence about what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from regionmarker.benchmark.grid import Grid
from regionmarker.benchmark.grid.run import check_grid
from regionmarker.errors import InputError

GRIDS = sorted((Path(__file__).parents[3] / "studies" / "grids").glob("*.toml"))
BLOCK = """
[[block]]
corpora = ["python"]
provider = "wordllama"
defenses = ["regionmarker"]
"""


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_the_grids_of_the_project_are_sound(path):
    grid = Grid.read(path)
    assert len(grid.cells) == len(set(grid.cells)) > 0
    stored = [cell for cell in grid.cells if cell.provider.startswith("stored:")]
    if not stored:
        check_grid(grid)


def test_parameters_are_multiplied_and_filled_in():
    grid = Grid.parse(
        BLOCK.replace('"regionmarker"', '"regionmarker:strength={strength}", "wet"')
        + 'attacks = ["permute:{seed}"]\nseeds = [1, 2]\nsuspects = ["copy"]\n'
        + "[block.parameters]\nstrength = [0.1, 0.2]\n"
    )
    assert [(cell.defense, cell.attacks, cell.parameters) for cell in grid.cells if cell.seed == 2] == [
        ("regionmarker:strength=0.1", ("permute:2",), (("strength", 0.1),)),
        ("regionmarker:strength=0.2", ("permute:2",), (("strength", 0.2),)),
        ("wet", ("permute:2",), ()),  # once: it has no strength
    ]


def test_who_buys_nothing_is_not_attacked():
    grid = Grid.parse(BLOCK + 'attacks = ["none", "shift:1"]\nsuspects = ["copy", "provider"]\n')
    assert [(cell.suspect, cell.attack) for cell in grid.cells] == [
        ("copy", "none"),
        ("provider", "none"),
        ("copy", "shift:1"),
    ]


def test_without_a_mark_both_copies_are_the_same():
    grid = Grid.parse(BLOCK.replace("regionmarker", "none:pool=64") + 'suspects = ["copy", "unmarked copy"]\n')
    assert [(cell.suspect, cell.guilty) for cell in grid.cells] == [("copy", False)]


def test_portraits_come_first_and_alone():
    grid = Grid.parse(BLOCK + 'suspects = ["copy", "portrait"]\nstealers = ["tokens"]\n')
    first, *others = grid.batches()
    assert [cell.suspect for cell in first] == ["portrait"]
    assert "portrait" not in {cell.suspect for batch in others for cell in batch}


def test_batches_share_the_unmarked_thief():
    grid = Grid.parse(BLOCK.replace('"regionmarker"', '"wet", "warden"') + 'attacks = ["none", "shift:1"]\n')
    batches = grid.batches()
    assert sorted(len(batch) for batch in batches) == [4, 4, 4]  # two attacks, and the innocents that nobody made
    assert {cell for batch in batches for cell in batch} == set(grid.cells)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corpora = [", "is not TOML"),
        ("", r"has no \[\[block\]\]"),
        ("[[blocks]]\n", "unknown table 'blocks'"),
        (BLOCK + "speed = 3\n", "block 1: unknown entry 'speed'"),
        (BLOCK.replace('corpora = ["python"]\n', ""), "block 1 has no corpora"),
        (BLOCK + 'seeds = ["one"]\n', "seeds cannot hold 'one'"),
        (BLOCK + "queries = [0]\n", "queries must be positive"),
        (BLOCK + "attacks = []\n", "attacks must be a list with at least one entry"),
        (BLOCK + 'stealers = ["head:@minilm"]\n', "@minilm is not among its"),
        (BLOCK.replace('"regionmarker"', '"wet:taps={taps}"'), "'taps', which is no parameter"),
    ],
)
def test_what_is_wrong_is_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        Grid.parse(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"regionmarker"', '"garlic"', "unknown defense 'garlic'"),
        ('"python"', '"brown"', "unknown corpus 'brown'"),
        ('"wordllama"', '"stored:mpnet768"', "lies in a data folder: give --data-dir"),
        ('"wordllama"', '"word2vec"', "unknown encoder 'word2vec'"),
        ("[[block]]", '[[block]]\nattacks = ["tickle"]', "unknown attack 'tickle'"),
        ("[[block]]", '[[block]]\nstealers = ["fox"]', "unknown stealer 'fox'"),
        ("[[block]]", '[[block]]\nstealers = ["head:gloves"]', "unknown encoder 'gloves'"),
        ("[[block]]", '[[block]]\nsuspects = ["word2vec"]', "unknown encoder 'word2vec'"),
    ],
)
def test_unknown_parts_are_told_before_anything_is_computed(monkeypatch, old, new, message):
    monkeypatch.delenv("REGIONMARKER_DATA", raising=False)
    with pytest.raises(InputError, match=message):
        check_grid(Grid.parse(BLOCK.replace(old, new)))


def test_other_encoders_may_stand_behind_the_names():
    grid = Grid.parse('[encoders]\nsmall = "wordllama"\n' + BLOCK)
    assert dict(grid.with_encoders({"small": "sentence-transformers:here"}).encoders)["small"].endswith("here")
    with pytest.raises(InputError, match="--encoder large: the grid names no such encoder; it names small"):
        grid.with_encoders({"large": "wordllama"})
