"""Curves: each comes with what it needs, and not without."""

from __future__ import annotations

from regionmarker.benchmark.figures.curves import curves
from regionmarker.benchmark.tables.results import Results


def names(rows) -> list[str]:
    return [name for name, _, _ in curves(Results(rows))]


def test_without_innocents_there_are_no_false_positives(rows):
    guilty = [row for row in rows if row["guilty"]]
    assert "false-positives" in names(rows)
    assert "false-positives" not in names(guilty)
    assert "fidelity" in names(guilty)


def test_without_copies_nothing_is_caught(rows):
    innocent = [row for row in rows if not row["guilty"]]
    assert not {"fidelity", "attacks", "trade-off"} & set(names([row for row in innocent if row["suspect"] != "copy"]))


def test_every_caption_is_a_sentence(rows):
    assert all(caption.endswith(".") for _, caption, _ in curves(Results(rows)))
