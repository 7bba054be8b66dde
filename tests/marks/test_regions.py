"""The regions: normals, numbers, and which of them are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.marks import MARKS, SERVED_MARKS
from regionmarker.marks.regions import RegionMark, draw_normals, draw_regions, region_numbers, region_shares
from regionmarker.marks.served_regions import ServedRegions

MASTER = Secret(b"k" * 32)


def test_key_files_know_them_by_one_name():
    assert (MARKS["regions"], SERVED_MARKS["regions"]) == (RegionMark, ServedRegions)


@pytest.mark.parametrize(("dimension", "width"), [(1, 2), (4, 4), (4, 32), (12, 256)])
def test_normals_are_orthonormal_and_the_same_every_time(dimension, width):
    normals = draw_normals(MASTER, dimension, width)
    assert np.allclose(normals @ normals.T, np.eye(dimension), atol=1e-12)
    assert np.array_equal(normals, draw_normals(MASTER, dimension, width))
    assert not np.array_equal(normals, draw_normals(Secret(b"l" * 32), dimension, width))


def test_numbers_are_the_signs_as_bits():
    signed = np.random.default_rng(0).standard_normal((200, 4))
    expected = [sum(int(value > 0) << bit for bit, value in enumerate(row)) for row in signed]
    assert region_numbers(signed).tolist() == expected
    assert np.isclose(region_shares(region_numbers(signed), 4).sum(), 1)


def test_regions_are_drawn_from_the_populated_ones_and_never_twice():
    shares = np.array([0.3, 0.0, 0.2, 0.009, 0.2, 0.1, 0.1, 0.091])
    for secret in range(40):
        provider, tenants = draw_regions(Secret(bytes([secret]) * 32), shares, 2, 3)
        assert len({*provider, *tenants}) == 5
        assert not {1, 3} & {*provider, *tenants}


def test_too_few_populated_regions_are_said():
    shares = np.array([0.5, 0.5, 0.0, 0.0])
    with pytest.raises(InputError, match=r"3 trigger regions are wanted .* but only 2 of 4 regions hold at least 1%"):
        draw_regions(MASTER, shares, 2, 1)
