"""Models of the Hugging Face hub, or of a folder, by the sentence-transformers library.

It sums in float32 and pads a text to the longest of its batch, so the last bit of a vector may depend on the
batch. Where that matters, put a cache around it: what was answered first is then the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.encoders.base import CheckedEncoder
from regionmarker.errors import InputError, MissingExtraError, OutsideError
from regionmarker.vectors import Floats

_SORTED = 8  # batches that are asked for together: the library sorts them by length, and so pads less


class SentenceTransformersEncoder(CheckedEncoder):
    """A sentence-transformers model; it is loaded when the first text has to be embedded.

    Parameters
    ----------
    model
        A name on the hub, such as ``all-MiniLM-L6-v2``, or a folder.
    prompt
        What stands before each text, as some models want it: ``query:``, ``classification:``.
    batch_size
        How many texts the model gets at a time.
    device
        ``"cpu"``, ``"cuda"``, ...; None for what the library finds.
    revision
        A branch, tag or commit of the model on the hub.
    progress
        Let the library draw its own progress bar.

    Examples
    --------
    >>> from regionmarker.errors import MissingExtraError
    >>> try:
    ...     name = SentenceTransformersEncoder("all-MiniLM-L6-v2").name  # loads nothing yet
    ... except MissingExtraError:  # no torch here
    ...     name = "sentence-transformers:all-MiniLM-L6-v2"
    >>> name
    'sentence-transformers:all-MiniLM-L6-v2'
    """

    def __init__(
        self,
        model: str,
        *,
        prompt: str = "",
        batch_size: int = 32,
        device: str | None = None,
        revision: str | None = None,
        progress: bool = False,
    ) -> None:
        if find_spec("sentence_transformers") is None:
            raise MissingExtraError.for_module("sentence-transformers", "sentence-transformers")
        self._folder = Path(model).expanduser() if Path(model).expanduser().is_dir() else None
        if self._folder is None and model.startswith((".", "/", "~")):
            raise InputError(f"there is no folder {model}: give a model's folder or its name on the Hugging Face hub")
        self._model_name, self._prompt = model, prompt.strip()
        self._inner_batch_size, self._device, self._progress = batch_size, device, progress
        super().__init__(
            f"sentence-transformers:{model}" + (f"#{self._prompt}" if self._prompt else ""),
            batch_size=None if progress else batch_size * _SORTED,
            revision=revision or (_contents(self._folder) if self._folder else ""),
        )

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> SentenceTransformersEncoder:
        if not rest:
            raise InputError("name a model: sentence-transformers:NAME, such as sentence-transformers:all-MiniLM-L6-v2")
        model, _, prompt = rest.partition("#")
        if prompt:
            options["prompt"] = prompt
        return cls(model, **options)

    def _find_width(self) -> int:
        # By asking: the library's own method for it has changed its name.
        return self.width or self._embed(["width"], [0]).shape[1]

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        try:
            if self._folder is not None:  # a folder never asks the network
                model = SentenceTransformer(str(self._folder), device=self._device, local_files_only=True)
            else:
                model = SentenceTransformer(self._model_name, device=self._device, revision=self.revision or None)
        except Exception as error:  # the hub, the disk and the model's own code each have their own kinds
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            kind = OutsideError if self._folder is None else InputError
            raise kind(f"cannot load the model {self._model_name}: {reason}") from error
        config = getattr(getattr(model[0], "auto_model", None), "config", None)
        check_tokenizer(self._model_name, getattr(model[0], "tokenizer", None), getattr(config, "vocab_size", 0))
        return model

    def _embed(self, texts: list[str], positions: Sequence[int]) -> Floats:  # noqa: ARG002
        rows = self._model.encode(
            [f"{self._prompt} {text}" for text in texts] if self._prompt else texts,
            batch_size=self._inner_batch_size,
            show_progress_bar=self._progress,
            convert_to_numpy=True,
            normalize_embeddings=True,
        )
        return np.asarray(rows, dtype=np.float32)


def check_tokenizer(model: str, tokenizer: Any, size: int) -> None:
    """Refuse a tokenizer that knows less than half of a model's ``size`` tokens.

    Where a folder lacks its tokenizer, transformers makes an empty one without a word, and all texts look alike.
    """
    known = len(tokenizer) if hasattr(tokenizer, "__len__") else size
    if 2 * known < size:
        raise InputError(
            f"the model {model} has {size} tokens, but its tokenizer knows {known}: the tokenizer's files are missing"
        )


def _contents(folder: Path) -> str:
    """Return a short digest of names, sizes and times: a cache must not answer for other weights in the same folder."""
    lines = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        status = path.stat()
        lines.append(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}")
    return sha256("\n".join(lines).encode()).hexdigest()[:16]
