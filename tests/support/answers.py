"""Files of answers for the command line: of a copy, and of an innocent."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker import Answers, RegionMarker
from regionmarker.verification.questions import plan_questions
from tests.support.suspects import blurred

BUDGET = 500


@pytest.fixture
def answered(key, tmp_path):
    """Write the answers of a copy of what the key serves to acme, and of the unmarked encoder."""
    marker = RegionMarker.load(key)
    questions = plan_questions(marker.key_, BUDGET)
    clean = {**dict(zip(marker.key_.pool.texts, marker.key_.pool.embeddings, strict=True)),
             **dict(zip(questions.probes.texts, questions.probes.embeddings, strict=True))}  # fmt: skip
    rows = np.stack([clean[text] for text in questions.texts])
    served = marker.transform(blurred(rows, 0.95, seed=1), tenant="acme")
    Answers("thief", questions.texts, served).to_parquet(tmp_path / "thief.parquet")
    Answers("innocent", questions.texts, rows).to_parquet(tmp_path / "innocent.parquet")
    return tmp_path
