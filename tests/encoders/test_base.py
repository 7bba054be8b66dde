"""One check for all answers: an encoder's now, a suspect's later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from regionmarker.encoders import CheckedEncoder, ObjectEncoder, check_answer
from regionmarker.errors import InputError, OutsideError


def grid16(rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.float16).astype(np.float32)


def gridb16(rows: np.ndarray) -> np.ndarray:
    return ((rows.astype(np.float32).view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)


@pytest.mark.parametrize("grid", [grid16, gridb16, lambda rows: rows.astype(np.float32)])
@pytest.mark.parametrize("width", [4, 64, 1536])
def test_rows_on_the_grid_of_the_upstream_stay_on_it_bit_for_bit(grid: Any, width: int) -> None:
    rows = np.random.default_rng(1).normal(size=(500, width))
    served = grid(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    assert check_answer(served, range(500), source="s").tobytes() == served.tobytes()


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64]),
        st.tuples(st.integers(1, 6), st.integers(1, 9)),
        elements=st.floats(0.125, 100, width=16),
    )
)
def test_other_rows_are_normalised_each_by_itself(rows: np.ndarray) -> None:
    checked = check_answer(rows, range(len(rows)), source="s")
    assert checked.dtype == np.float32
    assert np.allclose(np.linalg.norm(checked.astype(np.float64), axis=1), 1, atol=2**-8)
    alone = np.vstack([check_answer(row[None], [0], source="s") for row in rows])
    assert np.array_equal(checked, alone)


def test_the_answer_is_a_copy() -> None:
    buffer = np.eye(2, dtype=np.float32)
    checked = check_answer(buffer, range(2), source="s")
    buffer[:] = 9
    assert np.array_equal(checked, np.eye(2))


def test_numbers_too_large_or_small_for_float32_are_scaled_first() -> None:
    assert np.allclose(check_answer([[3e100, 4e100], [3e-100, 4e-100]], range(2), source="s"), [[0.6, 0.8]] * 2)


GOOD = [1.0, 0.0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([GOOD, GOOD, [np.nan, 1.0]], "^it gave a vector that is not finite for text 12$"),
        ([GOOD, [np.inf, 1.0], GOOD], "^it gave a vector that is not finite for text 11$"),
        ([[0.0, 0.0], GOOD, GOOD], "^it gave a zero vector for text 10$"),
        ([GOOD, GOOD], "^it was asked 3 texts and gave 2 vectors$"),
        ([GOOD] * 4, "^it was asked 3 texts and gave 4 vectors$"),
        ([GOOD, GOOD, [1.0]], "^it changed its width: 2 before, 1 from text 12 on$"),
        (np.eye(3), "^it changed its width: 2 before, 3 from text 10 on$"),
        ([1.0, 2.0, 3.0], r"shape \(3,\)"),
        ([[], [], []], r"shape \(3, 0\)"),
        (np.ones((3, 2, 2)), r"shape \(3, 2, 2\)"),
        ([["a", "b"]] * 3, "must give numbers"),
        (np.ones((3, 2), dtype=complex), "must give numbers"),
        (None, r"shape \(\)"),
        ([GOOD, None, GOOD], "gave a list"),
        ([[10**400, 1]] * 3, "must give numbers"),
    ],
)
def test_what_is_wrong_is_said_with_the_position_of_the_text(answer: Any, message: str) -> None:
    for kind in (InputError, OutsideError):
        with pytest.raises(kind, match=message):
            check_answer(answer, [10, 11, 12], source="it", width=2, error=kind)


def test_positions_count_through_the_batches() -> None:
    class Broken:
        def encode(self, texts: list[str]) -> np.ndarray:
            return np.array([[0.0 if text == "bad" else 1.0] for text in texts])

    mine = Broken()
    mine.batch_size = 2  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"^Broken gave a zero vector for text 3$"):
        ObjectEncoder(mine).encode(["a", "b", "c", "bad", "e"])


def test_a_width_that_changes_from_call_to_call_is_noticed() -> None:
    class Growing:
        width = 0

        def encode(self, texts: list[str]) -> np.ndarray:
            self.width += 1
            return np.ones((len(texts), self.width))

    encoder = ObjectEncoder(Growing())
    encoder.encode(["a"])
    with pytest.raises(InputError, match="changed its width: 1 before, 2 from text 0 on"):
        encoder.encode(["a"])


def test_an_object_without_usable_extras_gets_defaults() -> None:
    class Odd:
        name = 7
        batch_size = "many"
        revision = print

        def encode(self, texts: Sequence[str]) -> list[list[int]]:
            return [[3, 4]] * len(texts)

    encoder = ObjectEncoder(Odd())
    assert (encoder.name, encoder.batch_size, encoder.revision) == ("Odd", None, "")
    assert np.allclose(encoder.encode(["a"]), [[0.6, 0.8]])


def test_a_batch_holds_at_least_one_text() -> None:
    class Any_(CheckedEncoder):
        def _embed(self, texts: list[str], positions: Sequence[int]) -> object:
            return np.ones((len(texts), 1))

    with pytest.raises(InputError, match="batch_size must be at least 1"):
        Any_("any", batch_size=0)
