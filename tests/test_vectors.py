"""What counts as a usable matrix of embeddings, and what is said of one that is not."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.errors import InputError
from regionmarker.vectors import as_floats, as_matrix, check_rows, normalised


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_taken_as_they_are(dtype: type) -> None:
    rows = np.eye(3, dtype=dtype)
    assert as_matrix(rows) is rows
    floats = as_floats(np.asfortranarray(rows))
    assert floats.dtype == np.float32
    assert floats.flags.c_contiguous


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0], [1.0, 0.0]], "its rows have different lengths"),
        ([1.0, 0.0], r"one row per text, but has shape \(2,\)"),
        ([[1, 0]], "must be float16, float32 or float64, but has dtype int64"),
        ([["a"]], "must be float16, float32 or float64"),
        (np.empty((2, 0)), "probes has no columns"),
        (np.ones((2, 3)), "probes has width 3, but the key was made for width 2"),
    ],
)
def test_what_is_no_matrix_of_floats_is_refused(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_matrix(given, width=2 if isinstance(given, np.ndarray) and given.shape[1] else None, what="probes")


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "holds NaN or infinity"), (np.inf, "holds NaN or infinity"), (0.0, "is zero"), (2.0, "has length 2")],
)
def test_the_first_bad_row_is_named_and_all_are_counted(value: float, message: str) -> None:
    rows = np.tile(np.array([1.0, 0.0], dtype=np.float32), (5000, 1))
    check_rows(rows)
    rows[4500:4502, 0] = value
    with pytest.raises(InputError, match=rf"row 4510 {message}: .*\(2 such rows in all\)"):
        check_rows(rows, first_row=10)


def test_rows_are_scaled_each_by_itself_and_what_has_no_direction_is_refused() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 1e-20]], dtype=np.float32)
    assert normalised(rows).tolist() == np.array([[0.6, 0.8], [0.0, 1.0]], dtype=np.float32).tolist()
    rows[1] = 0
    with pytest.raises(InputError, match=r"row 8 is zero: .*\(1 such row in all\)"):
        normalised(rows, first_row=7)
    many = np.ones((300, 4), dtype=np.float32)
    many[130], many[290] = np.nan, 0
    with pytest.raises(InputError, match=r"row 130 .*\(2 such rows in all\)"):
        normalised(many)
