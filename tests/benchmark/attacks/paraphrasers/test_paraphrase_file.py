"""Paraphrases kept in a file: nothing is asked twice, a stopped run goes on, and the filter's share is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks.paraphrasers import TableParaphraser, load_paraphraser, write_table
from regionmarker.benchmark.attacks.paraphrasers.paraphrase_file import keep_paraphrases
from regionmarker.errors import InputError

TEXTS = ["a good film", "a bad film", "a long film", "a film"]
SAID = {
    "a good film": ["a fine film", "A good film.", "a fine  film!", "a good movie"],
    "a bad film": ["a poor film"],
    "a film": ["the film", "a movie"],
}


class Counting(TableParaphraser):
    """Remembers what it was asked; stops at a text, as a kill would."""

    def __init__(self, stop: str = "") -> None:
        super().__init__("mine", SAID)
        self.asked: list[str] = []
        self._stop = stop

    def paraphrase(self, texts: Any, most: int, /) -> list[list[str]]:
        if self._stop in texts:
            raise KeyboardInterrupt
        self.asked += texts
        return super().paraphrase(texts, most)


class Angles:
    """An encoder in which the length of a text decides its direction."""

    name = "angles"

    def encode(self, texts: Any, /) -> np.ndarray:
        angles = np.array([len(text) for text in texts]) / 10
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_a_stopped_run_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    with pytest.raises(KeyboardInterrupt):
        keep_paraphrases(file, Counting("a long film"), TEXTS, 4, block=1)
    seen: list[tuple[int, int]] = []
    second = Counting()
    kept = keep_paraphrases(file, second, TEXTS, 4, block=1, progress=lambda *told: seen.append(told))
    assert second.asked == ["a long film", "a film"]
    assert seen == [(3, 4), (4, 4)]
    assert (kept.texts, kept.paraphrases, kept.without) == (4, 5, 1)
    third = Counting()
    assert keep_paraphrases(file, third, TEXTS[:2], 4).paraphrases == 3
    assert third.asked == []
    assert list(tmp_path.iterdir()) == [file]
    table = load_paraphraser(f"table:{file}")
    assert table.paraphrase(TEXTS, 5) == [["a fine film", "a good movie"], ["a poor film"], [], ["the film", "a movie"]]


def test_the_share_that_passes(tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    without = keep_paraphrases(file, Counting(), TEXTS, 4)
    assert np.isnan([without.mean_cosine, without.passing, without.covered]).all()
    kept = keep_paraphrases(file, Counting(), TEXTS, 4, encoder=Angles(), floor=0.99)  # measured afterwards
    cosines = np.cos([0.0, 0.1, 0.1, 0.2, 0.1])
    assert np.isclose(kept.mean_cosine, cosines.mean(), atol=1e-6)
    assert np.isclose(kept.passing, (cosines >= 0.99).mean())
    assert kept.covered == 0.75
    at_once = keep_paraphrases(tmp_path / "q.parquet", Counting(), TEXTS, 4, encoder=Angles(), floor=0.99)
    assert at_once == kept


def test_a_file_of_another_paraphraser_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    keep_paraphrases(file, Counting(), TEXTS, 4)
    with pytest.raises(InputError, match="holds 4 paraphrases each by mine: name another file"):
        keep_paraphrases(file, TableParaphraser("other", SAID), TEXTS, 4)
    with pytest.raises(InputError, match="holds 4 paraphrases"):
        keep_paraphrases(file, Counting(), TEXTS, 2)
    write_table(file, ["a"], [["b"]])
    with pytest.raises(InputError, match="was not written by bench paraphrase"):
        keep_paraphrases(file, Counting(), TEXTS, 4)
    with pytest.raises(InputError, match="needs texts"):
        keep_paraphrases(file, Counting(), [], 4)


def test_one_that_answers_for_fewer_is_named(tmp_path: Path) -> None:
    class Short(Counting):
        def paraphrase(self, texts: Any, most: int, /) -> list[list[str]]:
            return super().paraphrase(texts, most)[:1]

    with pytest.raises(InputError, match="mine was given 4 texts and answered for 1"):
        keep_paraphrases(tmp_path / "p.parquet", Short(), TEXTS, 4)


def test_cosines_of_another_encoder_are_not_mixed_with_these(tmp_path: Path) -> None:
    class Alike(Angles):
        name = "alike"

        def encode(self, texts: Any, /) -> np.ndarray:
            return np.ones((len(texts), 2), dtype=np.float32)

    file = tmp_path / "p.parquet"
    first = keep_paraphrases(file, Counting(), TEXTS[:2], 4, encoder=Angles()).mean_cosine
    assert keep_paraphrases(file, Counting(), TEXTS, 4, encoder=Alike()).mean_cosine == pytest.approx(1.0)
    assert keep_paraphrases(file, Counting(), TEXTS[:2], 4, encoder=Angles()).mean_cosine == pytest.approx(first)
    assert keep_paraphrases(file, Counting(), TEXTS[:2], 4).mean_cosine == pytest.approx(first)
