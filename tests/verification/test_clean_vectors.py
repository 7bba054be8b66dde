"""Marked vectors that are taken for clean ones: they convict innocents, so they are refused before anyone is asked."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker import RegionMarker, verify
from regionmarker.corpus import TextSet
from regionmarker.errors import InputError
from regionmarker.marks.graded_settings import LEAST_PROBES
from regionmarker.verification import clean_vectors, judging
from regionmarker.verification.answers import Answers
from regionmarker.verification.clean_vectors import DOUBT, check_clean, own_mark_p, scores_of_given
from regionmarker.verification.decoy2 import own_list_scores
from regionmarker.verification.judging import judge
from regionmarker.verification.list_test import ListTest

KEYS, TEXTS, OWN = 3, 900, 500


@pytest.fixture(scope="module")
def markers(sentences, embeddings) -> list[RegionMarker]:
    return [RegionMarker(seed=seed).fit(sentences[:TEXTS], embeddings=embeddings[:TEXTS]) for seed in range(KEYS)]


@pytest.fixture(scope="module")
def own(sentences, embeddings) -> TextSet:
    """Probes of the claimant's own, which no key knows."""
    return TextSet(tuple(sentences[TEXTS : TEXTS + OWN]), embeddings[TEXTS : TEXTS + OWN])


def innocent(own: TextSet) -> Answers:
    """The unmarked provider."""
    return Answers("an innocent", own.texts, own.embeddings)


def test_marked_vectors_taken_for_clean_ones_convict_no_innocent(markers, own):
    for marker in markers:
        for tenant in ("", "acme"):
            marked = TextSet(own.texts, marker.transform(own.embeddings, tenant=tenant))
            with pytest.raises(InputError, match="carry this key's own mark"):
                judge(marker, innocent(own), probes=marked, power=False)
        assert judge(marker, innocent(own), probes=own, power=False).outcome == "no evidence"


def test_without_the_guard_every_innocent_is_convicted(markers, own, monkeypatch):
    monkeypatch.setattr(judging, "check_own_probes", lambda keys, probes: None)
    for marker in markers:
        marked = TextSet(own.texts, marker.transform(own.embeddings))
        assert judge(marker, innocent(own), probes=marked, power=False).outcome == "infringement"


def test_verify_refuses_before_it_asks(markers, own):
    class Suspect:
        def encode(self, texts):
            raise AssertionError("nobody is asked")

    marked = markers[0].transform(own.embeddings)
    with pytest.raises(InputError, match="take them from the upstream itself"):
        verify(markers[0], Suspect(), probes=own.texts, embeddings=marked)


def test_texts_that_the_key_knows_have_its_own_vectors(markers, own):
    key = markers[0].key_
    texts, rows = (*own.texts, *key.reservoir.texts[:3]), np.vstack([own.embeddings, key.reservoir.embeddings[:3]])
    check_clean(key, texts, rows)
    check_clean(key, texts, 2.0 * rows)  # their length does not matter
    rows[-2:] = markers[0].transform(rows[-2:])  # far too few for their mark to be seen
    with pytest.raises(InputError, match="2 of 3 texts that the key knows have another vector"):
        check_clean(key, texts, rows)


def test_the_smallest_keys_and_the_fewest_probes_are_enough(sentences, embeddings, own):
    for seed in range(3):
        marker = RegionMarker(seed=seed).fit(sentences[:400], embeddings=embeddings[:400])
        few = own.embeddings[:LEAST_PROBES]
        assert own_mark_p(marker.key_, marker.transform(few)) <= DOUBT < own_mark_p(marker.key_, few)


def test_the_marks_of_another_key_are_not_this_keys(markers, own):
    """A strange mark is noise to this key, and cannot convict by it."""
    assert own_mark_p(markers[0].key_, markers[1].transform(own.embeddings)) > DOUBT


def test_clean_vectors_are_refused_no_oftener_than_promised(markers, own):
    """The scores see no target, so for other targets, drawn as the key draws them, p is as small as it may be."""
    for marker in markers[:2]:
        mark, pool = marker.key_.mark, marker.key_.pool.embeddings
        z = own_list_scores(mark, scores_of_given(mark, own.embeddings, pool), len(pool), "provider")
        test = ListTest(z, mark.settings.test_weights("provider", matched=True))
        drawn = np.random.default_rng(1).integers(test.list_size, size=(4000, test.carriers))
        p_values = test.p_values(drawn + test.list_size * np.arange(test.carriers))
        assert 0.03 < (p_values <= 0.05).mean() < 0.065


def test_the_published_mark_acquits_and_is_left_alone(sentences, embeddings, own):
    marker = RegionMarker(seed=1, pool=128, reservoir=600).fit(sentences[:TEXTS], embeddings=embeddings[:TEXTS])
    assert own_mark_p(marker.key_, marker.transform(own.embeddings)) == 1.0
    rows = marker.key_.pool.embeddings
    with pytest.raises(InputError, match="texts that the key knows have another vector"):
        check_clean(marker.key_, marker.key_.pool.texts, rows[::-1])
    assert clean_vectors.SAME_EMBEDDING == 0.999
