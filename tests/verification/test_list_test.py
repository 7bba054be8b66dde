"""The exact test over lists: brute force agrees, innocents are uniform, mistakes are refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from regionmarker.errors import InputError
from regionmarker.verification.list_test import STEP, ListTest


def brute_force(test: ListTest, targets: tuple[int, ...]) -> float:
    sums = np.array([sum(drawn) for drawn in product(*test.steps)])
    wanted = abs(round(float(test.totals(np.array([targets]))[0]) / STEP))
    return float((np.abs(sums) >= wanted).mean())


@pytest.mark.parametrize(("carriers", "size"), [(1, 5), (2, 8), (4, 6)])
def test_p_is_brute_force(carriers, size):
    rng = np.random.default_rng(carriers)
    test = ListTest(rng.standard_normal((carriers, size)), rng.uniform(0.1, 1.0, carriers))
    for targets in product(*(range(j * size, (j + 1) * size) for j in range(carriers))):
        assert test.p_value(targets) == pytest.approx(brute_force(test, targets), rel=1e-9)


def test_both_sides_count():
    z = np.zeros((1, 10))
    z[0, 2], z[0, 7] = 4.0, -4.0
    test = ListTest(z, np.ones(1))
    assert test.p_value((2,)) == test.p_value((7,)) == pytest.approx(0.2)


def test_innocents_are_uniform_at_every_level():
    rng = np.random.default_rng(5)
    test = ListTest(rng.standard_normal((24, 64)), np.full(24, 0.2))
    tuples = rng.integers(0, 64, (200_000, 24)) + 64 * np.arange(24)
    p = test.p_values(tuples)
    for level in (0.5, 0.05, 1e-3):
        error = np.sqrt(level * (1 - level) / len(p))
        assert abs((p <= level).mean() - level) < 4 * error


def test_small_p_values_are_relative_not_absolute():
    z = np.full((24, 64), -1.0)
    z[:, 0] = 3.0  # one candidate per list stands out
    test = ListTest(z, np.full(24, 0.2))
    assert test.p_value(tuple(64 * np.arange(24))) == pytest.approx(64.0**-24, rel=1e-6)
    assert test.floor == 64.0**-24


def test_mistakes_are_refused():
    good = np.zeros((2, 4))
    with pytest.raises(InputError, match="finite numbers"):
        ListTest(np.full((2, 4), np.nan), np.ones(2))
    with pytest.raises(InputError, match="2 carriers, but weights"):
        ListTest(good, np.ones(3))
    with pytest.raises(InputError, match="one column per candidate"):
        ListTest(np.zeros((4, 1)), np.ones(4))
    with pytest.raises(InputError, match="does not come from its carrier's list"):
        ListTest(good, np.ones(2)).p_value((5, 1))
    with pytest.raises(InputError, match="does not fit 2 carriers"):
        ListTest(good, np.ones(2)).p_value((1,))
