"""Exported encoders: an ONNX file that takes texts, or token numbers and a tokenizer beside it.

    onnx:FILE                         a model that takes strings, such as the Universal Sentence Encoder
    onnx:FILE#TOKENIZER               a transformer; TOKENIZER is a tokenizer.json

Its pooled output is taken where it has one, else the mean of its token vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.encoders.base import CheckedEncoder
from regionmarker.errors import InputError, MissingExtraError
from regionmarker.vectors import AnyArray

_LONGEST = 128  # tokens


class OnnxEncoder(CheckedEncoder):
    """An exported model; it is loaded when the first text has to be embedded.

    Parameters
    ----------
    model
        The ONNX file.
    tokenizer
        A ``tokenizer.json``; None for a model that takes strings.
    batch_size
        How many texts the model gets at a time.
    threads
        How many threads it uses.

    Examples
    --------
    >>> OnnxEncoder.from_spec("use.onnx")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: there is no file use.onnx: write onnx:FILE, or onnx:FILE#TOKENIZER
    """

    def __init__(self, model: str, tokenizer: str | None = None, *, batch_size: int = 64, threads: int = 1) -> None:
        for file in filter(None, (model, tokenizer)):
            if not Path(file).expanduser().is_file():
                raise InputError(f"there is no file {file}: write onnx:FILE, or onnx:FILE#TOKENIZER")
        if find_spec("onnxruntime") is None:
            raise MissingExtraError.for_module("onnxruntime", "onnx")
        self._file, self._threads = Path(model).expanduser(), threads
        self._tokenizer_file = None if tokenizer is None else Path(tokenizer).expanduser()
        status = self._file.stat()
        super().__init__(
            f"onnx:{model}" + (f"#{tokenizer}" if tokenizer else ""),
            batch_size=batch_size,
            revision=f"{status.st_size} {status.st_mtime_ns}",
        )

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> OnnxEncoder:
        if not rest:
            raise InputError("name a model: onnx:FILE, or onnx:FILE#TOKENIZER")
        model, _, tokenizer = rest.partition("#")
        return cls(model, tokenizer or None, **options)

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        if self._tokenizer_file is None:  # models that take strings bring their tokenizer as an operator
            if find_spec("onnxruntime_extensions") is None:
                raise MissingExtraError.for_module("onnxruntime-extensions", "onnx")
            import onnxruntime_extensions

            options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
        try:
            return onnxruntime.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime has its own kinds
            raise InputError(f"cannot load the model {self._file}: {str(error).splitlines()[0][:200]}") from error

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._tokenizer_file))
        except Exception as error:  # noqa: BLE001 - the library raises Exception itself
            raise InputError(f"cannot read the tokenizer {self._tokenizer_file}: {str(error)[:200]}") from None
        tokenizer.enable_truncation(_LONGEST)
        tokenizer.enable_padding()
        return tokenizer

    def _embed(self, texts: list[str], positions: Sequence[int]) -> AnyArray:  # noqa: ARG002
        inputs = {one.name: one.type for one in self._session.get_inputs()}
        if self._tokenizer_file is None:
            if len(inputs) != 1 or "string" not in next(iter(inputs.values())):
                raise InputError(f"{self._file} takes no texts: name its tokenizer, onnx:FILE#TOKENIZER")
            found = self._session.run(None, {next(iter(inputs)): np.array(texts, dtype=object)})
            return pooled(found, None)
        batch = self._tokenizer.encode_batch(texts)
        mask = np.array([one.attention_mask for one in batch], dtype=np.int64)
        ids = np.array([one.ids for one in batch], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return pooled(self._session.run(None, {name: given[name] for name in given if name in inputs}), mask)


def pooled(outputs: Sequence[AnyArray], mask: AnyArray | None) -> AnyArray:
    """Return one row for each text of a model's outputs: (b, D) where there is one, else the mean over the tokens.

    Examples
    --------
    >>> tokens = np.array([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]])
    >>> pooled([tokens], np.array([[1, 1, 0]])).tolist()
    [[2.0, 3.0]]
    """
    numbers = [one for one in outputs if one.dtype.kind == "f"]
    whole = [one for one in numbers if one.ndim == 2]
    if whole or not numbers or mask is None:
        return (whole or numbers or [np.empty((0, 0))])[0]
    weights = mask[:, :, None]
    return np.asarray((numbers[0] * weights).sum(axis=1) / weights.sum(axis=1))
