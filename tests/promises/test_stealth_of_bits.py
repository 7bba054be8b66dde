"""Nothing to see in the bits: no attacker can tell marked rows by the numbers they are made of.

Marks are put on a random half of the rows, so that meaning says nothing about which are marked and only the bits are
left to look at. The same attackers see through two deliberately naive markers, so these tests can fail.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from regionmarker.marking import engine as engines
from regionmarker.marking import numpy_engine
from regionmarker.marks.number_format import NumberFormat, detect_format, hidden_format, round_to_format
from regionmarker.marks.plan import MarkPlan
from regionmarker.sample_corpus import python_sentences

HIDDEN, SEEN = 0.52, 0.95
STRENGTH = 0.2


@pytest.fixture(scope="module")
def rows(wordllama) -> np.ndarray:
    """Real embeddings at full float32 precision, a fresh rotation away from the encoder's own float16 numbers."""
    encoded = wordllama.encode(python_sentences()).astype(np.float64)
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((encoded.shape[1],) * 2))
    rotated = encoded @ rotation
    return rotated / np.linalg.norm(rotated, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def marked(rows) -> np.ndarray:
    return np.random.default_rng(1).random(len(rows)) < 0.5


def upstream(rows: np.ndarray, grid: NumberFormat) -> np.ndarray:
    return round_to_format(rows, grid)


def pooled_then_normalised(rows: np.ndarray, grid: NumberFormat) -> np.ndarray:
    """Return what a server that pools in half precision and normalises in float32 would send."""
    lengths = np.random.default_rng(2).uniform(3.0, 9.0, (len(rows), 1))
    coarse = round_to_format(rows * lengths, grid)
    return coarse / np.linalg.norm(coarse, axis=1, keepdims=True)


def plan_of(clean: np.ndarray, grid: NumberFormat) -> MarkPlan:
    return MarkPlan(
        projection=None,
        thresholds=np.zeros(2),
        target_of_region=np.arange(4),
        targets=clean[[0, 0, 1, 2]],
        weights=np.array([0.0, STRENGTH, STRENGTH, STRENGTH]),
        number_format=grid,
    )


def slots_of(marked: np.ndarray) -> np.ndarray:
    return np.where(marked, 1 + np.arange(len(marked)) % 3, 0)


def serve(clean: np.ndarray, marked: np.ndarray, grid: NumberFormat) -> np.ndarray:
    """Mark the chosen rows with the product's engines."""
    return engines.blend(plan_of(clean, grid), clean, slots_of(marked))


def mixed(clean: np.ndarray) -> np.ndarray:
    """Return equation 3 for every row, in float32, as someone in a hurry would write it."""
    mix = (1 - STRENGTH) * clean + STRENGTH * clean[np.arange(len(clean)) % 3]
    return (mix / np.linalg.norm(mix, axis=1, keepdims=True)).astype(np.float32)


def pass_through(clean: np.ndarray, marked: np.ndarray) -> np.ndarray:
    return np.where(marked[:, None], mixed(clean), clean)


def renormalised(clean: np.ndarray, marked: np.ndarray) -> np.ndarray:
    unit = (clean / np.linalg.norm(clean, axis=1, keepdims=True)).astype(np.float32)
    return np.where(marked[:, None], mixed(clean), unit)


def bit_features(served: np.ndarray) -> np.ndarray:
    """Mantissa bits, trailing zeros, norm, printed digits and repeated values of every row."""
    bits = served.view(np.uint32)
    mantissa = np.stack([((bits >> place) & 1).mean(axis=1) for place in range(23)], axis=1)
    trailing = np.log2((bits & -bits.astype(np.int64)).astype(np.float64) + 1.0).mean(axis=1)
    wide = served.astype(np.float64)
    length = np.linalg.norm(wide, axis=1) - 1.0
    digits = np.array([[len(str(value)) for value in row] for row in served[:, :4]]).mean(axis=1)
    repeated = (np.diff(np.sort(np.abs(served), axis=1), axis=1) == 0.0).sum(axis=1)
    return np.column_stack([mantissa, trailing, length, np.abs(length), digits, repeated])


def classifier_auc(served: np.ndarray, marked: np.ndarray) -> float:
    model = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=15, random_state=0)
    scores = cross_val_predict(model, bit_features(served), marked, cv=3, method="predict_proba")[:, 1]
    return float(roc_auc_score(marked, scores))


def scale_search_auc(served: np.ndarray, marked: np.ndarray) -> float:
    """Score a row by whether one scale puts it on a coarser grid: those were never mixed."""
    found = hidden_format(served, NumberFormat.float16).astype(int) + hidden_format(served, NumberFormat.bfloat16)
    auc = roc_auc_score(marked, -found)
    return float(max(auc, 1 - auc))


CASES = {
    "float16": (upstream, NumberFormat.float16),
    "bfloat16": (upstream, NumberFormat.bfloat16),
    "float32": (upstream, NumberFormat.float32),
    "pooled in float16": (pooled_then_normalised, NumberFormat.float16),
    "pooled in bfloat16": (pooled_then_normalised, NumberFormat.bfloat16),
}


@pytest.mark.parametrize("case", CASES)
def test_the_bits_of_marked_rows_look_like_those_of_the_others(rows, marked, case):
    make, grid = CASES[case]
    clean = make(rows, grid)
    assert detect_format(clean) is grid
    served = serve(clean, marked, detect_format(clean))
    assert classifier_auc(served, marked) <= HIDDEN
    assert scale_search_auc(served, marked) <= HIDDEN


def test_the_classifier_sees_through_our_own_arithmetic_without_dither(rows, marked, monkeypatch):
    clean = pooled_then_normalised(rows, NumberFormat.bfloat16)
    monkeypatch.setattr(numpy_engine, "dithered", lambda rows, _: rows)
    served = np.empty_like(clean)
    plan = plan_of(clean, NumberFormat.bfloat16)
    numpy_engine.NumpyEngine().write(plan, clean, slots_of(marked), served, normalise=False)
    assert classifier_auc(served, marked) > 0.65


@pytest.mark.parametrize("grid", [NumberFormat.float16, NumberFormat.bfloat16])
def test_the_attackers_see_through_a_marker_that_passes_rows_through(rows, marked, grid):
    served = pass_through(upstream(rows, grid), marked)
    assert classifier_auc(served, marked) > SEEN
    assert scale_search_auc(served, marked) > SEEN


@pytest.mark.parametrize("grid", [NumberFormat.float16, NumberFormat.bfloat16])
def test_the_scale_search_sees_through_a_marker_that_renormalises_in_float32(rows, marked, grid):
    assert scale_search_auc(renormalised(upstream(rows, grid), marked), marked) > SEEN
