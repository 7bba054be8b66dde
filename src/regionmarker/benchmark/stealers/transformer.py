"""A Hugging Face model with a head: n(head(p)), p the pooled output of the backbone.

Needs torch and transformers; nothing outside the backbone's own files imports this one.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from regionmarker.benchmark.stealers.answer_heads import Head
from regionmarker.encoders.sentence_transformers import check_tokenizer
from regionmarker.errors import InputError, MissingExtraError, OutsideError
from regionmarker.vectors import Floats, Integers, normalised


class Transformer(torch.nn.Module):
    """Backbone, pooling and head; texts are token numbers by now.

    Parameters
    ----------
    body
        The backbone: any ``AutoModel`` that answers ``last_hidden_state``.
    head
        What makes answers of the pooled output.
    pooling
        What is taken of the output: ``pooler``, ``last``, ``mean`` or ``first``.
    """

    def __init__(self, body: Any, head: Head, pooling: str) -> None:
        super().__init__()
        self.body, self.head, self.pooling = body, head, pooling
        if pooling != "pooler" and getattr(body, "pooler", None) is not None:
            body.pooler = None  # nobody asks it: it is neither kept nor trained

    @property
    def width(self) -> int:
        return self.head.sizes[1]

    @property
    def device(self) -> torch.device:
        return next(self.head.parameters()).device

    def forward(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Answer for texts as lists of token numbers: (b, D'), rows of unit length."""
        return normalize(self.head(self.pool(tokens)), dim=1)

    def pool(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Return the pooled output of the backbone, (b, H)."""
        longest = max(map(len, tokens))
        ids = torch.zeros((len(tokens), longest), dtype=torch.long)  # what stands under the mask is never seen
        mask = torch.zeros((len(tokens), longest), dtype=torch.long)
        for row, numbers in enumerate(tokens):
            ids[row, : len(numbers)] = torch.tensor(numbers)
            mask[row, : len(numbers)] = 1
        ids, mask = ids.to(self.device), mask.to(self.device)
        return self._pooled(self.body(input_ids=ids, attention_mask=mask), mask)

    def freeze(self, layers: int, *, words: bool) -> None:
        """Leave the lowest layers as they are, and the word vectors: with a frozen layer these are frozen anyway.

        Word vectors cost memory (Adam keeps two numbers for each of theirs), and layers below the lowest that is tuned
        cost no time in the way back.
        """
        stack = _layers(self.body)
        if layers > len(stack):
            raise InputError(f"freeze_layers={layers}: the model has {len(stack)} layers only")
        if layers or words:
            self.body.get_input_embeddings().requires_grad_(requires_grad=False)
        if layers:
            for name, part in self.body.named_children():  # positions, norms and whatever else stands before a layer
                if "embed" in name:
                    part.requires_grad_(requires_grad=False)
        for layer in stack[:layers]:
            layer.requires_grad_(requires_grad=False)

    def tuned_layers(self) -> int:
        """Return how many layers the way back goes through."""
        stack = _layers(self.body)
        frozen = [not any(tensor.requires_grad for tensor in layer.parameters()) for layer in stack]
        lowest = frozen.index(False) if False in frozen else len(stack)
        return len(stack) - lowest

    def _pooled(self, output: Any, mask: Tensor) -> Tensor:
        if self.pooling == "pooler":
            pooled: Tensor = output.pooler_output
            return pooled
        states: Tensor = output.last_hidden_state  # (b, L, H)
        if self.pooling == "first":
            return states[:, 0]
        if self.pooling == "last":
            return states[torch.arange(len(states)), mask.sum(dim=1) - 1]
        weights = mask[:, :, None].to(states.dtype)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)

    @torch.no_grad()
    def answers(self, tokens: Sequence[Sequence[int]], batch_size: int) -> Floats:
        """Answer without learning, texts of like length together: (n, D') float32, rows of unit length."""
        return normalised(self._each(self.forward, tokens, batch_size, self.width))  # torch rounds the sum in float32

    @torch.no_grad()
    def features(self, tokens: Sequence[Sequence[int]], batch_size: int) -> Floats:
        """Return what the backbone says without learning, (n, H) float32."""
        return self._each(self.pool, tokens, batch_size, self.head.sizes[0])

    def _each(
        self, embed: Callable[[Sequence[Sequence[int]]], Tensor], tokens: Sequence[Sequence[int]], size: int, width: int
    ) -> Floats:
        self.eval()
        rows = np.empty((len(tokens), width), dtype=np.float32)
        order: Integers = np.argsort([len(numbers) for numbers in tokens], kind="stable")
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            rows[batch] = embed([tokens[row] for row in batch]).float().cpu().numpy()
        return rows


def own_pooling(body: Any, folder: Path | None = None) -> str:
    """Return the pooling that a model was made for.

    That of its sentence-transformers folder, where it says; else the last token of a decoder, and the mean of an
    encoder's tokens.
    """
    config = None if folder is None else folder / "1_Pooling" / "config.json"
    if config is not None and config.is_file():
        said = json.loads(config.read_text(encoding="utf-8"))
        for pooling, mode in POOLING_MODES.items():
            if said.get(f"pooling_mode_{mode}"):
                return pooling
    return "last" if is_decoder(body) else "mean"


def is_decoder(body: Any) -> bool:
    """Return whether a token sees only those before it."""
    return any(getattr(module, "is_causal", False) is True for module in body.modules())


POOLING_MODES = {"mean": "mean_tokens", "first": "cls_token", "last": "lasttoken"}
"""What sentence-transformers calls them."""


def _layers(body: Any) -> list[torch.nn.Module]:
    """Return the layers of a backbone, lowest first, whatever it calls them."""
    count = int(body.config.num_hidden_layers)
    for module in body.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return list(module)
    return []


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' progress bars, and the warnings that are for their own authors, off the user's screen."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def load_pretrained(name: str) -> tuple[Any, Any]:
    """Load a backbone in float32 and its tokenizer: from a folder, from a GGUF file, or by name from the hub."""
    from transformers import AutoModel, AutoTokenizer

    path = Path(name).expanduser()
    local = path.exists()
    if not local and (name.startswith((".", "/", "~")) or name.endswith(".gguf")):
        raise InputError(f"there is no folder {name}: give a model's folder or its name on the Hugging Face hub")
    source, options = str(path) if local else name, {}
    if (file := gguf_file(path)) is not None:
        for module in ("gguf", "accelerate"):  # without them transformers has no reader of such files
            if find_spec(module) is None:
                raise MissingExtraError(f"{file} is a GGUF file: pip install {module}")
        source, options = str(file.parent), {"gguf_file": file.name}
    try:
        with quiet():
            body = AutoModel.from_pretrained(source, local_files_only=local, dtype=torch.float32, **options)
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local, **options)
    except Exception as error:  # the hub, the disk and the model's own code each have their own kinds
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise (InputError if local else OutsideError)(f"cannot load the model {name}: {reason}") from error
    if options:  # plain float32 by now, but transformers still calls it quantised and would not save it
        body.hf_quantizer = None
        if hasattr(body.config, "quantization_config"):
            del body.config.quantization_config
    if body.config.is_encoder_decoder:
        raise InputError(f"{name} is an encoder with a decoder: name a model that is one of them")
    check_tokenizer(name, tokenizer, getattr(body.config, "vocab_size", 0))
    return body, tokenizer


def gguf_file(path: Path) -> Path | None:
    """Return the GGUF file that a path names or that alone lies in its folder; None where there are other weights."""
    if path.suffix == ".gguf":
        return path
    found = sorted(path.glob("*.gguf")) if path.is_dir() and not (path / "config.json").is_file() else []
    return found[0] if len(found) == 1 else None


def tokenise(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[list[int]]:
    """Return the token numbers of each text, cut to ``max_length``; a text of no tokens gets number 0."""
    if not texts:
        return []
    found = tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]
    return [list(numbers) or [0] for numbers in found]
