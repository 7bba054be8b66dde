"""Sums of rows: nothing is mixed that differs, intervals are exact, blameless suspects stand beside."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from regionmarker.benchmark.tables.results import Results, clopper_pearson, without_seeds
from regionmarker.benchmark.tables.summary import Tally, chosen, groups, summary
from regionmarker.errors import InputError


@pytest.mark.parametrize(("hits", "count"), [(0, 12), (5, 12), (12, 12), (60, 64)])
def test_the_interval_is_the_exact_one(hits, count):
    """Both ends leave 2.5 % on their side; at the borders one side is closed."""
    low, high = clopper_pearson((hits, count))
    assert low == 0 if hits == 0 else binom.sf(hits - 1, count, low) == pytest.approx(0.025)
    assert high == 1 if hits == count else binom.cdf(hits, count, high) == pytest.approx(0.025)


def test_the_interval_covers():
    """Of 2,000 shares that were drawn, at least 95 % lie in their intervals (binomial band of 99.9 %)."""
    rng = np.random.default_rng(1)
    shares = rng.uniform(size=2000)
    ends = [clopper_pearson((int(rng.binomial(20, part)), 20)) for part in shares]
    covered = sum(low <= part <= high for part, (low, high) in zip(shares, ends, strict=True))
    assert covered >= binom.ppf(0.001, 2000, 0.95)


def test_copies_and_blameless_suspects_are_counted_apart(rows):
    found = Tally(chosen(without_seeds(rows), {"scheme": ["wet"]}))
    assert found.caught == (6, 8)
    assert found.blameless(1e-3) == (0, 8)
    assert found.numbers()["blameless_caught_at_0.05"] == 0
    assert found.p_values == [1e-6] * 6 + [0.4] * 2


def test_a_level_is_met_by_equality(rows):
    of = chosen(without_seeds(rows), {"scheme": ["wet"], "attack": ["cse"]})
    assert Tally(of, 1e-6).caught == (2, 2)
    assert Tally(of, 0.9e-6).caught == (0, 2)


def test_what_cannot_be_judged_is_not_caught_and_what_failed_is_not_counted(result_row):
    rows = [result_row("wet", p=None), result_row("wet", seed=1, p=1e-9, error="too few texts")]
    assert Tally(Results(rows)).caught == (0, 1)
    assert Tally(Results(rows)).numbers()["failed"] == 1


def test_neighbours_are_counted_once_per_key(result_row):
    rows = [result_row("wet", attack, overlap=0.8) for attack in ("none", "cse", "shift:100")]
    rows.append(result_row("wet", seed=1, overlap=0.9))
    assert Tally(Results(rows)).kept == pytest.approx(0.85)


def test_a_copy_that_learnt_turned_vectors_has_no_fidelity_to_clean_ones(result_row):
    rows = [
        result_row("wet", "shift:100", clean_fidelity=0.002),
        result_row("wet", "cse", clean_fidelity=float("nan")),
    ]
    assert Tally(Results(rows)).fidelity is None
    assert Tally(Results([*rows, result_row("wet", clean_fidelity=0.6)])).fidelity == pytest.approx(0.6)


def test_nothing_is_mixed_that_differs(result_row):
    rows = [result_row("wet"), result_row("wet", queries=9), result_row("wet", provider="q"),
            result_row("wet", stealer="other"), result_row("graded"), result_row("wet", "cse"),
            result_row("wet", seed=1), result_row("wet", corpus="mind")]  # fmt: skip
    (table,) = summary(Results(rows))
    assert table.columns[:5] == ("defense", "provider", "stealer", "queries", "attack")
    assert {line[:5]: line[5] for line in table.rows}["WET", "p", "head", "4000", "none"] == "0 of 3"
    assert len(table.rows) == 6


def test_what_is_the_same_in_all_lines_is_said_once(rows):
    of = chosen(without_seeds(rows), {"defense": ["wet"]})
    (table,) = summary(of, level=9e-4)
    assert table.columns[:3] == ("attack", "caught", "95 %")
    assert table.rows[0][:4] == ("none", "2 of 2", "0.16 to 1.00", "0 of 2 (0 at 0.05)")
    assert table.note.startswith("Defense WET; provider p; stealer head; queries 4000; caught at 0.0009.")


def test_nothing_gives_no_table():
    assert list(summary(Results([]))) == []


def test_unknown_columns_are_refused(rows):
    with pytest.raises(InputError, match="no column 'colour'"):
        chosen(Results(rows), {"colour": ["red"]})
    with pytest.raises(InputError, match="no column 'colour'"):
        groups(Results(rows), ["colour"])
