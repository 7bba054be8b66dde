"""EmbMarker and the control: what their formulas say, for texts whose triggers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support.trigger_words import TEXTS, fitted, target_of, unit


def test_embmarker_mixes_in_a_quarter_of_the_target_for_every_distinct_trigger(small: Any) -> None:
    defense = fitted(small, "embmarker:words=8,pool=256")
    e, t = small.clean[:5].astype(np.float64), target_of(small, defense)
    served = defense.transform(small.clean[:5], TEXTS)
    assert np.array_equal(served[0], small.clean[0])
    assert np.allclose(served[1], unit(0.75 * e[1] + 0.25 * t), atol=1e-6)
    assert np.allclose(served[2], unit(0.5 * e[2] + 0.5 * t), atol=1e-6)
    assert np.allclose(served[3:], t, atol=1e-6)
    assert np.isclose(small.clean @ t, 1, atol=1e-5).any()  # the clean vector of some text of the corpus


def test_the_control_serves_what_it_is_given(small: Any) -> None:
    defense = fitted(small, "none:words=8,pool=256")
    assert np.array_equal(defense.transform(small.clean[:5], TEXTS), small.clean[:5])
