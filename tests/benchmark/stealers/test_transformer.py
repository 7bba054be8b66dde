"""The transformer that is tuned: how it is pooled, and what it never sees."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.stealers.backbone import Backbone
from regionmarker.errors import InputError, MissingExtraError, OutsideError

pytestmark = pytest.mark.usefixtures("quiet_torch")

COUNT = 60

TINY = {"epochs": 3, "batch_size": 16, "learning_rate": 1e-3, "hidden": 32, "max_length": 24, "threads": 1}
PUBLISHED = {"epochs": 1, "recipe": "published", "learning_rate": 1e-2}


pytest.importorskip("torch", reason="needs torch==2.13.0")

from regionmarker.benchmark.stealers.transformer import gguf_file, load_pretrained  # noqa: E402


@pytest.fixture
def material(texts: list[str], served: np.ndarray) -> tuple[list[str], np.ndarray]:
    return texts[:COUNT], served[:COUNT]


def test_what_is_taken_of_a_model_by_itself(tiny_bert: str, tiny_qwen2: str, tmp_path: Path) -> None:
    for folder, recipe, pooling in (
        (tiny_bert, "published", "pooler"), (tiny_bert, "tuned", "mean"),
        (tiny_qwen2, "published", "last"), (tiny_qwen2, "tuned", "last"),
    ):  # fmt: skip
        network, _ = Backbone(folder, **TINY, recipe=recipe)._start(16)
        assert network.pooling == pooling
        assert network.head.sizes == (32, 16, 32)
        assert (getattr(network.body, "pooler", None) is not None) == (pooling == "pooler")
    network, _ = Backbone(tiny_bert, recipe="published")._start(16)
    assert network.head.sizes[2] == 16  # as wide as the answers


def test_a_folder_of_sentence_transformers_says_its_pooling(tiny_bert: str, tmp_path: Path) -> None:
    folder = tmp_path / "granite"
    shutil.copytree(tiny_bert, folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert Backbone(str(folder))._start(16)[0].pooling == "first"
    assert Backbone(str(folder), pooling="mean")._start(16)[0].pooling == "mean"


def test_what_is_frozen_stays_as_it_was(tiny_bert: str, tiny_qwen2: str, material: Any) -> None:
    for folder in (tiny_bert, tiny_qwen2):
        start, _ = Backbone(folder, **TINY)._start(256)
        before = {name: tensor.detach().clone() for name, tensor in start.named_parameters()}
        words = start.body.get_input_embeddings().weight.detach().clone()
        for options, moved in (({"freeze_words": True}, True), ({"freeze_layers": 1}, False)):
            network = Backbone(folder, **(TINY | options | PUBLISHED)).steal(*material)._network
            after = dict(network.named_parameters())
            assert np.array_equal(network.body.get_input_embeddings().weight.detach(), words)
            layer = [name for name in before if "layer" in name and "norm" not in name.lower() and "weight" in name]
            assert layer
            assert all(np.array_equal(after[name].detach(), before[name]) != moved for name in layer)
    with pytest.raises(InputError, match="freeze_layers=2: the model has 1 layers only"):
        Backbone(tiny_bert, freeze_layers=2)._start(16)


def test_a_gguf_file_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    assert gguf_file(tmp_path) == gguf_file(tmp_path / "small.gguf") == tmp_path / "small.gguf"
    monkeypatch.setattr("regionmarker.benchmark.stealers.transformer.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"small.gguf is a GGUF file: pip install gguf"):
        load_pretrained(str(tmp_path))
    monkeypatch.undo()
    pytest.importorskip("gguf", reason="needs the package gguf")
    pytest.importorskip("accelerate", reason="needs the package accelerate")
    with pytest.raises(InputError, match="cannot load the model"):
        load_pretrained(str(tmp_path / "small.gguf"))
    (tmp_path / "config.json").write_text("{}")
    assert gguf_file(tmp_path) is None  # other weights


def test_what_a_gguf_file_held_can_be_saved(tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transformers marks such a model as quantised, though its weights are plain by then, and refuses to save it."""
    from transformers import AutoModel, AutoTokenizer

    load, tokenizer = AutoModel.from_pretrained, AutoTokenizer.from_pretrained(tiny_bert)

    def loaded(source: str, *, gguf_file: str, **options: Any) -> Any:
        assert (source, gguf_file) == (str(tmp_path), "small.gguf")
        body = load(tiny_bert)
        body.hf_quantizer = body.config.quantization_config = object()
        return body

    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr("regionmarker.benchmark.stealers.transformer.find_spec", lambda name: object())
    monkeypatch.setattr(AutoModel, "from_pretrained", loaded)
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *given, **options: tokenizer)
    body, _ = load_pretrained(str(tmp_path))
    body.save_pretrained(tmp_path / "saved")
    assert (tmp_path / "saved" / "model.safetensors").is_file()


@pytest.mark.parametrize("pooling", ["last", "mean", "first"])
def test_padding_is_never_seen(pooling: str, tiny_bert: str, tiny_qwen2: str) -> None:
    for folder in (tiny_bert, tiny_qwen2):
        network, _ = Backbone(folder, pooling=pooling)._start(16)
        tokens = [[5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15, 16, 17]]
        assert np.allclose(network.answers(tokens, 2)[0], network.answers(tokens[:1], 1)[0], atol=1e-6)


def test_a_decoder_has_no_pooled_output(tiny_qwen2: str, material: Any) -> None:
    with pytest.raises(InputError, match="has no pooled output"):
        Backbone(tiny_qwen2, pooling="pooler").steal(*material)


def test_models_that_cannot_be_loaded_are_named(tmp_path: Path, material: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="there is no folder /no/such/model"):
        Backbone("/no/such/model").steal(*material)
    with pytest.raises(InputError, match=f"cannot load the model {tmp_path}"):
        Backbone(str(tmp_path)).steal(*material)

    def unreachable(*args: Any, **options: Any) -> None:
        raise OSError("no route to the hub")

    monkeypatch.setattr("transformers.AutoModel.from_pretrained", unreachable)
    with pytest.raises(OutsideError, match="cannot load the model someone/some-model: no route to the hub"):
        Backbone("someone/some-model").steal(*material)


def test_a_folder_without_its_tokenizer_is_refused(tiny_bert: str, tmp_path: Path, material: Any) -> None:
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    for path in folder.glob("*token*"):
        path.unlink()
    with pytest.raises(InputError, match=r"its tokenizer knows \d+: the tokenizer's files are missing"):
        Backbone(str(folder), **TINY).steal(*material)


def test_an_encoder_with_a_decoder_is_refused(tiny_bert: str, tmp_path: Path, material: Any) -> None:
    from transformers import T5Config, T5Model

    folder = tmp_path / "t5"
    shutil.copytree(tiny_bert, folder)
    T5Model(T5Config(vocab_size=50, d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2)).save_pretrained(folder)
    with pytest.raises(InputError, match="is an encoder with a decoder"):
        Backbone(str(folder)).steal(*material)
