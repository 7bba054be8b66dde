from __future__ import annotations

import numpy as np
import pytest

from regionmarker.benchmark.defenses import words as matching
from regionmarker.benchmark.defenses.words import TriggerCounter, words_of

WORDS = ["establish", "established", "establishment", "j", "2004", "!", "\u2019", "cafe", "abcdefgh", "real"]
TEXTS = [
    "",
    " ",
    "nothing of the kind",
    "Established, real and REAL!",
    "establishment established establish",
    "establishmen establishedx xestablished unreal really",
    "the café of j. in 2004, in 20045",
    "it\u2019s a cafe\u2019 CAFÉ e\u0301tablished",
    "abcdefgh abcdefghi abcdefg",
    "real_j real-j j's",
    "a\nreal\tj\x00real",
    "\n\nreal\n",
    "東京 real 東京real",
    "half \ud83d real",
]


def slow(groups: list[list[str]], texts: list[str]) -> np.ndarray:
    """Count as one would without any hurry."""
    return np.array([[len(set(group) & set(words_of(text))) for group in groups] for text in texts])


@pytest.mark.parametrize("groups", [[WORDS], [WORDS[:5], WORDS[5:]], [WORDS[:1], ["nowhere"], WORDS[1:]], [[]]])
def test_counts_distinct_words_as_one_would_by_hand(groups: list[list[str]]) -> None:
    assert np.array_equal(TriggerCounter(groups)(TEXTS), slow(groups, TEXTS))


def test_by_hand() -> None:
    counts = TriggerCounter([WORDS])(TEXTS)[:, 0].tolist()
    assert counts == [0, 0, 0, 3, 3, 0, 3, 2, 1, 2, 2, 1, 1, 1]


def test_a_text_of_nothing_but_triggers_holds_all_of_them() -> None:
    assert TriggerCounter([WORDS])([" ".join(WORDS * 3)]).tolist() == [[len(WORDS)]]


def test_real_texts(sentences: list[str]) -> None:
    groups = [["the", "returned", "attribute", "interpreter"], ["a", ".", "("]]
    assert np.array_equal(TriggerCounter(groups)(sentences[:1000]), slow(groups, sentences[:1000]))


@pytest.mark.parametrize("block", [1, 7, 40])
def test_the_blocks_do_not_show(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = TriggerCounter([WORDS])(TEXTS)
    monkeypatch.setattr(matching, "_BLOCK", block)
    assert np.array_equal(TriggerCounter([WORDS])(TEXTS), expected)


def test_no_texts() -> None:
    assert TriggerCounter([["a"], ["b"]])([]).shape == (0, 2)
