"""What schemes of trigger words share: candidates, published lists, corpora without triggers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.trigger_words import WORDS, fitted

from regionmarker.benchmark.defenses import load_defense
from regionmarker.errors import InputError


def test_words_of_another_frequency_trigger_nothing(small: Any) -> None:
    defense = fitted(small, "embmarker:words=8,pool=256")
    rows = small.clean[:1]
    assert np.array_equal(defense.transform(rows, ["common rare words alphabet"]), rows)


def test_too_few_candidates_are_said_so(small: Any) -> None:
    with pytest.raises(InputError, match="9 trigger words are wanted, but only 8 words"):
        fitted(small, "embmarker:words=9,pool=256")
    with pytest.raises(InputError, match="10 trigger words are wanted"):
        fitted(small, "warden:words=5,pool=256")


def test_the_published_words_are_those_of_the_published_seed(small: Any) -> None:
    first, second = (fitted(small, "embmarker:words=3,pool=256,published", seed) for seed in (1, 2))
    one = [first.transform(small.clean[:1], [word])[0] for word in WORDS]
    two = [second.transform(small.clean[:1], [word])[0] for word in WORDS]
    triggers = [not np.array_equal(row, small.clean[0]) for row in one]
    assert sum(triggers) == 3
    assert triggers == [not np.array_equal(row, small.clean[0]) for row in two]


def test_the_published_target_may_be_the_stored_one(small: Any) -> None:
    stored = fitted(small, "embmarker:words=8,pool=256,target=stored").verify(small.encoder)
    asked = fitted(small, "embmarker:words=8,pool=256").verify(small.encoder)
    assert (stored.published.target, asked.published.target) == ("stored", "suspect")
    assert np.isclose(stored.published.delta_cos, asked.published.delta_cos, atol=1e-3)


def test_a_corpus_without_any_trigger_can_still_be_judged(small: Any) -> None:
    finding = fitted(small, "embmarker:words=8,pool=256").verify(small.encoder)
    assert 0 < finding.p_value <= 1


def test_a_corpus_in_which_every_text_triggers_is_refused(small: Any) -> None:
    texts = [f"alpha {text}" for text in small.texts]
    with pytest.raises(InputError, match="only 0 of 600 texts that could be asked are unmarked"):
        load_defense("embmarker:words=8,pool=256", counts=small.counts).fit(texts, small.clean)
