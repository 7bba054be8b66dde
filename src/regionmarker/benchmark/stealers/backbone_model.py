"""A copy that is a whole transformer: it answers, is saved and loaded, and may be trained on.

Needs torch and transformers; the stealer imports it when it steals.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file, save_file
from torch import Tensor

from regionmarker.benchmark.protocols import Fidelity, Objective
from regionmarker.benchmark.stealers.answer_heads import HEADS, Dense
from regionmarker.benchmark.stealers.training import TorchLoss, Training, threads, torch_loss
from regionmarker.benchmark.stealers.transformer import (
    POOLING_MODES,
    Transformer,
    load_pretrained,
    quiet,
    tokenise,
)
from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError, OutsideError
from regionmarker.progress import Progress
from regionmarker.vectors import Floats

_ABOUT, _HEAD = "regionmarker.json", "regionmarker_head.safetensors"
_BATCH = 64  # texts that are answered at a time
_FURTHER = 5e-5  # the learning rate of training on
_CLIP, _CHUNK = 1.0, 512
_MODULES = {"Identity": "linear", "Tanh": "activation", "ReLU": "activation", "GELU": "activation"}  # of torch.nn


class BackboneModel:
    """A copy that is a transformer with a head."""

    def __init__(
        self, name: str, network: Transformer, tokenizer: Any, max_length: int, history: Sequence[float] = ()
    ) -> None:
        self.name = name
        self.fidelity: Fidelity
        self.history = tuple(history)
        """Mean cosine on the texts that steered: of the start, then after each pass."""
        self._network, self._tokenizer, self._max_length = network, tokenizer, max_length

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def encode(self, texts: Sequence[str], /) -> Floats:
        texts = check_texts(texts)
        if not texts:
            return np.empty((0, self._network.width), dtype=np.float32)
        return self._network.answers(tokenise(self._tokenizer, texts, self._max_length), _BATCH)

    def train_on(
        self,
        texts: Sequence[str],
        objective: Objective | TorchLoss,
        *,
        parameters: Sequence[Tensor] = (),
        epochs: int = 3,
        batch_size: int = 32,
        learning_rate: float | None = None,
        seed: int = 0,
        threads_used: int | None = None,
        progress: Progress | None = None,
    ) -> BackboneModel:
        """Return a copy of the model that was trained further; the model itself stays as it is.

        Parameters
        ----------
        texts
            What it is trained on.
        objective
            What for; or the loss of a batch in torch, ``loss(embed, rows)``: ``embed()`` gives the batch's vectors
            (b, D') as a tensor, with dropout, so calling it twice gives two views; ``rows`` are its texts' places.
        parameters
            What is trained besides, such as the classifier of a task.
        epochs, batch_size, learning_rate, seed, threads_used, progress
            As for :class:`~regionmarker.benchmark.stealers.backbone.Backbone`.

        Returns
        -------
        BackboneModel
            Its ``fidelity`` is still that of the theft.
        """
        texts = check_texts(texts)
        rate = _FURTHER if learning_rate is None else learning_rate
        if not texts or epochs < 1 or batch_size < 1 or not rate > 0:
            raise InputError(
                "training on needs texts, at least 1 epoch, batch_size of at least 1, positive learning_rate"
            )
        network = deepcopy(self._network)
        tokens = tokenise(self._tokenizer, texts, self._max_length)
        loss = objective if callable(objective) else torch_loss(objective)
        training = Training(
            network, tokens, loss, epochs, batch_size, rate, seed, parameters,
            progress=progress, clip=_CLIP, chunk=_CHUNK,
        )  # fmt: skip
        with threads(threads_used):
            training.run()
        model = BackboneModel(f"{self.name}, trained on", network, self._tokenizer, self._max_length, self.history)
        model.fidelity = self.fidelity
        return model

    def save(self, folder: str | Path) -> None:
        """Write the copy as a folder; it must not exist yet.

        :meth:`load` reads it, and so does sentence-transformers: ``sentence-transformers:FOLDER`` is an encoder that
        answers as the copy does.
        """
        folder = Path(folder)
        if folder.exists():
            raise InputError(f"{folder} exists already: name another folder")
        temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.tmp")
        about = {
            "name": self.name,
            "head": self._network.head.kind,
            "sizes": self._network.head.sizes,
            "pooling": self._network.pooling,
            "max_length": self._max_length,
            "history": self.history,
            "fidelity": asdict(self.fidelity) if hasattr(self, "fidelity") else None,
        }
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with quiet():
                self._network.body.save_pretrained(temporary)
                write_sentence_transformer(temporary, self._network, self._tokenizer, self._max_length)
            save_file(self._network.head.state_dict(), temporary / _HEAD)
            (temporary / _ABOUT).write_text(json.dumps(about))
            temporary.replace(folder)
        except OSError as error:
            raise OutsideError(f"cannot write {folder}: {error.strerror or error}; nothing was changed") from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    @classmethod
    def load(cls, folder: str | Path) -> BackboneModel:
        """Read a copy that :meth:`save` has written."""
        folder = Path(folder)
        if not (folder / _ABOUT).is_file():
            raise InputError(f"{folder} holds no stolen model: give a folder that save has written")
        try:
            about = json.loads((folder / _ABOUT).read_text())
            head = HEADS[about["head"]](*about["sizes"])
            head.load_state_dict(load_file(folder / _HEAD))
            body, tokenizer = load_pretrained(str(folder.resolve()))
            network = Transformer(body, head, about["pooling"])
            model = cls(about["name"], network.eval(), tokenizer, about["max_length"], about["history"])
            if about["fidelity"] is not None:
                model.fidelity = Fidelity(**about["fidelity"])
        except (KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
            raise InputError(f"the stolen model in {folder} is damaged ({type(error).__name__}): delete it") from None
        return model


def write_sentence_transformer(folder: Path, network: Transformer, tokenizer: Any, max_length: int) -> None:
    """Write what makes a folder with a backbone in it a sentence-transformers model: tokenizer, pooling, dense layers.

    The oldest form of these files, which every version reads.
    """
    tokenizer = deepcopy(tokenizer)
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None or tokenizer.pad_token_id >= network.body.config.vocab_size:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(0)  # it stands under the mask, as in training
    tokenizer.save_pretrained(folder)
    size = network.head.sizes[0]
    pooling = "first" if network.pooling == "pooler" else network.pooling
    modes = {f"pooling_mode_{mode}": name == pooling for name, mode in POOLING_MODES.items()}
    layers = network.head.chain()
    if network.pooling == "pooler":
        dense = network.body.pooler.dense
        layers.insert(0, Dense(dense.weight, dense.bias, "Tanh"))
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": size, **modes})
    for place, layer in enumerate(layers, start=2):
        modules.append(("Dense", f"{place}_Dense"))
        _write(folder / f"{place}_Dense" / "config.json", {
            "in_features": layer.weight.shape[1], "out_features": layer.weight.shape[0], "bias": True,
            "activation_function": f"torch.nn.modules.{_MODULES[layer.activation]}.{layer.activation}",
        })  # fmt: skip
        tensors = {"linear.weight": layer.weight, "linear.bias": layer.bias}
        save_file(
            {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()},
            folder / f"{place}_Dense" / "model.safetensors",
        )
    modules.append(("Normalize", f"{len(modules)}_Normalize"))
    (folder / modules[-1][1]).mkdir()
    _write(folder / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": False})
    _write(folder / "modules.json", [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(modules)
    ])  # fmt: skip


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
