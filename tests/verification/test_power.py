"""What a run would have caught."""

from __future__ import annotations

from tests.support.suspects import BUDGET

from regionmarker import verify


def test_the_power_of_the_run_is_told(judge_marker, innocents):
    verdict = verify(judge_marker, innocents["the unmarked encoder"], budget=BUDGET)
    assert verdict.power is not None
    assert verdict.power.fidelities == tuple(sorted(verdict.power.fidelities))
    assert verdict.power.detected[-1] == 1.0
    blind = verify(judge_marker, innocents["the unmarked encoder"], budget=BUDGET, level=1e-12)
    assert blind.outcome == "inconclusive"  # no p-value of this pool can be that small
