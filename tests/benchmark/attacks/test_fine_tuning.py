"""Fine-tuning a stolen model: it learns the task, it forgets some of what it stole, and sees no provider vector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.benchmark.attacks import FineTune, compose, load_attack, tune
from regionmarker.benchmark.network import SimCSE, TaskLabels
from regionmarker.benchmark.protocols import DataAttack, ModelAttack, Trainable
from regionmarker.benchmark.stealers import FrozenHead, HeadModel, TokenBag
from regionmarker.errors import InputError


@pytest.fixture(scope="module")
def stolen(encoder: Any, sentences: list[str]) -> HeadModel:
    texts = sentences[:300]
    return FrozenHead(encoder, hidden=128, epochs=1).steal(texts, encoder.encode(texts)[:, ::-1])


@pytest.fixture(scope="module")
def task(sentences: list[str]) -> tuple[list[str], list[str]]:
    texts = sentences[1000:1400]
    return texts, ["code" if '"' in text else "prose" for text in texts]


@pytest.fixture
def corpus(tmp_path: Path, task: Any) -> Path:
    path = tmp_path / "task.parquet"
    pq.write_table(pa.table({"text": task[0], "label": task[1], "split": ["train"] * 300 + ["test"] * 100}), path)
    return path


@pytest.mark.parametrize("spec", ["", "objective=simcse,"])
def test_a_sequel_that_moves_the_model_and_leaves_the_old_one(
    spec: str, stolen: HeadModel, corpus: Path, task: Any
) -> None:
    attack = load_attack(f"finetune:{spec}epochs=1,limit=150,{corpus}")
    assert isinstance(attack, ModelAttack)
    assert not isinstance(attack, DataAttack)
    assert load_attack(attack.name) == attack
    before = stolen.encode(task[0][:20])
    tuned = attack.modify(stolen)
    after = tuned.encode(task[0][:20])
    assert tuned.name == f"{stolen.name} then {attack.name}"
    assert np.array_equal(stolen.encode(task[0][:20]), before)
    assert after.dtype == np.float32
    assert np.abs(np.linalg.norm(after.astype(np.float64), axis=1) - 1).max() < 1e-5
    assert 0.3 < (after * before).sum(axis=1).mean() < 0.9999
    assert np.array_equal(attack.modify(stolen).encode(task[0][:20]), after)  # the same every time
    assert tuned.fidelity == stolen.fidelity


def test_another_seed_is_another_tuning(stolen: HeadModel, task: Any) -> None:
    answers = [tune(stolen, *task, epochs=1, seed=seed).encode(task[0][:5]) for seed in (0, 1)]
    assert not np.array_equal(*answers)


def test_labels_pull_the_classes_apart(stolen: HeadModel, task: Any) -> None:
    texts, labels = task
    tuned = tune(stolen, texts[:300], labels[:300], epochs=10, learning_rate=0.01)

    def gap(model: Any, part: slice) -> float:
        answers, code = model.encode(texts[part]), np.array(labels[part]) == "code"
        return float(np.linalg.norm(answers[code].mean(axis=0) - answers[~code].mean(axis=0)))

    assert gap(tuned, slice(300)) > 2 * gap(stolen, slice(300))
    assert gap(tuned, slice(300, 400)) > 1.2 * gap(stolen, slice(300, 400))  # on texts that it was not trained on


def test_simcse_spreads_the_answers(stolen: HeadModel, task: Any) -> None:
    texts = task[0]
    tuned = tune(stolen, texts[:300], epochs=3)
    before, after = (model.encode(texts[300:]) for model in (stolen, tuned))
    assert (after @ after.T).mean() < (before @ before.T).mean()


def test_training_texts_alone_are_read_from_the_corpus(corpus: Path, task: Any, encoder: Any) -> None:
    texts, labels = FineTune(corpus=str(corpus)).texts_and_labels()
    assert set(texts) == set(task[0][:300])
    assert len(labels) == len(texts)
    assert len(FineTune(corpus=str(corpus), limit=50).texts_and_labels()[0]) == 50


def test_a_linear_head_can_be_tuned_too(encoder: Any, sentences: list[str], task: Any) -> None:
    texts = sentences[:100]
    linear = FrozenHead(encoder, hidden=0).steal(texts, encoder.encode(texts))
    assert not np.array_equal(tune(linear, *task, epochs=1).encode(texts), linear.encode(texts))


def test_any_model_is_trained_by_its_own_method(task: Any) -> None:
    class Another:
        name = "another"

        def encode(self, texts: Any) -> np.ndarray:
            return np.eye(3, dtype=np.float32)[: len(texts)]

        def train_on(self, texts: Any, objective: Any, **options: Any) -> Any:
            self.given = (len(texts), type(objective), options)
            return Another()

    model = Another()
    assert isinstance(model, Trainable)
    assert tune(model, *task, epochs=2, learning_rate=1e-4).name == "another then finetune"
    assert model.given == (400, TaskLabels, {"epochs": 2, "batch_size": 32, "seed": 0, "learning_rate": 1e-4})


def test_clear_errors(stolen: HeadModel, encoder: Any, sentences: list[str], task: Any, tmp_path: Path) -> None:
    texts, labels = task
    bag = TokenBag().steal(sentences[:60], encoder.encode(sentences[:60]))
    for broken, message in [
        (lambda: tune(stolen, texts, labels[:3]), "400 texts but 3 labels"),
        (lambda: tune(stolen, texts[:1]), "needs at least 2 texts, but was given 1"),
        (lambda: tune(stolen, texts, ["same"] * 400), "labels of two kinds or more"),
        (lambda: tune(bag, texts, labels), "cannot be trained on: fine-tune a head or a backbone"),
        (lambda: tune(stolen, texts, labels, learning_rate=1e9), "a learning_rate in"),
        (lambda: tune(stolen, texts, labels, epochs=0), "at least 1 epoch"),
        (lambda: FineTune(corpus=str(tmp_path / "no.parquet")).modify(stolen), "does not exist"),
        (lambda: FineTune(corpus="novels.doc").modify(stolen), "novels.doc is no corpus"),
        (lambda: compose(["tanh", "finetune:python"]), "works on a stolen model"),
        (lambda: FineTune(batch=1), "batch at least 2"),
    ]:
        with pytest.raises(InputError, match=message):
            broken()
    from_features = FrozenHead(hidden=0).steal_from_features(encoder.encode(texts), encoder.encode(texts))
    with pytest.raises(InputError, match="trained on features alone"):
        from_features.train_on(texts, SimCSE())
