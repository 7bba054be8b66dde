"""The transformer that is tuned: how it is pooled, and what it never sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.stealers.backbone import Backbone
from regionmarker.errors import InputError, OutsideError

pytestmark = pytest.mark.usefixtures("quiet_torch")

COUNT = 60

TINY = {"epochs": 3, "batch_size": 16, "learning_rate": 1e-2, "hidden": 32, "max_length": 24, "threads": 1}


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch", reason="needs torch==2.13.0")


@pytest.fixture
def material(texts: list[str], served: np.ndarray) -> tuple[list[str], np.ndarray]:
    return texts[:COUNT], served[:COUNT]


def test_an_encoder_is_pooled_and_a_decoder_gives_its_last_token(tiny_bert: str, tiny_qwen2: str) -> None:
    for folder, pooling in ((tiny_bert, "pooler"), (tiny_qwen2, "last")):
        network, _ = Backbone(folder, **TINY)._start(16)
        assert network.pooling == pooling
        assert (network.first.out_features, network.second.out_features) == (32, 16)
    network, _ = Backbone(tiny_bert)._start(16)
    assert network.first.out_features == 16  # as wide as the answers


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


def test_an_encoder_with_a_decoder_is_refused(tiny_bert: str, tmp_path: Path, material: Any) -> None:
    import shutil

    from transformers import T5Config, T5Model

    folder = tmp_path / "t5"
    shutil.copytree(tiny_bert, folder)
    T5Model(T5Config(vocab_size=50, d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2)).save_pretrained(folder)
    with pytest.raises(InputError, match="is an encoder with a decoder"):
        Backbone(str(folder)).steal(*material)
