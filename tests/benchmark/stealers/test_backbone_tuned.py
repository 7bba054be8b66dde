"""The recipe that starts from the ridge solution: where it starts, how it goes on, what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker import load_encoder
from regionmarker.benchmark.stealers import load_stealer
from regionmarker.benchmark.stealers.backbone import Backbone
from regionmarker.errors import InputError

pytestmark = pytest.mark.usefixtures("quiet_torch")
pytest.importorskip("torch", reason="needs torch==2.13.0")

TINY = {"epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "hidden": 32, "max_length": 24, "threads": 1}
COUNT = 200


class Stopped(Exception):
    pass


@pytest.fixture
def material(texts: list[str], served: np.ndarray) -> tuple[list[str], np.ndarray]:
    return texts[:COUNT], served[:COUNT]


def test_it_starts_where_a_ridge_regression_ends(tiny_bert: str, material: Any) -> None:
    texts, served = material
    start = Backbone(tiny_bert, **(TINY | {"epochs": 0})).steal(texts, served)
    drawn = Backbone(tiny_bert, recipe="published", **(TINY | {"epochs": 1})).steal(texts, served)
    mean = served.mean(axis=0)
    constant = float((served @ (mean / np.linalg.norm(mean))).mean())
    assert start.fidelity.cosine > constant > drawn.history[0] + 0.1
    # The hidden layer beside the solution has nothing to say yet.
    linear = Backbone(tiny_bert, **(TINY | {"epochs": 0, "hidden": 0})).steal(texts, served)
    assert np.allclose(linear.encode(texts[:20]), start.encode(texts[:20]), atol=1e-5)


def test_it_learns_from_there_and_never_ends_below(tiny_bert: str, material: Any) -> None:
    model = Backbone(tiny_bert, **(TINY | {"epochs": 6})).steal(*material)
    assert max(model.history[1:]) > model.history[0]
    hopeless = Backbone(tiny_bert, **(TINY | {"head_rate": 1.0})).steal(*material)
    assert hopeless.history[0] == max(hopeless.history)
    start = Backbone(tiny_bert, **(TINY | {"epochs": 0})).steal(*material)
    assert np.array_equal(hopeless.encode(material[0][:9]), start.encode(material[0][:9]))


def test_all_weights_are_trained(tiny_bert: str, material: Any) -> None:
    import torch

    start, _ = Backbone(tiny_bert, **TINY)._start(256)
    after = dict(Backbone(tiny_bert, **(TINY | {"epochs": 6})).steal(*material)._network.named_parameters())
    assert after.keys() == dict(start.named_parameters()).keys()
    assert [name for name, tensor in start.named_parameters() if torch.equal(tensor, after[name])] == []


@pytest.mark.parametrize("step", [1, 12, 15])
def test_a_stopped_training_goes_on_to_the_same_result(
    step: int, tiny_bert: str, material: Any, tmp_path: Path
) -> None:
    def stop(done: int, total: int) -> None:
        if done == step:
            raise Stopped

    whole = Backbone(tiny_bert, **TINY).steal(*material)
    options = TINY | {"checkpoint": tmp_path, "checkpoint_every": 1}  # a folder: the training names its file itself
    with pytest.raises(Stopped):
        Backbone(tiny_bert, **options, progress=stop).steal(*material)
    assert len(list(tmp_path.iterdir())) == 1
    said: list[str] = []
    resumed = Backbone(tiny_bert, **options, say=said.append).steal(*material)
    assert not any("ridge" in words for words in said)  # what it started from is in its state
    assert np.array_equal(resumed.encode(material[0]), whole.encode(material[0]))
    assert list(tmp_path.iterdir()) == []


def test_batches_are_of_texts_of_like_length_and_hold_every_text_once(tiny_bert: str) -> None:
    from regionmarker.benchmark.stealers.training import Training

    network, _ = Backbone(tiny_bert)._start(8)
    tokens = [[5] * int(length) for length in np.random.default_rng(0).integers(2, 40, size=301)]

    def padded(chunk: int) -> float:
        training = Training(network, tokens, lambda embed, rows: embed().sum(), 1, 8, 1e-3, 0, chunk=chunk)
        batches = training._batches(0)
        assert sorted(np.concatenate(batches).tolist()) == list(range(301))
        assert len(batches) == training._a_pass
        assert [batch.tolist() for batch in batches] != [batch.tolist() for batch in training._batches(1)]
        return float(sum(len(batch) * max(len(tokens[row]) for row in batch) for batch in batches))

    assert padded(100) < 0.75 * padded(0)


def test_the_rate_rises_then_falls(tiny_bert: str) -> None:
    from regionmarker.benchmark.stealers.training import Training

    network, _ = Backbone(tiny_bert)._start(8)
    seen: list[list[float]] = []
    training = Training(
        network, [[5, 6]] * 40, lambda embed, rows: embed().sum(), 1, 1, 1e-3, 0, head_rate=1e-2, warm_up=5, clip=1.0,
        progress=lambda done, total: seen.append([group["lr"] for group in training._adam.param_groups]),
    )  # fmt: skip
    training.run()
    rates = np.array(seen)  # (steps, groups)
    assert np.allclose(rates[:, 1] / rates[:, 0], 10) or np.allclose(rates[:, 0] / rates[:, 1], 10)
    top = int(np.argmax(rates[:, 0]))
    assert top == 5
    assert (np.diff(rates[: top + 1, 0]) > 0).all()
    assert (np.diff(rates[top:, 0]) < 0).all()
    assert rates.max() <= 1e-2


@pytest.mark.parametrize(("kind", "options"), [
    ("tiny_bert", {}), ("tiny_bert", {"hidden": 0}), ("tiny_bert", {"pooling": "first"}),
    ("tiny_bert", {"recipe": "published"}), ("tiny_qwen2", {}),
])  # fmt: skip
def test_a_saved_copy_is_an_encoder(
    kind: str, options: Any, material: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    texts, served = material
    copy = Backbone(request.getfixturevalue(kind), **(TINY | options)).steal(texts, served)
    copy.save(tmp_path / "copy")
    questions = [*texts[:12], "words it has never seen", "a much longer text " * 60]
    encoder = load_encoder(f"sentence-transformers:{tmp_path / 'copy'}")
    assert np.allclose(encoder.encode(questions), copy.encode(questions), atol=2e-5)


def test_the_same_training_is_not_done_twice(tiny_bert: str, material: Any, tmp_path: Path) -> None:
    said: list[str] = []
    steps: list[int] = []
    options = TINY | {"copies": tmp_path / "copies", "say": said.append, "progress": lambda done, _: steps.append(done)}
    first = Backbone(tiny_bert, **options).steal(*material)
    assert steps
    assert "takes about" in said[0]
    steps.clear()
    second = Backbone(tiny_bert, **options).steal(*material, clean=material[1])
    assert not steps
    assert "trained before" in said[-1]
    assert np.array_equal(second.encode(material[0]), first.encode(material[0]))
    assert (first.fidelity.reference, second.fidelity.reference) == ("targets", "clean")
    other = Backbone(tiny_bert, **(options | {"learning_rate": 2e-3})).steal(*material)
    assert steps
    assert not np.array_equal(other.encode(material[0]), first.encode(material[0]))


def test_a_training_that_does_not_fit_is_refused_before_it_starts(
    tiny_bert: str, material: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regionmarker.benchmark.stealers.footprint.free_memory", lambda: 1000)
    steps: list[int] = []
    with pytest.raises(InputError, match=r"tuning backbone \(tiny-bert\) takes .* give freeze_words=true"):
        Backbone(tiny_bert, **TINY, progress=lambda done, _: steps.append(done)).steal(*material)
    assert not steps


def test_the_spec_takes_every_option() -> None:
    spec = "backbone:some/model,recipe=tuned,freeze_words=true,freeze_layers=2,head_rate=0.01,epochs=0,hidden=0"
    stealer: Any = load_stealer(spec)
    assert (stealer.freeze_words, stealer.freeze_layers, stealer.head_rate) == (True, 2, 0.01)
