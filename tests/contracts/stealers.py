"""What every stealer promises. A test module hands in a function that makes one, and calls every check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.protocols import Stealer, StolenModel
from regionmarker.benchmark.stealers import Fidelity
from regionmarker.errors import InputError

Make = Callable[..., Any]
"""Makes the stealer; takes its options, ``seed`` and ``progress`` among them."""

Check = Callable[[Make, list[str], np.ndarray], None]


def makes_a_named_model_with_a_fidelity(make: Make, texts: list[str], served: np.ndarray) -> None:
    stealer = make()
    model = stealer.steal(texts, served, clean=served[:, ::-1])
    assert isinstance(stealer, Stealer)
    assert isinstance(model, StolenModel)
    assert stealer.name
    assert model.name in repr(model)
    assert isinstance(model.fidelity, Fidelity)
    assert -1 <= model.fidelity.cosine <= 1
    assert model.fidelity.texts > 0
    assert model.fidelity.reference == "clean"
    assert make().steal(texts, served).fidelity.reference == "targets"


def answers_are_unit_rows_batch_or_not(make: Make, texts: list[str], served: np.ndarray) -> None:
    model = make().steal(texts, served)
    questions = [*texts[:5], "words it has never seen: zxqv", "東京", "!", "a much longer text " * 60]
    answers = model.encode(questions)
    assert answers.dtype == np.float32
    assert answers.shape == (9, served.shape[1])
    assert np.abs(np.linalg.norm(answers.astype(np.float64), axis=1) - 1).max() < 1e-5
    for row in (0, 3, 8):
        assert np.allclose(model.encode([questions[row]]), answers[row : row + 1], atol=1e-5)
    assert np.allclose(model.encode(questions[::-1]), answers[::-1], atol=1e-5)
    assert np.array_equal(model.encode(tuple(questions)), answers)
    assert model.encode([]).shape == (0, served.shape[1])
    assert model.encode([]).dtype == np.float32


def the_seed_decides(make: Make, texts: list[str], served: np.ndarray) -> None:
    first, second, other = (make(seed=seed).steal(texts, served) for seed in (3, 3, 4))
    assert np.array_equal(first.encode(texts), second.encode(texts))
    assert first.fidelity == second.fidelity
    assert not np.array_equal(first.encode(texts), other.encode(texts))


def a_stealer_can_steal_twice(make: Make, texts: list[str], served: np.ndarray) -> None:
    """Nothing of the first theft is left in the stealer, nor does the second change the first copy."""
    stealer = make()
    first = stealer.steal(texts, served)
    before = first.encode(texts[:20])
    stealer.steal(texts[::-1], np.ascontiguousarray(served[::-1, ::-1]))
    assert np.array_equal(first.encode(texts[:20]), before)
    assert np.array_equal(stealer.steal(texts, served).encode(texts[:20]), before)


def leaves_its_input_and_the_worlds_randomness_alone(make: Make, texts: list[str], served: np.ndarray) -> None:
    mine, same = served.copy(), list(texts)
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - whoever draws from it would not be reproducible
    make().steal(same, mine, clean=mine)
    assert np.array_equal(mine, served)
    assert same == texts
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def clean_vectors_are_not_learnt_from(make: Make, texts: list[str], served: np.ndarray) -> None:
    clean = np.random.default_rng(8).standard_normal((len(texts), 5)).astype(np.float32)
    without, beside = make().steal(texts, served), make().steal(texts, served, clean=clean)
    assert np.array_equal(without.encode(texts), beside.encode(texts))
    assert without.fidelity.cosine == beside.fidelity.cosine
    assert (without.fidelity.reference, beside.fidelity.reference) == ("targets", "clean")


def takes_float16_and_float64(make: Make, texts: list[str], served: np.ndarray) -> None:
    half = served.astype(np.float16)
    models = [make().steal(texts, half.astype(dtype)) for dtype in (np.float16, np.float32, np.float64)]
    answers = [model.encode(texts[:20]) for model in models]
    assert answers[0].dtype == np.float32
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def rows_of_any_length_are_learnt_as_unit_rows(make: Make, texts: list[str], served: np.ndarray) -> None:
    longer = make().steal(texts, served * np.float32(8))
    assert np.allclose(longer.encode(texts[:20]), make().steal(texts, served).encode(texts[:20]), atol=1e-3)


def bad_targets_are_refused(make: Make, texts: list[str], served: np.ndarray) -> None:
    for value, message in ((np.nan, "row 11 holds NaN or infinity"), (np.inf, "row 11 holds NaN or infinity")):
        broken = served.copy()
        broken[11, 2] = value
        _refuses(make, texts, broken, message)
    broken = served.copy()
    broken[11] = 0
    _refuses(make, texts, broken, "row 11 is zero")
    _refuses(make, texts, served[0], "2-d array")
    _refuses(make, texts, np.full(served.shape, "x"), "float16, float32 or float64")


def texts_and_targets_must_match(make: Make, texts: list[str], served: np.ndarray) -> None:
    count = len(texts)
    _refuses(make, texts[1:], served, f"{count - 1} texts but {count} targets")
    _refuses(make, ["", *texts[1:]], served, "text 0 is empty")
    _refuses(make, "one text", served, "one string was given")
    with pytest.raises(InputError, match=f"{count} targets but 3 clean vectors"):
        make().steal(texts, served, clean=served[:3])


def progress_is_told(make: Make, texts: list[str], served: np.ndarray) -> None:
    seen: list[tuple[int, int]] = []
    stealer = make(progress=lambda done, total: seen.append((done, total)))
    stealer.steal(texts, served)
    if getattr(stealer, "hidden", 1) != 0:  # a linear head is solved at one stroke
        assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
        assert 0 < len(seen) <= seen[0][1]


EVERY: Sequence[Check] = (
    makes_a_named_model_with_a_fidelity,
    answers_are_unit_rows_batch_or_not,
    the_seed_decides,
    a_stealer_can_steal_twice,
    leaves_its_input_and_the_worlds_randomness_alone,
    clean_vectors_are_not_learnt_from,
    takes_float16_and_float64,
    rows_of_any_length_are_learnt_as_unit_rows,
    bad_targets_are_refused,
    texts_and_targets_must_match,
    progress_is_told,
)
"""For every stealer."""


def targets_of_another_width_make_a_model_of_that_width(make: Make, texts: list[str], served: np.ndarray) -> None:
    model = make().steal(texts, served[:, 50:221], clean=served)
    assert model.encode(texts[:2]).shape == (2, 171)
    assert model.fidelity.cosine > 0.1


def it_learns_something(make: Make, texts: list[str], served: np.ndarray) -> None:
    """Better than chance on texts that it never saw; most stealers do far better."""
    assert make().steal(texts, served).fidelity.cosine > 0.2


def too_few_texts_are_refused(make: Make, texts: list[str], served: np.ndarray) -> None:
    for count in (0, 1, 19):
        few = f"at least 20 distinct texts to train on, but there are {count}"
        _refuses(make, texts[:count], served[:count], few)
    _refuses(make, ["the same"] * 50, np.repeat(served[:1], 50, axis=0), "at least 20 distinct texts")
    assert make().steal(texts[:20], served[:20]).fidelity.texts >= 1


def the_share_held_out_must_leave_something(make: Make, texts: list[str], served: np.ndarray) -> None:
    for share in (0.0, 1.0, -1.0, 0.999):
        with pytest.raises(InputError, match="held_out"):
            make(held_out=share).steal(texts, served)


TRAINED: Sequence[Check] = (
    targets_of_another_width_make_a_model_of_that_width,
    it_learns_something,
    too_few_texts_are_refused,
    the_share_held_out_must_leave_something,
)
"""For every stealer that trains."""


def a_saved_model_answers_as_before(model: Any, folder: Any, texts: list[str]) -> None:
    """For models that have ``save`` and ``load``."""
    model.save(folder)
    again = type(model).load(folder)
    assert np.array_equal(again.encode(texts), model.encode(texts))
    np.testing.assert_equal(asdict(again.fidelity), asdict(model.fidelity))  # what was not measured is NaN
    assert again.name == model.name
    with pytest.raises(InputError, match="exists already"):
        model.save(folder)


def _refuses(make: Make, texts: Any, targets: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make().steal(texts, targets)
