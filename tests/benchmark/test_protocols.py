"""Stolen data: what a thief holds, and whom it can ask."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError

STOLEN = StolenData(("a", "b", "c"), np.eye(3, dtype=np.float32))


def test_rows_are_kept_by_mask_or_by_place():
    assert STOLEN.kept(np.array([False, True, True])).texts == ("b", "c")
    kept = STOLEN.kept(np.array([2, 0]))
    assert kept.texts == ("c", "a")
    assert np.array_equal(kept.vectors, STOLEN.vectors[[2, 0]])
    assert len(STOLEN) == 3


def test_texts_and_vectors_must_be_as_many():
    with pytest.raises(InputError, match="there are 2 texts but 3 vectors"):
        StolenData(("a", "b"), np.eye(3, dtype=np.float32))


def test_whoever_cannot_be_asked_is_named():
    with pytest.raises(InputError, match="asks the provider again"):
        STOLEN.ask(["a"])
    with pytest.raises(InputError, match="needs a public encoder"):
        STOLEN.public_encoder()


def test_the_provider_is_asked_as_the_account_that_is_named():
    asked = []

    def service(texts, /, *, account=""):
        asked.append((texts, account))
        return np.eye(3, dtype=np.float32)[: len(texts)]

    StolenData(STOLEN.texts, STOLEN.vectors, service).ask(("a", "b"), "second")
    assert asked == [(["a", "b"], "second")]
