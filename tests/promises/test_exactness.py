"""Why the p-values are exact: nothing that is scored depends on the draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.benchmark.defenses import load_defense
from regionmarker.benchmark.defenses.base import BaseDefense
from regionmarker.crypto.secret import Secret
from regionmarker.verification.answers import Answers

SPECS = ("none:words=4", "embmarker:words=4", "warden:words=4", "espew:words=4", "geomark", "wet:probes=256")


def another_draw(draw: Callable[..., tuple[int, ...]]) -> Callable[..., tuple[int, ...]]:
    def drawn(self: Any, label: str, population: int, count: int = 1) -> tuple[int, ...]:
        return tuple((place + 1) % population for place in draw(self, label, population, count))

    return drawn


@pytest.mark.parametrize("spec", SPECS)
def test_another_draw_is_asked_and_scored_alike(spec: str, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec += ",pool=256" if ":" in spec else ":pool=256"
    first = load_defense(spec, seed=2, counts=small.counts).fit(small.texts, small.clean)
    monkeypatch.setattr(BaseDefense, "_draw", another_draw(BaseDefense._draw))
    second = load_defense(spec, seed=2, counts=small.counts).fit(small.texts, small.clean)
    assert tuple(first.probes()) == tuple(second.probes())
    mine, theirs = first.verify(small.encoder), second.verify(small.encoder)
    assert mine.chosen != theirs.chosen
    assert np.array_equal(mine.scores, theirs.scores)


@pytest.mark.parametrize("spec", ["regionmarker:pool=128", "regionmarker:pool=128,shared"])
def test_regions_with_other_targets_are_scored_alike(spec: str, small: Any) -> None:
    defense: Any = load_defense(spec, seed=2).fit(small.texts, small.clean)
    texts = defense.probes()
    answers = Answers("innocent", texts, small.encoder.encode(list(texts)))
    mine = defense.judge(answers)
    defense._marker = RegionMarker.from_key(replace(defense._marker.key_, master=Secret(bytes(32))))
    theirs = defense.judge(answers)
    assert mine.chosen != theirs.chosen
    assert np.array_equal(mine.scores, theirs.scores)


@pytest.mark.parametrize("spec", SPECS)
def test_every_candidate_is_drawn_sooner_or_later(spec: str) -> None:
    """The draw is uniform: 400 seeds over 16 candidates, each as often as any other (chi-square below its 0.1 %)."""
    drawn = [load_defense(spec, seed=seed)._draw("targets", 16)[0] for seed in range(400)]  # type: ignore[attr-defined]
    counts = np.bincount(drawn, minlength=16)
    assert ((counts - 25) ** 2 / 25).sum() < 37.7
