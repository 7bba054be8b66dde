"""Cells that were computed again are compared as they should be."""

from __future__ import annotations

import pytest

from regionmarker.benchmark.grid.cell import NUMBERS, Cell
from studies.recheck import cell_of, disagreements, drawn

CELL = Cell("sst2", "wordllama", "graded", ("cse", "after:rotate:3"), "head:@minilm", "copy", 500, 1, "@minilm",
            parameters=(("strength", 0.1),))  # fmt: skip
ROW = {**CELL.columns(), **dict.fromkeys(NUMBERS, 0.5), "decoy_p": 1e-20, "error": None, "published_copy": True}


def test_a_row_knows_its_cell():
    assert cell_of(ROW) == CELL


def test_a_draw_is_the_same_again_and_holds_no_row_twice():
    rows = [{"seed": number} for number in range(100)]
    assert drawn(rows, 0.05, 0) == drawn(rows, 0.05, 0) != drawn(rows, 0.05, 1)
    assert len({row["seed"] for row in drawn(rows, 0.3, 0)}) == 30
    assert drawn(rows, 1e-9, 0)


@pytest.mark.parametrize(
    "changed",
    [
        {"overlap": 0.502}, {"overlap": None}, {"overlap": float("nan")}, {"decoy_p": 1e-22}, {"decoy_p": None},
        {"decoy_p": 2e-3}, {"published_copy": False}, {"error": "too few texts"}, {"served_f1": 0.52},
    ],
)  # fmt: skip
def test_what_differs_is_told(changed):
    assert disagreements(ROW, {**ROW, **changed})


def test_rounding_times_and_what_was_not_measured_do_not_differ():
    after = {**ROW, "overlap": 0.5 + 1e-7, "served_f1": 0.495, "decoy_p": 1.01e-20, "seconds_fit": 9.0}
    assert disagreements(ROW, after) == []
    assert disagreements({**ROW, "stolen_sts": None}, after) == []


def test_a_verdict_that_turns_is_told_however_near():
    assert disagreements({**ROW, "decoy_p": 0.999e-3}, {**ROW, "decoy_p": 1.001e-3}) == ["caught: True / False"]
