"""API keys: enough randomness, nothing stored, no shortcut in comparing."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from regionmarker.gateway.tenants import accounts as apikeys
from regionmarker.gateway.tenants.accounts import api_key_id, digest_of, matches, new_api_key


def test_keys_are_new_each_time_and_carry_256_bits():
    keys = {new_api_key() for _ in range(100)}
    assert len(keys) == len({api_key_id(key) for key in keys}) == 100
    assert {len(key.split("-", 2)[2]) for key in keys} == {43}


def test_only_a_digest_is_stored():
    key = new_api_key()
    assert digest_of(key) == hashlib.sha256(key.encode()).hexdigest()
    assert matches(key, digest_of(key))
    assert not matches(key, digest_of(new_api_key()))
    assert not matches(key, None)


@pytest.mark.parametrize(
    "text",
    ["", "rm-", "sk-0123", "rm-0123456789abcdef-", "RM-0123456789abcdef-" + 43 * "x", "rm-0123456789ABCDEF-" + 43 * "x",
     "rm-0123456789abcdef-" + 44 * "x", "rm-0123456789abcdef-" + 42 * "x" + "\n", "rm-0123456789abcdef-" + 43 * "é"],
)  # fmt: skip
def test_what_is_not_shaped_like_a_key_has_no_id(text):
    assert api_key_id(text) is None


@pytest.mark.parametrize("stored", [None, 64 * "0", 64 * "f"])
def test_digests_are_compared_in_constant_time_whether_or_not_the_key_is_known(monkeypatch, stored):
    compared = []

    def compare(left, right):
        compared.append((len(left), len(right)))
        return hmac.compare_digest(left, right)

    monkeypatch.setattr(apikeys, "hmac", type("Spy", (), {"compare_digest": staticmethod(compare)}))
    assert not matches(new_api_key(), stored)
    assert compared == [(64, 64)]
