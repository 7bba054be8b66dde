"""The paper's classifier: what it learns, and that it is the network that it says it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.classification import Classification, Classifier, _drawn, _slopes, classify
from regionmarker.errors import InputError


@pytest.fixture(scope="module")
def task(embeddings: np.ndarray, sentences: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Real texts, and a class that their vectors tell well but not perfectly."""
    rows = embeddings[:1500]
    direction = np.random.default_rng(3).standard_normal(rows.shape[1])
    sides = (rows - rows.mean(axis=0)) @ direction
    noise = np.random.default_rng(4).standard_normal(len(rows)) * sides.std() * 0.2
    return rows, np.digitize(sides + noise, np.quantile(sides, [0.5, 0.8]))


def test_it_learns_a_task_of_three_unequal_classes(task: Any) -> None:
    rows, labels = task
    found = classify(rows[:1200], labels[:1200], rows[1200:], labels[1200:])
    assert found.accuracy > 0.65
    assert 0.6 < found.macro_f1 < 1
    assert found.texts == 300
    assert found.accuracy > np.bincount(labels[1200:]).max() / 300 + 0.2  # better than one answer to everything


def test_the_same_seed_gives_the_same_answers_and_another_other_ones(task: Any) -> None:
    rows, labels = task
    first, again, other = (Classifier(seed=seed).fit(rows[:300], labels[:300]).predict(rows) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_labels_of_any_kind_and_rows_of_any_float(task: Any) -> None:
    rows, labels = task
    names = np.array(["red", "green", "blue"])[labels]
    by_number, by_name = Classifier().fit(rows[:300], labels[:300]), Classifier().fit(rows[:300], list(names[:300]))
    assert set(by_name.predict(rows)) <= {"red", "green", "blue"}
    assert list(by_name.classes_) == ["blue", "green", "red"]
    half = Classifier().fit(rows[:300].astype(np.float16), labels[:300]).predict(rows.astype(np.float16))
    assert (half == by_number.predict(rows)).mean() > 0.97


def test_the_derivatives_are_those_of_the_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    rows, numbers = rng.standard_normal((5, 4)).astype(np.float32), np.array([0, 1, 2, 1, 0])
    mask = rng.choice([0.0, 1.25], size=(5, 6)).astype(np.float32)
    parameters = [array.astype(np.float64) for array in _drawn(4, 6, 3, rng)]

    def loss() -> float:
        W1, b1, W2, b2 = parameters
        logits = (np.maximum(rows @ W1 + b1, 0) * mask) @ W2 + b2
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(5), numbers]))

    slopes = _slopes(parameters, rows, numbers, mask)  # type: ignore[arg-type]
    for array, slope in zip(parameters, slopes, strict=True):
        for place in np.ndindex(array.shape):
            kept = array[place]
            array[place] = kept + 1e-6
            above = loss()
            array[place] = kept - 1e-6
            assert slope[place] == pytest.approx((above - loss()) / 2e-6, abs=1e-5)
            array[place] = kept


def test_it_trains_as_torch_does(task: Any) -> None:
    """Same start, same order, no dropout: the same weights after two passes."""
    torch = pytest.importorskip("torch", reason="needs torch==2.13.0")
    rows, labels = task[0][:96], task[1][:96]
    model = Classifier(hidden=16, dropout=0.0, epochs=2, weight_decay=0.1, seed=5).fit(rows, labels)
    rng = np.random.default_rng(5)
    W1, b1, W2, b2 = (torch.tensor(array, requires_grad=True) for array in _drawn(rows.shape[1], 16, 3, rng))
    adam = torch.optim.AdamW([W1, b1, W2, b2], lr=1e-2, weight_decay=0.1)
    for epoch in range(2):
        order = rng.permutation(96)
        for start in (0, 32, 64):
            batch = order[start : start + 32]
            logits = torch.relu(torch.tensor(rows[batch]) @ W1 + b1) @ W2 + b2
            adam.zero_grad()
            torch.nn.functional.cross_entropy(logits, torch.tensor(labels[batch])).backward()
            adam.param_groups[0]["lr"] = 1e-2 * (1 - (epoch * 3 + start // 32) / 6)
            adam.step()
    for mine, theirs in zip(model._parameters, (W1, b1, W2, b2), strict=True):
        assert np.allclose(mine, theirs.detach().numpy(), atol=2e-4)


def test_accuracy_and_macro_f1_are_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    rng = np.random.default_rng(1)
    truth, predicted = rng.integers(0, 5, 200), rng.integers(0, 4, 200)
    found = Classification.of(truth, predicted)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, predicted, average="macro"))


def test_one_class_only_is_always_right(embeddings: np.ndarray) -> None:
    assert classify(embeddings[:40], [1] * 40, embeddings[:10], [1] * 10) == Classification(1.0, 1.0, 10)


def test_it_does_not_touch_what_it_is_given(task: Any) -> None:
    rows, labels = task[0][:100].copy(), task[1][:100].copy()
    Classifier().fit(rows, labels).predict(rows)
    assert np.array_equal(rows, task[0][:100])
    assert np.array_equal(labels, task[1][:100])


def test_what_cannot_be_used_is_refused(embeddings: np.ndarray) -> None:
    rows = embeddings[:10]
    with pytest.raises(InputError, match=r"10 vectors but labels of shape \(9,\)"):
        Classifier().fit(rows, [0] * 9)
    with pytest.raises(InputError, match="at least one vector"):
        Classifier().fit(rows[:0], [])
    with pytest.raises(InputError, match="width 3, but the classifier was trained on width 256"):
        Classifier().fit(rows, [0, 1] * 5).predict(np.eye(3))
    broken = rows.copy()
    broken[4, 4] = np.inf
    with pytest.raises(InputError, match="row 4 of the vectors is not finite"):
        Classifier().fit(broken, [0] * 10)
    with pytest.raises(InputError, match="give as many"):
        Classification.of(np.arange(3), np.arange(2))


@pytest.mark.parametrize(
    "options",
    [{"hidden": 0}, {"epochs": 0}, {"batch_size": 0}, {"learning_rate": 0}, {"dropout": 1.0}, {"weight_decay": -1}],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Classifier(**options)
