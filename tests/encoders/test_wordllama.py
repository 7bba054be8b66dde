"""The embedded default: exact, on one grid, quiet."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from regionmarker.encoders import load_encoder
from regionmarker.encoders.wordllama import WordLlamaEncoder
from regionmarker.errors import InputError

TEXTS = [f"text number {number} about {word}" for number in range(40) for word in ("cats", "markets", "rain")]


def test_rows_lie_on_the_float16_grid() -> None:
    rows = load_encoder("wordllama").encode(TEXTS)
    assert np.array_equal(rows, rows.astype(np.float16).astype(np.float32))


def test_rows_are_those_of_wordllama_itself_to_the_grid() -> None:
    encoder = WordLlamaEncoder()
    own = np.vstack([encoder._model.embed(text, norm=True) for text in TEXTS])
    assert np.abs(encoder.encode(TEXTS) - own).max() < 2**-12  # half a step of float16 below 1/2


def test_the_sum_of_tokens_is_exact_in_any_order() -> None:
    encoder = WordLlamaEncoder()
    ids = list(np.random.default_rng(5).integers(0, 32_000, size=3000))
    assert np.array_equal(encoder._sum(ids), encoder._sum(ids[::-1]))


def test_a_book_is_summed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from regionmarker.encoders import wordllama

    book = " ".join(TEXTS)
    whole = WordLlamaEncoder().encode([book])
    monkeypatch.setattr(wordllama, "_TOKENS", 100)
    assert np.array_equal(WordLlamaEncoder().encode([book]), whole)


def test_meaning_is_in_it() -> None:
    cat, kitten, market = load_encoder("wordllama").encode(
        ["the cat sleeps on the sofa", "a kitten naps on the couch", "shares fell after the bank raised rates"]
    )
    assert cat @ kitten > cat @ market + 0.2


def test_a_text_without_tokens_is_refused_by_its_position(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = WordLlamaEncoder(batch_size=2)
    monkeypatch.setattr(encoder, "_sum", lambda ids: np.zeros(256) if len(ids) > 20 else np.ones(256))
    with pytest.raises(InputError, match="wordllama knows no token of text 3"):
        encoder.encode(["a", "b", "c", "long " * 60])


def test_the_log_of_the_user_stays_as_it_was() -> None:
    code = (
        "import logging\n"
        "from regionmarker.encoders import load_encoder\n"
        "root = logging.getLogger()\n"
        "before = (root.level, list(root.handlers))\n"
        "load_encoder('wordllama').encode(['a'])\n"
        "assert (root.level, list(root.handlers)) == before == (logging.WARNING, [])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
