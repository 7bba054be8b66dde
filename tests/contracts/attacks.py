"""What every attack promises. A test module hands in the attack and stolen data, and calls every check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from regionmarker.benchmark.attacks import load_attack
from regionmarker.benchmark.protocols import DataAttack, StolenData
from regionmarker.errors import InputError

Check = Callable[[DataAttack, StolenData], None]


def gives_unit_float32_rows_one_for_each_text_left(attack: DataAttack, stolen: StolenData) -> None:
    attacked = attack.apply(stolen)
    assert attacked.vectors.dtype == np.float32
    assert attacked.vectors.shape[0] == len(attacked.texts) > 0
    lengths = np.linalg.norm(attacked.vectors.astype(np.float64), axis=1)
    assert np.abs(lengths - 1).max() < 1e-3  # a row that is left as it was served may lie on a coarse grid
    places = {text: place for place, text in enumerate(stolen.texts)}
    order = [places[text] for text in attacked.texts]
    assert order == sorted(order)
    assert attacked.service is stolen.service
    assert attacked.public is stolen.public


def its_name_loads_it_again(attack: DataAttack, stolen: StolenData) -> None:
    again = load_attack(attack.name)
    assert isinstance(again, type(attack))
    assert again.name == attack.name
    assert isinstance(again, DataAttack)
    _same(again.apply(stolen), attack.apply(stolen))


def does_the_same_every_time(attack: DataAttack, stolen: StolenData) -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - whoever draws from it would not be reproducible
    first = attack.apply(stolen)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    _same(attack.apply(stolen), first)


def leaves_the_stolen_data_as_it_was(attack: DataAttack, stolen: StolenData) -> None:
    mine = replace(stolen, vectors=stolen.vectors.copy())
    mine.vectors.setflags(write=False)
    attack.apply(mine)
    assert np.array_equal(mine.vectors, stolen.vectors)
    assert mine.texts == stolen.texts


def takes_float16_and_float64(attack: DataAttack, stolen: StolenData) -> None:
    half = stolen.vectors.astype(np.float16)
    results = [
        attack.apply(replace(stolen, vectors=half.astype(kind))) for kind in (np.float16, np.float32, np.float64)
    ]
    assert results[0].vectors.dtype == np.float32
    _same(results[0], results[1])
    _same(results[2], results[1])


def shows_itself_briefly(attack: DataAttack, stolen: StolenData) -> None:
    shown = repr(attack)
    assert shown.startswith(type(attack).__name__)
    assert len(shown) < 300
    assert stolen.texts[0] not in shown


def refuses_vectors_that_are_none(attack: DataAttack, stolen: StolenData) -> None:
    for value, message in ((np.nan, "row 7 holds NaN or infinity"), (np.inf, "row 7 holds NaN or infinity")):
        broken = stolen.vectors.copy()
        broken[7, 2] = value
        with pytest.raises(InputError, match=message):
            attack.apply(stolen.with_vectors(broken))
    broken = stolen.vectors.copy()
    broken[7] = 0
    with pytest.raises(InputError, match="row 7 is zero"):
        attack.apply(stolen.with_vectors(broken))


def says_what_it_lacks(attack: DataAttack, stolen: StolenData) -> None:
    """Without a service or a public encoder it does what it did, or says what it needs."""
    whole = attack.apply(stolen)
    for lacking, need in (
        (replace(stolen, service=None), "a service"),
        (replace(stolen, public=None), "a public encoder"),
        (replace(stolen, clean=None), "clean vectors"),
    ):
        left = _result(attack, lacking)
        if isinstance(left, str):
            assert need in left
        else:
            _same(left, whole)


EVERY: Sequence[Check] = (
    gives_unit_float32_rows_one_for_each_text_left,
    its_name_loads_it_again,
    does_the_same_every_time,
    leaves_the_stolen_data_as_it_was,
    takes_float16_and_float64,
    shows_itself_briefly,
    refuses_vectors_that_are_none,
    says_what_it_lacks,
)
"""For every attack on distinct texts."""


def _one_row(stolen: StolenData) -> StolenData:
    return stolen.kept(np.array([0]))


def _few_rows(stolen: StolenData) -> StolenData:
    return stolen.kept(np.arange(6))


def _duplicates(stolen: StolenData) -> StolenData:
    return stolen.kept(np.repeat(np.arange(20), 3))


def _all_alike(stolen: StolenData) -> StolenData:
    return stolen.kept(np.zeros(30, dtype=np.int64))


EDGES: dict[str, Callable[[StolenData], StolenData]] = {
    "one row": _one_row,
    "fewer texts than clusters": _few_rows,
    "every text three times": _duplicates,
    "one text many times": _all_alike,
}


def works_at_the_edge(attack: DataAttack, stolen: StolenData) -> None:
    """Give unit rows there, too."""
    attacked = attack.apply(stolen)
    assert len(attacked) == len(attacked.texts) > 0
    assert np.abs(np.linalg.norm(attacked.vectors.astype(np.float64), axis=1) - 1).max() < 1e-3


def refuses_in_one_sentence(attack: DataAttack, stolen: StolenData) -> None:
    """Say that the stolen data is not enough, naming the attack."""
    with pytest.raises(InputError) as caught:
        attack.apply(stolen)
    message = str(caught.value)
    assert attack.name.partition(":")[0] in message
    assert "\n" not in message
    assert len(message) < 250


def _result(attack: DataAttack, stolen: StolenData) -> StolenData | str:
    """Return the attacked data, or why there is none."""
    try:
        return attack.apply(stolen)
    except InputError as error:
        return str(error)


def _same(left: StolenData, right: StolenData) -> None:
    assert left.texts == right.texts
    assert np.array_equal(left.vectors, right.vectors)
