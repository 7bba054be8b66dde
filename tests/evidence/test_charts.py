"""The report's pictures: drawn from what a bundle shows."""

from __future__ import annotations

import pytest

from regionmarker.evidence.bundle import read_bundle
from regionmarker.evidence.charts import null_distribution, pool_ranks, power_curve, rank_of
from regionmarker.evidence.score_forms import FORMS


@pytest.fixture
def scores(saved) -> dict:
    return read_bundle(saved["summary"]).json("scores.json")


def test_a_targets_rank_is_counted_from_the_highest(scores):
    shown = {"lists": [[5, 4, 3, 2]], "observed": [4]}
    assert rank_of(shown, 0) == 2
    assert rank_of({**shown, "observed": [None]}, 0) is None
    assert rank_of(scores, 0) is not None


def test_pictures_are_the_same_bytes_every_time(scores, verdict):
    names = [f"region {place}" for place in range(len(scores["observed"]))]
    power = verdict.to_dict()["power"]
    for chart, arguments in (
        (null_distribution, (FORMS["decoy-1"], scores)),
        (pool_ranks, (scores, names)),
        (power_curve, (power,)),
    ):
        drawn = chart(*arguments)
        assert drawn.startswith("<svg")
        assert drawn == chart(*arguments)


def test_a_target_without_an_answer_is_said(scores):
    silent = {**scores, "observed": [None, *scores["observed"][1:]]}
    names = [f"region {place}" for place in range(len(scores["observed"]))]
    assert "not answered" in pool_ranks(silent, names)


def test_a_power_curve_has_its_interval():
    power = {"fidelities": [0.5, 0.8], "detected": [0.5, 1.0], "caught": 0.8, "wanted": 0.9}
    plain = power_curve(power)  # a bundle of 0.1.0
    assert power_curve({**power, "low": [0.2, 0.95], "high": [0.8, 1.0]}) != plain
