"""What asking would cost."""

from __future__ import annotations

import pytest

from regionmarker.encoders import CachedEncoder
from regionmarker.verification.asking import ask_texts
from regionmarker.verification.quote import quote, quote_encoding
from regionmarker.verification.suspects import FunctionSuspect

TEXTS = [f"text number {number}" for number in range(200)]


@pytest.fixture
def suspect(wordllama):
    return FunctionSuspect(wordllama.encode, name="mine")


def test_what_is_kept_is_not_paid_for_unless_it_is_asked_afresh(suspect, tmp_path):
    cache = tmp_path / "answers.sqlite"
    before = quote(suspect, TEXTS, cache=cache)
    assert (before.queries, before.kept, before.sent, before.requests, before.seconds) == (200, 0, 200, 4, 4.0)
    assert not before.measured
    assert not cache.exists()  # a look makes no file
    ask_texts(suspect, TEXTS[:150], cache=cache)
    after = quote(suspect, TEXTS, cache=cache)
    assert (after.kept, after.sent, after.requests, after.measured) == (150, 50, 1, True)
    assert after.seconds < 4.0
    assert quote(suspect, TEXTS, cache=cache, fresh=True).sent == 200


def test_a_file_of_answers_costs_nothing(suspect, tmp_path):
    ask_texts(suspect, TEXTS, cache=False).to_parquet(tmp_path / "answers.parquet")
    found = quote(f"file:{tmp_path}/answers.parquet", TEXTS)
    assert (found.sent, found.tokens, found.price(1.0)) == (0, 0, 0.0)


def test_a_cached_encoder_embeds_a_text_once(wordllama, tmp_path):
    assert quote_encoding(wordllama, TEXTS * 2).sent == 400
    cached = CachedEncoder(wordllama, tmp_path / "cache.sqlite")
    assert quote_encoding(cached, TEXTS * 2).sent == 200
    cached.encode(TEXTS[:50])
    assert (quote_encoding(cached, TEXTS).kept, quote_encoding(cached, TEXTS).sent) == (50, 150)
