"""Secret choices: fixed for ever, separate by label, unbiased."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from scipy.stats import chisquare

from regionmarker.crypto.derive import below, draw_distinct, encode_label, subkey, words
from regionmarker.crypto.secret import Secret

MASTER = Secret(bytes(range(32)))


def test_the_derivation_never_changes():
    # Worked out with the standard library's hmac alone, from the page at the top of derive.py.
    assert subkey(MASTER, "targets", "provider").reveal().hex() == (
        "4b586e752e9aea69586590ac53d0317ba076f9496ddf6da8fa4d56a95f37726a"
    )
    assert list(islice(words(MASTER), 3)) == [5331865313104956575, 4950373572318957865, 127611120742717241]
    assert draw_distinct(subkey(MASTER, "targets", "tenant", "acme"), 1024, 3) == (350, 859, 181)


def test_labels_salts_and_masters_separate_choices():
    keys = {
        subkey(MASTER, "a", "bc").reveal(),
        subkey(MASTER, "ab", "c").reveal(),
        subkey(MASTER, "abc").reveal(),
        subkey(MASTER, "abc", salt=b"public randomness").reveal(),
        subkey(Secret(bytes(32)), "abc").reveal(),
    }
    assert len(keys) == 5
    assert encode_label("", "a") != encode_label("a", "")


def test_draws_below_a_bound_reject_instead_of_wrapping():
    limit = (1 << 64) - (1 << 64) % 10
    assert below(iter([limit, limit + 5, 23]), 10) == 3


def test_every_ordered_tuple_is_equally_likely():
    draws = Counter(draw_distinct(subkey(MASTER, "test", str(number)), 5, 2) for number in range(20_000))
    assert len(draws) == 20
    assert all(first != second for first, second in draws)
    assert chisquare(list(draws.values())).pvalue > 0.001


def test_drawing_all_gives_a_permutation():
    assert sorted(draw_distinct(MASTER, 100, 100)) == list(range(100))
    assert draw_distinct(MASTER, 5, 0) == ()
    with pytest.raises(ValueError, match="cannot draw 6 distinct numbers from 5"):
        draw_distinct(MASTER, 5, 6)
