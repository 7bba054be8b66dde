"""A plan: what it tries, what it recommends, what it says when it cannot, and that it goes on where it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.errors import InputError, OutsideError
from regionmarker.planning import Choice, Choices, Goals, Plan, PlanningCorpus, plan
from regionmarker.planning.search import Outcome, recommended
from regionmarker.planning.trials import CLOSE, TrialLog, TrialRunner, weakened
from regionmarker.verification.clean_space import MATCHED
from regionmarker.verification.graded_copies import GradedCopies
from regionmarker.verification.power import CaughtShare

WIDTH = 64
CHOICES = Choices((0.9, 0.7), (True, False))
GOALS = Goals(fidelity=0.7, budget=600)


@pytest.fixture(scope="module")
def material(sentences: list[str], embeddings: np.ndarray) -> PlanningCorpus:
    """Real texts, and vectors narrow enough to be quick."""
    rows = embeddings[:2400, :WIDTH]
    return PlanningCorpus(sentences[:2400], rows / np.linalg.norm(rows, axis=1, keepdims=True), seed=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plan") / "trials.jsonl"


@pytest.fixture(scope="module")
def made(material: PlanningCorpus, store: Path) -> Plan:
    return plan(material, GOALS, CHOICES, sets=4, store=store)


def test_it_tries_every_choice_the_cheapest_first(made: Plan) -> None:
    assert [outcome.choice for outcome in made.outcomes] == [
        Choice(0.9, True), Choice(0.9, False), Choice(0.7, True), Choice(0.7, False),
    ]  # fmt: skip
    cheap, dear = made.outcomes[0], made.outcomes[2]
    assert cheap.strength < dear.strength
    assert cheap.unrotated.low <= dear.unrotated.low


def test_the_thief_has_the_fidelity_that_was_asked_for(made: Plan) -> None:
    assert made.met
    assert abs(made.fidelity - 0.7) <= CLOSE
    assert made.best_fidelity > 0.75
    assert made.plain_fidelity >= made.fidelity


def test_a_plan_goes_on_where_it_was(material: PlanningCorpus, made: Plan, store: Path, tmp_path: Path) -> None:
    lines = store.read_text().splitlines()
    cut = tmp_path / "trials.jsonl"
    cut.write_text("\n".join(lines[:5]) + "\n" + lines[5][:20])  # stopped while a line was written
    assert plan(material, GOALS, CHOICES, sets=4, store=cut) == made
    assert sorted(cut.read_text().splitlines()) == sorted(lines)
    before = store.read_text()
    steps: list[tuple[int, int]] = []
    assert plan(material, GOALS, CHOICES, sets=4, store=store, progress=lambda *step: steps.append(step)) == made
    assert store.read_text() == before
    assert steps == [(done + 1, 12) for done in range(12)]


def test_a_plan_is_plain_json(made: Plan) -> None:
    found = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert found["recommended"]["keygen"] == made.recommended.choice.options
    assert len(found["outcomes"]) == 4


def test_another_draw_of_hyperplanes_for_every_set(material: PlanningCorpus) -> None:
    seen: list[np.ndarray] = []

    class Watched(GradedCopies):
        def __init__(self, mark: Any, *rest: Any, **more: Any) -> None:
            seen.append(mark.planes)
            super().__init__(mark, *rest, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("regionmarker.planning.trials.GradedCopies", Watched)
        runner = TrialRunner(material, TrialLog(None, ""), GOALS)
        for number in range(2):
            runner.trial([Choice(0.9, True)], number)
    assert not np.allclose(seen[0], seen[1])


# ---- weakening


@pytest.fixture(scope="module")
def copies(material: PlanningCorpus) -> GradedCopies:
    key = material.key(Choice(0.9, True), 600)
    bought = material.embeddings[material.queries]
    return GradedCopies(key.mark, key.reservoir.embeddings[:600], bought, key.pool.embeddings)  # type: ignore[arg-type]


@pytest.mark.parametrize("hidden", [96, 0])
@pytest.mark.parametrize("fidelity", [0.3, 0.5, 0.7])
def test_a_thief_is_weakened_until_it_fits(copies: GradedCopies, fidelity: float, hidden: int) -> None:
    copy, best = weakened(copies, fidelity, hidden, np.random.default_rng(1))
    assert copy.fidelity == pytest.approx(fidelity, abs=CLOSE)
    assert best > 0.75


def test_a_poor_linear_thief_has_few_directions_and_its_axes_may_not_be_recognised(copies: GradedCopies) -> None:
    wide, narrow = (weakened(copies, 0.2, hidden, np.random.default_rng(1))[0] for hidden in (96, 0))
    ranks = [np.linalg.matrix_rank(copy.answers, tol=1e-2 * np.linalg.norm(copy.answers, 2)) for copy in (wide, narrow)]
    assert ranks[1] < 0.5 * ranks[0]
    assert copies.matched_share(wide) >= MATCHED > copies.matched_share(narrow)


def test_the_promise_covers_both_kinds_of_thieves(material: PlanningCorpus) -> None:
    made = plan(material, replace(GOALS, fidelity=0.4), Choices((0.7,), (False,)), sets=4)
    (found,) = made.outcomes
    kinds = [of_kind["unrotated"] for of_kind in found.by_kind.values()]
    assert list(found.by_kind) == ["network", "linear"]
    assert found.unrotated.low == min(share.low for share in kinds)
    assert found.unrotated.high == max(share.high for share in kinds)


def test_a_fidelity_that_one_kind_misses_is_not_met(made: Plan) -> None:
    assert not replace(made, lowest_fidelity=made.goals.fidelity - 2 * CLOSE).met
    assert not replace(made, highest_fidelity=made.goals.fidelity + 2 * CLOSE).met


def test_a_good_linear_thief_is_not_narrowed(copies: GradedCopies) -> None:
    copy, best = weakened(copies, 0.7, 0, np.random.default_rng(1))
    assert best > 0.75
    assert np.linalg.matrix_rank(copy.answers, tol=1e-3 * np.linalg.norm(copy.answers, 2)) > 0.9 * WIDTH


def test_a_thief_cannot_be_better_than_its_queries_allow(copies: GradedCopies) -> None:
    copy, best = weakened(copies, 0.99999, 96, np.random.default_rng(1))
    assert copy.fidelity == best < 0.99999


# ---- choosing


def outcome(kept: float, low: float, rotated: float, *, tenants: bool = True) -> Outcome:
    return Outcome(Choice(kept, tenants), 0.1, CaughtShare(1.0, low, 1.0), CaughtShare(1.0, rotated, 1.0), {})


def test_the_cheapest_that_holds_is_recommended() -> None:
    none, plain, both, dear = (
        outcome(0.97, 0.5, 0.1),
        outcome(0.95, 0.95, 0.3),
        outcome(0.93, 1.0, 0.92),
        outcome(0.9, 1, 1),
    )
    assert recommended([none, plain, both, dear], 0.9) == both
    assert recommended([none, plain], 0.9) == plain
    assert recommended([none, replace(none, strength=0.2, rotated=CaughtShare(1.0, 0.4, 1.0))], 0.9).strength == 0.2
    assert [one.holds(0.9) for one in (none, plain, both)] == ["neither", "unrotated", "both"]


def test_tenants_are_given_up_only_where_nothing_else_holds() -> None:
    alone, together = outcome(0.97, 1.0, 0.95, tenants=False), outcome(0.93, 1.0, 0.92)
    assert recommended([alone, together], 0.9) == together
    assert recommended([alone, outcome(0.93, 1.0, 0.5)], 0.9) == alone


@pytest.mark.parametrize(
    ("wish", "message"),
    [({"fidelity": 0.0}, "fidelity is 0.0"), ({"level": 2.0}, "level is 2.0"), ({"budget": 10}, "budget is 10")],
)
def test_bad_wishes_are_refused(wish: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Goals(**wish)


def test_bad_choices_and_corpora_are_refused(material: PlanningCorpus) -> None:
    for choices in ({"kept": ()}, {"kept": (0.9, 0.9)}, {"kept": (1.0,)}, {"tenants": ()}):
        with pytest.raises(InputError):
            Choices(**choices)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="sets is 3, but intervals for 2 kinds need at least 4"):
        plan(material, sets=3)
    with pytest.raises(InputError, match="at least 1000 distinct texts, but the corpus has 1"):
        PlanningCorpus(["the same"] * 3000, np.eye(3, dtype=np.float32).repeat(1000, axis=0))
    with pytest.raises(InputError, match="2 texts but 3 embeddings"):
        PlanningCorpus(["a", "b"], np.eye(3))
    with pytest.raises(InputError, match="must lie between 100 and 1920"):
        PlanningCorpus(material.texts, material.embeddings, queries=2000)


def test_a_corpus_is_divided_once_and_repeated_texts_are_used_once(material: PlanningCorpus) -> None:
    assert len(material.texts) == len(set(material.texts)) == 2400
    rows = np.vstack([material.embeddings, material.embeddings[:50]])
    again = PlanningCorpus([*material.texts, *material.texts[:50]], rows, queries=600, seed=1)
    assert len(again.texts) == 2400
    assert (len(again.queries), len(again.own)) == (600, 1800)
    assert not set(again.queries.tolist()) & set(again.own.tolist())
    assert again.digest != material.digest


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text("nonsense\n")
    with pytest.raises(InputError, match=r"trials\.jsonl is damaged: delete it"):
        TrialLog(path, "digest")
    with pytest.raises(OutsideError, match="cannot write"):
        TrialLog(tmp_path / "no" / "trials.jsonl", "digest").put("one", {})
