"""A Hugging Face model with a head: n(W2 ReLU(W1 p + b1) + b2), p the pooled output of the backbone.

Needs torch and transformers; nothing outside the backbone's own files imports this one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, relu

from regionmarker.errors import InputError, OutsideError
from regionmarker.vectors import Floats, Integers, normalised


class Transformer(torch.nn.Module):
    """Backbone, pooling and head; texts are token numbers by now.

    Parameters
    ----------
    body
        The backbone: any ``AutoModel`` that answers ``last_hidden_state``.
    width, hidden
        Of the answers, D', and of the head's hidden layer.
    pooling
        What is taken of the output. ``"auto"`` takes the last token of a decoder, the pooled output of an encoder that
        has one, and the mean of the tokens of any other encoder.
    """

    def __init__(self, body: Any, width: int, hidden: int, pooling: str = "auto") -> None:
        super().__init__()
        self.body = body
        self.pooling = _pooling(body) if pooling == "auto" else pooling
        size = int(body.config.hidden_size)
        self.first, self.second = torch.nn.Linear(size, hidden), torch.nn.Linear(hidden, width)

    @property
    def width(self) -> int:
        return int(self.second.out_features)

    @property
    def device(self) -> torch.device:
        return self.second.weight.device

    def head(self) -> dict[str, Tensor]:
        """Return the weights that are not the backbone's."""
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("body.")}

    def forward(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Answer for texts as lists of token numbers: (b, D'), rows of unit length."""
        longest = max(map(len, tokens))
        ids = torch.zeros((len(tokens), longest), dtype=torch.long)  # what stands under the mask is never seen
        mask = torch.zeros((len(tokens), longest), dtype=torch.long)
        for row, numbers in enumerate(tokens):
            ids[row, : len(numbers)] = torch.tensor(numbers)
            mask[row, : len(numbers)] = 1
        ids, mask = ids.to(self.device), mask.to(self.device)
        pooled = self._pooled(self.body(input_ids=ids, attention_mask=mask), mask)  # (b, H)
        return normalize(self.second(relu(self.first(pooled))), dim=1)

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
        self.eval()
        rows = np.empty((len(tokens), self.width), dtype=np.float32)
        order: Integers = np.argsort([len(numbers) for numbers in tokens], kind="stable")
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            rows[batch] = self([tokens[row] for row in batch]).float().cpu().numpy()
        return normalised(rows)  # torch's rows are of unit length to within float32's rounding of a sum


def _pooling(body: Any) -> str:
    if any(getattr(module, "is_causal", False) is True for module in body.modules()):
        return "last"
    return "pooler" if getattr(body, "pooler", None) is not None else "mean"


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' progress bars, and the warnings that are for their own authors, off the user's screen."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def load_pretrained(name: str) -> tuple[Any, Any]:
    """Load a backbone in float32 and its tokenizer, from a folder or by name from the hub."""
    from transformers import AutoModel, AutoTokenizer

    folder = Path(name).expanduser()
    local = folder.is_dir()
    if not local and name.startswith((".", "/", "~")):
        raise InputError(f"there is no folder {name}: give a model's folder or its name on the Hugging Face hub")
    source = str(folder) if local else name
    try:
        with quiet():
            body = AutoModel.from_pretrained(source, local_files_only=local, dtype=torch.float32)
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
    except Exception as error:  # the hub, the disk and the model's own code each have their own kinds
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise (InputError if local else OutsideError)(f"cannot load the model {name}: {reason}") from error
    if body.config.is_encoder_decoder:
        raise InputError(f"{name} is an encoder with a decoder: name a model that is one of them")
    return body, tokenizer


def tokenise(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[list[int]]:
    """Return the token numbers of each text, cut to ``max_length``; a text of no tokens gets number 0."""
    if not texts:
        return []
    found = tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]
    return [list(numbers) or [0] for numbers in found]
