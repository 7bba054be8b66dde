"""What attacks cost and leave: one line per attack, the rotated copies beside the others, prices of the unrotated."""

from __future__ import annotations

from regionmarker.benchmark.tables.prices import prices
from regionmarker.benchmark.tables.results import Results, without_seeds

TURN = "after:rotate:{seed}"


def lines_of(rows):
    (table,) = prices(without_seeds(rows))
    return table.columns, {line[0]: line for line in table.rows}


def several(result_row, attacks, **columns):
    """Return two copies per attack, and two that were rotated after it."""
    found = []
    for seed in (1, 2):
        plain = list(attacks)
        turned = [*attacks, TURN.format(seed=seed)]
        found += [result_row(seed=seed, attacks=each, **columns) for each in (plain, turned)]
    return found


def test_copies_stand_beside_the_rotated_ones(result_row):
    rows = [
        *several(result_row, [], defense="wet", p=1e-9, clean_fidelity=0.7, stolen_accuracy=0.8, stolen_sts=0.6),
        *several(result_row, ["cse"], defense="wet", p=0.2, clean_fidelity=0.4, stolen_accuracy=0.7, stolen_sts=0.5),
    ]
    rows[1]["decoy_p"] = 1e-4  # the first rotated one
    heads, lines = lines_of(rows)
    assert heads == ("attack", "fidelity", "accuracy", "STS-B", "WET", "WET, rotated", "blameless caught")
    assert lines["none"][1:6] == ("0.70", "80.0", "60.0", "2 of 2 (1e-09)", "2 of 2 (1e-04)")
    assert lines["cse"][1:6] == ("0.40", "70.0", "50.0", "0 of 2 (0.20)", "0 of 2 (0.20)")


def test_a_mark_that_did_not_meet_an_attack_has_a_dash(result_row):
    rows = [
        *several(result_row, [], defense="wet", p=1e-9, clean_fidelity=0.7, stolen_accuracy=0.8, stolen_sts=0.6),
        *several(
            result_row, ["cse"], defense="warden", p=1e-9, clean_fidelity=0.6, stolen_accuracy=0.8, stolen_sts=0.6
        ),
    ]
    heads, lines = lines_of(rows)
    assert heads[4:8] == ("WET", "WET, rotated", "WARDEN", "WARDEN, rotated")
    assert lines["cse"][1] == "0.60"  # of the first that met it
    assert lines["cse"][4:6] == ("-", "-")


def test_the_prices_of_rotated_copies_are_left_out(result_row):
    """Their axes are unknown, so their fidelity to the clean vectors says nothing."""
    rows = several(result_row, [], defense="wet", p=1e-9, clean_fidelity=0.7, stolen_accuracy=0.8, stolen_sts=0.6)
    for row in rows:
        row["clean_fidelity"] = 0.7 if row["attack"] == "none" else 0.0
    assert lines_of(rows)[1]["none"][1] == "0.70"


def test_blameless_suspects_stand_beside(result_row):
    rows = several(result_row, [], defense="wet", p=1e-9, clean_fidelity=0.7, stolen_accuracy=0.8, stolen_sts=0.6)
    rows += several(result_row, [], defense="wet", suspect="unmarked copy", p=0.5)
    assert lines_of(rows)[1]["none"][-1] == "0 of 4"


def test_without_rotations_there_is_no_table(result_row):
    assert not list(prices(Results([result_row("wet", "cse", p=1e-9)])))
