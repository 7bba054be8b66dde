"""A key with the graded mark, copies of what it serves, and its evidence at every level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.evidence import save_evidence
from regionmarker.marks.reduction import haar
from regionmarker.verification.answers import Answers
from regionmarker.verification.judging import judge
from regionmarker.verification.questions import plan_questions
from regionmarker.verification.tracing import trace


@pytest.fixture(scope="session")
def graded_marker(sentences, embeddings) -> RegionMarker:
    """A marker that passes for one with a real key, and is the same in every run."""
    fitted = RegionMarker(seed=11).fit(sentences, embeddings=embeddings)
    return RegionMarker.from_key(replace(fitted.key_, test=False))


@pytest.fixture(scope="session")
def turn(embeddings) -> np.ndarray:
    """A rotation of the suspect's space."""
    width = embeddings.shape[1]
    return haar(np.random.default_rng(4), width, width).astype(np.float32)


@pytest.fixture(scope="session")
def graded_answers(graded_marker, copy_of, turn):
    """Answer the first questions as a copy of a tenant's vectors would, rotated or not."""

    def answers(*, budget: int = 2000, tenant: str = "", rotated: bool = False) -> Answers:
        texts = plan_questions(graded_marker.key_, budget, seed=0).texts
        vectors = copy_of(graded_marker, 0.9, tenant=tenant)(texts)
        return Answers("a copy", texts, vectors @ turn if rotated else vectors)

    return answers


@pytest.fixture(scope="session")
def graded_bundles(graded_marker, graded_answers, tmp_path_factory):
    """The bundles of a copy by level, not to be changed."""
    folder, answers = tmp_path_factory.mktemp("graded"), graded_answers(tenant="acme")
    verdict = judge(graded_marker, answers, power=False)
    assert verdict.outcome == "infringement"
    traces = trace(graded_marker, answers, ["acme", "globex"])
    return {
        level: save_evidence(verdict, folder / level, level=level, traces=traces)
        for level in ("summary", "expert", "court")
    }
