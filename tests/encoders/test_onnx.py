"""Exported models: a real file in the real runtime for token numbers, a stand-in for one that takes strings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regionmarker.encoders import load_encoder
from regionmarker.encoders import onnx as module
from regionmarker.encoders.onnx import OnnxEncoder
from regionmarker.errors import InputError, MissingExtraError


def field(number: int, value: int | bytes | str) -> bytes:
    """One field of a protocol buffer: a number, or bytes with their length before them."""
    if isinstance(value, int):
        return bytes([number << 3]) + bytes([value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def described(name: str, kind: int) -> bytes:
    shape = field(1, field(2, "b")) + field(1, field(2, "tokens"))
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def cast_model() -> bytes:
    """An ONNX model of one operator: token numbers (b, L) become floats (b, L), its "pooled output"."""
    to = field(1, "to") + field(3, 1) + bytes([0xA0, 0x01, 0x02])  # field 20, its type: a whole number
    node = field(1, "input_ids") + field(2, "rows") + field(4, "Cast") + field(5, to)
    graph = field(1, node) + field(2, "g") + field(11, described("input_ids", 7)) + field(12, described("rows", 1))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
    tokenizers = pytest.importorskip("tokenizers", reason="needs the package tokenizers")
    words = {"[PAD]": 0, "[UNK]": 1, "a": 2, "cat": 3, "sat": 4}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "model.onnx").write_bytes(cast_model())
    return tmp_path / "model.onnx", tmp_path / "tokenizer.json"


def test_a_file_and_its_tokenizer(files: tuple[Path, Path]) -> None:
    model, tokenizer = files
    encoder = load_encoder(f"onnx:{model}#{tokenizer}")
    assert encoder.name == f"onnx:{model}#{tokenizer}"
    rows = encoder.encode(["a cat sat", "cat"])
    expected = np.array([[2.0, 3.0, 4.0], [3.0, 0.0, 0.0]])
    assert np.allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_what_is_wrong_with_the_files_is_told(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = files
    pytest.importorskip("onnxruntime_extensions", reason="needs the package onnxruntime-extensions")
    with pytest.raises(InputError, match="takes no texts: name its tokenizer"):
        load_encoder(f"onnx:{model}").encode(["a"])
    with pytest.raises(InputError, match="cannot load the model"):
        load_encoder(f"onnx:{tokenizer}#{tokenizer}").encode(["a"])
    with pytest.raises(InputError, match="cannot read the tokenizer"):
        load_encoder(f"onnx:{model}#{model}").encode(["a"])
    with pytest.raises(InputError, match=r"there is no file nothing.json"):
        load_encoder(f"onnx:{model}#nothing.json")
    with pytest.raises(InputError, match="name a model"):
        load_encoder("onnx")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"onnxruntime is not installed: pip install .*onnx"):
        load_encoder(f"onnx:{model}")


def test_a_model_that_takes_strings_is_given_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    class Session:
        def get_inputs(self) -> list[Any]:
            return [SimpleNamespace(name="inputs", type="tensor(string)")]

        def run(self, names: None, given: dict[str, Any]) -> list[np.ndarray]:
            seen.append(given["inputs"].tolist())
            return [np.array([[len(text), 1.0] for text in given["inputs"]], dtype=np.float32)]

    (tmp_path / "use.onnx").write_bytes(b"")
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    monkeypatch.setattr(OnnxEncoder, "_session", Session())
    rows = OnnxEncoder(str(tmp_path / "use.onnx"), batch_size=2).encode(["a", "bb", "ccc"])
    assert seen == [["a", "bb"], ["ccc"]]
    assert np.allclose(rows[:, 0] / rows[:, 1], [1, 2, 3])
