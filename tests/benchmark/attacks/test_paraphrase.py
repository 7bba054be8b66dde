"""Averaging over paraphrases: which are asked, which are kept, and what is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import Paraphrase, Truncate, compose
from regionmarker.benchmark.attacks.paraphrasers import TableParaphraser
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError


def table(words: dict[str, Sequence[str]]) -> TableParaphraser:
    return TableParaphraser("table", words)


def test_trains_on_the_mean_of_what_is_served_for_the_paraphrases(stolen: StolenData, provider: Any) -> None:
    text = stolen.texts[0]
    others = [f"{text} indeed", f"{text} again"]
    attacked = Paraphrase(by=table({text: others}), filter="none").apply(stolen)
    mean = provider(others).astype(np.float64).mean(axis=0)
    assert np.allclose(attacked.vectors[0], mean / np.linalg.norm(mean), atol=1e-6)
    assert np.array_equal(attacked.vectors[1:], stolen.vectors[1:])  # nothing was said of the others
    assert attacked.texts == stolen.texts


def test_nothing_and_the_same_text_leave_the_served_vector(stolen: StolenData, provider: Any) -> None:
    same = {text: [text, f" {text}  ", ""] for text in stolen.texts}
    for paraphrases in ({}, same):
        provider.asked.clear()
        attacked = Paraphrase(by=table(paraphrases)).apply(stolen)
        assert np.array_equal(attacked.vectors, stolen.vectors)
        assert provider.asked == []  # and nothing was paid for


def test_at_most_five_distinct_paraphrases_are_asked(stolen: StolenData, provider: Any) -> None:
    text = stolen.texts[0]
    many = [f"{text} {number // 2}" for number in range(20)]  # each twice
    provider.asked.clear()
    Paraphrase(by=table({text: many})).apply(stolen)
    assert provider.asked == [("", 3)]  # the paraphraser gives five, of which three are distinct
    provider.asked.clear()
    Paraphrase(most=2, by=table({text: many[::2]})).apply(stolen)
    assert provider.asked == [("", 2)]


@pytest.mark.parametrize("kind", ["served", "public"])
def test_paraphrases_that_say_something_else_are_thrown_away(kind: str, stolen: StolenData, provider: Any) -> None:
    text, near, far = stolen.texts[0], f"{stolen.texts[0]} so", "three wet dogs in the snow"
    attack = Paraphrase(by=table({text: [near, far]}), filter=kind)
    assert np.allclose(attack.apply(stolen).vectors[0], provider([near])[0], atol=1e-3)
    none_left = Paraphrase(by=table({text: [far]}), filter=kind).apply(stolen)
    assert np.array_equal(none_left.vectors[0], stolen.vectors[0])
    unfiltered = Paraphrase(by=table({text: [far]}), filter="none").apply(stolen)
    assert np.allclose(unfiltered.vectors[0], provider([far])[0], atol=1e-3)


def test_filtering_by_served_vectors_needs_no_public_encoder(stolen: StolenData) -> None:
    paraphraser = table({stolen.texts[0]: [f"{stolen.texts[0]} so"]})
    blind = StolenData(stolen.texts, stolen.vectors, stolen.service)
    Paraphrase(by=paraphraser).apply(blind)
    with pytest.raises(InputError, match="needs a public encoder"):
        Paraphrase(by=paraphraser, filter="public").apply(blind)


def test_an_attack_that_asks_again_comes_first(stolen: StolenData) -> None:
    paraphrase = Paraphrase(by=table({stolen.texts[0]: [f"{stolen.texts[0]} so"]}))
    assert compose([paraphrase, Truncate(100)]).apply(stolen).vectors.shape == (150, 100)
    with pytest.raises(InputError, match="comes first in a list"):
        compose([Truncate(100), paraphrase]).apply(stolen)


def test_large_loots_are_asked_in_parts(stolen: StolenData, provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from regionmarker.benchmark.attacks import paraphrase

    attack = Paraphrase(by=table({text: [f"{text} so"] for text in stolen.texts}))
    whole = attack.apply(stolen)
    monkeypatch.setattr(paraphrase, "_BLOCK", 64)
    provider.asked.clear()
    assert np.array_equal(attack.apply(stolen).vectors, whole.vectors)
    assert provider.asked == [("", 64), ("", 64), ("", 22)]


def test_a_paraphraser_that_loses_texts_is_refused(stolen: StolenData) -> None:
    class Forgetful:
        name = "forgetful"

        def paraphrase(self, texts: Sequence[str], most: int) -> list[list[str]]:
            return [[] for _ in texts[1:]]

    with pytest.raises(InputError, match="forgetful was given 150 texts and answered for 149"):
        Paraphrase(by=Forgetful()).apply(stolen)
    with pytest.raises(InputError, match="a paraphraser is a spec or an object"):
        Paraphrase(by=7)  # type: ignore[arg-type]


def test_texts_without_a_paraphrase_may_be_left_out(stolen: StolenData, provider: Any) -> None:
    some = {text: [f"{text} indeed"] for text in stolen.texts[3:8]}
    some |= {stolen.texts[9]: [stolen.texts[9]], stolen.texts[10]: ["quite another matter"]}
    attacked = Paraphrase(texts="paraphrased", floor=0.5, by=table(some)).apply(stolen)
    assert attacked.texts == (*stolen.texts[3:8], stolen.texts[10])
    whole = Paraphrase(floor=0.5, by=table(some)).apply(stolen)
    assert np.array_equal(attacked.vectors, whole.vectors[[3, 4, 5, 6, 7, 10]])
    assert np.array_equal(attacked.vectors[-1], stolen.vectors[10])  # its paraphrase was filtered away
    with pytest.raises(InputError, match=r"none of the \d+ texts has a paraphrase"):
        Paraphrase(texts="paraphrased", by=table({})).apply(stolen)
    with pytest.raises(InputError, match="texts must be all or paraphrased, but is 'some'"):
        Paraphrase(texts="some", by=table({}))
