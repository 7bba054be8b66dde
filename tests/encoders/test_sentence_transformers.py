"""Models of the hub: the real all-MiniLM-L6-v2, offline."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.encoders import CachedEncoder, load_encoder
from regionmarker.encoders import sentence_transformers as module
from regionmarker.errors import InputError, OutsideError


@pytest.fixture(autouse=True)
def _quiet(quiet_torch: None) -> None:
    pass


def test_gives_what_the_library_gives(minilm: str) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["a cat", "the market fell"]
    expected = SentenceTransformer(minilm, local_files_only=True).encode(texts, normalize_embeddings=True)
    rows = load_encoder(f"sentence-transformers:{minilm}").encode(texts)
    assert rows.shape == (2, 384)
    assert np.allclose(rows, expected, atol=1e-6)


def test_a_prompt_stands_before_each_text(minilm: str) -> None:
    plain, asking = (load_encoder(f"sentence-transformers:{minilm}{more}") for more in ("", "#query: "))
    assert asking.name == f"sentence-transformers:{minilm}#query:"
    assert np.allclose(asking.encode(["a cat"]), plain.encode(["query: a cat"]), atol=1e-6)
    assert not np.allclose(asking.encode(["a cat"]), plain.encode(["a cat"]), atol=1e-2)
    assert np.array_equal(load_encoder(asking.name).encode(["a cat"]), asking.encode(["a cat"]))


def test_no_texts_give_the_width_of_the_model(minilm: str) -> None:
    assert load_encoder(f"sentence-transformers:{minilm}").encode([]).shape == (0, 384)


def test_draws_no_progress_bar_unless_asked(minilm: str, capfd: pytest.CaptureFixture[str]) -> None:
    module.SentenceTransformersEncoder(minilm).encode(["a"])
    assert "Batches" not in capfd.readouterr().err
    module.SentenceTransformersEncoder(minilm, progress=True).encode(["a"])
    assert "Batches" in capfd.readouterr().err


def test_a_full_cache_needs_no_model(minilm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = f"sentence-transformers:{minilm}"
    first = load_encoder(spec, cache=tmp_path / "c.sqlite").encode(["a", "b"])
    monkeypatch.setattr(module.SentenceTransformersEncoder, "_model", property(lambda self: 1 / 0))
    assert np.array_equal(load_encoder(spec, cache=tmp_path / "c.sqlite").encode(["b", "a"]), first[::-1])


def test_other_weights_in_the_same_folder_are_another_revision(tmp_path: Path, minilm: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_text("one")
    spec = f"sentence-transformers:{folder}"
    before: Any = load_encoder(spec)
    (folder / "weights").write_text("other")
    after: Any = load_encoder(spec)
    assert before.name == after.name
    assert before.revision != after.revision


@pytest.mark.parametrize("name", ["/no/such/folder", "./no-such-folder", "~/no-such-folder"])
def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(name: str, minilm: str) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        load_encoder(f"sentence-transformers:{name}")


def test_a_folder_without_a_model_is_named(tmp_path: Path, minilm: str) -> None:
    with pytest.raises(InputError, match=f"cannot load the model {tmp_path}"):
        load_encoder(f"sentence-transformers:{tmp_path}").encode(["a"])


def test_a_damaged_model_is_named(tmp_path: Path, minilm: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(minilm, folder)
    (folder / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(InputError, match="cannot load the model"):
        load_encoder(f"sentence-transformers:{folder}").encode(["a"])


def test_a_folder_without_its_tokenizer_is_refused(tmp_path: Path, minilm: str) -> None:
    """The library makes an empty one, and a key would be made from texts that all look alike."""
    folder = Path(shutil.copytree(minilm, tmp_path / "model"))
    for name in ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink(missing_ok=True)
    with pytest.raises(InputError, match=r"has 30522 tokens, but its tokenizer knows \d+: the tokenizer's files"):
        load_encoder(f"sentence-transformers:{folder}").encode(["a cat"])


def test_a_hub_that_cannot_be_reached_is_the_outside_world(monkeypatch: pytest.MonkeyPatch, minilm: str) -> None:
    monkeypatch.setattr(
        "sentence_transformers.SentenceTransformer", lambda *a, **k: (_ for _ in ()).throw(OSError("no"))
    )
    with pytest.raises(OutsideError, match="cannot load the model someone/some-model: no"):
        load_encoder("sentence-transformers:someone/some-model").encode(["a"])


def test_cached_encoder_takes_a_raw_model_only_with_a_name(minilm: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    raw = SentenceTransformer(minilm, local_files_only=True)
    with pytest.raises(InputError, match="a cache needs a name that tells this SentenceTransformer from others"):
        CachedEncoder(raw, tmp_path / "c.sqlite")
    rows = load_encoder(raw, name="my-minilm", cache=tmp_path / "c.sqlite").encode(["a", "b"])
    assert rows.shape == (2, 384)
