"""SPA: what is asked, and which tail shows which mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import Perturb
from regionmarker.benchmark.attacks.perturbation import elbow
from regionmarker.benchmark.protocols import StolenData


class Scheme:
    """A provider that marks some texts: by a word that stays, or by a place that suffixes leave."""

    def __init__(self, encoder: Any, texts: tuple[str, ...], *, stays: bool, every: int) -> None:
        self._encoder, self._stays = encoder, stays
        mean = encoder.encode(texts).mean(axis=0)
        self._target = -mean / np.linalg.norm(mean)  # far from all of them
        self.marked = frozenset(texts[::every])

    def __call__(self, texts: Any, *, account: str = "") -> np.ndarray:
        rows = self._encoder.encode(texts).copy()
        for row, text in enumerate(texts):
            if text in self.marked or (self._stays and any(text.startswith(f"{own} ") for own in self.marked)):
                rows[row] = 0.3 * rows[row] + 0.7 * self._target
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(("stays", "tail", "every"), [(True, "low", 3), (False, "high", 10)])
def test_a_word_mark_moves_less_and_a_place_mark_moves_more(
    stays: bool, tail: str, every: int, stolen: StolenData, encoder: Any
) -> None:
    scheme = Scheme(encoder, stolen.texts, stays=stays, every=every)
    held = StolenData(stolen.texts, scheme(stolen.texts), scheme, stolen.public)
    attack = Perturb(candidates=6, suffixes=3, tail=tail)
    moved = attack.movements(held)
    marked = np.isin(stolen.texts, sorted(scheme.marked))
    above = float((moved[marked][:, None] > moved[~marked]).mean())  # the area under the curve
    assert above < 0.05 if stays else above > 0.95
    left = attack.apply(held)
    assert np.isin(left.texts, sorted(scheme.marked)).mean() < marked.mean() / 2
    assert len(left) > 75


def test_the_suffixes_are_those_that_change_the_meaning_most(stolen: StolenData, provider: Any) -> None:
    asked: list[list[str]] = []

    def service(texts: Any, *, account: str = "") -> np.ndarray:
        asked.append(list(texts))
        return provider(texts)

    few = StolenData(stolen.texts[:10], stolen.vectors[:10], service, stolen.public)
    Perturb(candidates=5, suffixes=2).apply(few)
    assert sum(map(len, asked)) == 20
    public = stolen.public_encoder()
    own = public.encode(list(few.texts))
    for place, text in enumerate(few.texts):
        ours = [question for question in asked[0] if question.startswith(f"{text} ")]
        suffixes = {question.removeprefix(f"{text} ") for question in ours}
        assert len(ours) == 2
        far = np.argsort(own @ own[place], kind="stable")[:5]
        assert suffixes <= {few.texts[row] for row in far}
        cosines = public.encode([f"{text} {few.texts[row]}" for row in far]) @ own[place]
        assert suffixes == {few.texts[far[row]] for row in np.argsort(cosines)[:2]}


def test_the_pool_may_be_a_corpus(stolen: StolenData, provider: Any, tmp_path: Path) -> None:
    file = tmp_path / "pool,one.txt"
    file.write_text("three wet dogs\nsnow in the hills\n")
    asked: list[str] = []

    def service(texts: Any, *, account: str = "") -> np.ndarray:
        asked.extend(texts)
        return provider(texts)

    attack = Perturb.from_spec(f"candidates=2,suffixes=2,{file}")
    assert attack.name == f"perturb:candidates=2,suffixes=2,{file}"
    attack.apply(StolenData(stolen.texts[:20], stolen.vectors[:20], service, stolen.public))
    assert {text[-5:] for text in asked} == {" dogs", "hills"}


def test_the_elbow_lies_between_a_small_low_group_and_the_rest() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(0.2, 0.02, 40), rng.normal(0.8, 0.05, 400)])
    assert 0.2 < elbow(scores) < 0.7
    assert elbow(np.full(9, 0.5)) == 0.5  # nothing lies below
