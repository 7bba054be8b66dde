"""A cell's digest covers everything that can change its result, and nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from regionmarker.benchmark.grid import Cell
from regionmarker.benchmark.grid.inputs import encoder_identity, source_digest, versions

CELL = Cell("sst2", "wordllama", "wet", ("shift:1",), "head:@small", "copy", queries=10, seed=1, public="@small")
OTHER = {
    "attacks": ("shift:2",),
    "queries": 11,
    "seed": 2,
    "limit": 5,
    "parameters": (("strength", 0.1),),
    "stealer": "head:@small,hidden=0",
}


def digest(cell=CELL, corpus="c", encoders=None, known=None):
    return cell.digest(corpus, encoders or {"small": "wordllama"}, known or {"numpy": "2"})


@pytest.mark.parametrize("name", [field.name for field in fields(Cell)])
def test_every_field_counts(name):
    assert digest(replace(CELL, **{name: OTHER.get(name, "other")})) != digest()


def test_so_do_corpus_encoders_and_versions():
    others = {digest(corpus="d"), digest(encoders={"small": "other"}), digest(known={"numpy": "3"})}
    assert len(others | {digest()}) == 4
    assert digest(encoders={"small": "wordllama", "unused": "x"}) == digest()


def test_source_and_libraries_are_among_the_versions():
    assert versions()["source"] == source_digest()
    assert {"numpy", "scipy", "python"} <= versions().keys()


def test_a_folder_is_known_by_what_is_in_it(tmp_path):
    for name, content in (("one", "a"), ("two", "a"), ("three", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text(content)
    one, two, three = (encoder_identity(f"sentence-transformers:{tmp_path / name}") for name in ("one", "two", "three"))
    assert one == two != three
    asked = encoder_identity(f"sentence-transformers:{tmp_path / 'one'}#query:")
    assert asked not in (one, encoder_identity(f"sentence-transformers:{tmp_path / 'one'}#passage:"))
    files = [encoder_identity(f"onnx:{tmp_path / name / 'weights'}") for name in ("one", "two", "three")]
    assert files[0] == files[1] != files[2]


def test_cells_know_what_they_share():
    marked = replace(CELL, parameters=(("strength", 0.1),))
    assert marked.theft == CELL.theft != replace(CELL, defense="none").theft
    assert replace(CELL, suspect="unmarked copy").theft == replace(CELL, defense="none").theft == CELL.shared
    assert replace(CELL, suspect="provider", attacks=()).served == CELL.served != replace(CELL, defense="none").served
    assert replace(CELL, defense="none").split == CELL.split != replace(CELL, seed=2).split
    turned = replace(CELL, attacks=("shift:1", "after:rotate:3"))
    tuned = replace(CELL, attacks=("shift:1", "finetune:enron"))
    assert turned.trained == tuned.trained == CELL.trained != replace(CELL, attacks=("shift:2",)).trained
    assert turned.theft != CELL.theft
    for name in ("theft", "trained", "served", "split", "shared"):
        shared = getattr(CELL, name)
        assert getattr(shared, name) == shared
