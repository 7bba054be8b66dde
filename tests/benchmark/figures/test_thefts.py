"""The figure of thefts: drawn where thieves differ in what they bought and in how well they copied, and only there."""

from __future__ import annotations

from regionmarker.benchmark.figures.thefts import thefts
from regionmarker.benchmark.tables.results import Results
from regionmarker.plots import svg


def rows_of(result_row):
    found = []
    for attack, p in (("none", 1e-20), ("after:rotate:1", 1e-4)):
        named = {"attack": attack, "attacks": [] if attack == "none" else [attack]}
        found += [result_row("graded", queries=queries, p=p) | named for queries in (250, 500, 1000)]
        for fidelity in (0.3, 0.5, 0.7):
            row = result_row("graded", stealer=f"simulated:{fidelity}", clean_fidelity=fidelity, p=p)
            found.append(row | named)
    return found


def test_trained_and_simulated_copies_stand_apart(result_row):
    ((name, _, draw),) = thefts(Results(rows_of(result_row)))
    picture = svg(name, draw)
    for words in ("trained copies", "simulated copies", "texts bought", "rotated", "as it is", "1,000"):
        assert words in picture


def test_one_number_of_texts_is_no_curve(result_row):
    rows = [row for row in rows_of(result_row) if row["queries"] == 250]
    assert not list(thefts(Results(rows)))


def test_several_defenses_are_not_mixed(result_row):
    rows = rows_of(result_row)
    assert not list(thefts(Results([*rows, result_row("wet", queries=250)])))
