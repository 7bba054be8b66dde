"""The corpus that everyone has."""

from __future__ import annotations

import gc

from regionmarker.sample_corpus import python_sentences, sentences_by_module


def test_sentences_are_distinct_prose_and_the_same_every_time() -> None:
    found = python_sentences(limit=500)
    assert len(set(found)) == len(found) == 500
    assert all(5 <= len(sentence.split()) <= 60 and ">>>" not in sentence for sentence in found)
    assert python_sentences(limit=500) == found


def test_there_is_enough_for_a_key_and_a_thief_and_every_sentence_has_its_module() -> None:
    found = sentences_by_module()
    assert len(found) > 9000
    assert {"topics", "asyncio", "email"} <= set(found.values())
    assert gc.isenabled()
