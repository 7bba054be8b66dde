"""The envelope opens with the right secret, whole and unchanged, or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.crypto.envelope import (
    HEADER_BYTES,
    TAG_BYTES,
    UNREADABLE,
    VERSION,
    Kind,
    Lock,
    Opener,
    UnreadableError,
    lock_of,
    open_envelope,
    seal,
)
from regionmarker.crypto.secret import Secret
from regionmarker.errors import KeyFileError

PAYLOAD = Secret(bytes(range(256)) * 400)
OPENER = Opener(Lock.SECRET_FILE, Secret(b"s" * 32))


@pytest.fixture(scope="module")
def sealed() -> bytes:
    return seal(PAYLOAD, Kind.RING, OPENER)


def refused(envelope: bytes, opener: Opener = OPENER, kind: Kind = Kind.RING) -> bool:
    with pytest.raises(UnreadableError) as caught:
        open_envelope(envelope, kind, opener)
    assert str(caught.value) == UNREADABLE
    assert isinstance(caught.value, KeyFileError)
    return True


def flipped(envelope: bytes, bit: int) -> bytes:
    changed = bytearray(envelope)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_it_opens_with_what_sealed_it(sealed):
    assert open_envelope(sealed, Kind.RING, OPENER).reveal() == PAYLOAD.reveal()
    by_passphrase = seal(PAYLOAD, Kind.SERVING, Opener.passphrase("öpen"))
    assert open_envelope(by_passphrase, Kind.SERVING, Opener.passphrase("öpen")).reveal() == PAYLOAD.reveal()
    assert (lock_of(sealed), lock_of(by_passphrase)) == (Lock.SECRET_FILE, Lock.PASSPHRASE)


def test_every_bit_flip_of_header_and_tag_is_refused(sealed):
    header = range(HEADER_BYTES * 8)
    tag = range((len(sealed) - TAG_BYTES) * 8, len(sealed) * 8)
    assert all(refused(flipped(sealed, bit)) for bit in (*header, *tag))


def test_ten_thousand_bit_flips_of_the_body_are_refused(sealed):
    bits = np.random.default_rng(1).choice(
        range(HEADER_BYTES * 8, (len(sealed) - TAG_BYTES) * 8), 10_000, replace=False
    )
    assert all(refused(flipped(sealed, int(bit))) for bit in bits)


def test_every_truncation_and_a_trailing_byte_are_refused(sealed):
    assert all(refused(sealed[:length]) for length in range(len(sealed)))
    assert refused(sealed + b"\0")


def test_flips_in_a_passphrase_header_cost_no_more_than_the_ceilings_allow():
    envelope = seal(PAYLOAD, Kind.RING, Opener.passphrase("a"))
    # The highest bits of memory, iterations and lanes: refused before any work is done.
    assert all(
        refused(flipped(envelope, bit), Opener.passphrase("a")) for bit in (12 * 8 + 31, 16 * 8 + 31, 20 * 8 + 31)
    )


@pytest.mark.parametrize(
    ("offset", "value", "worked"),
    [(12, 256 * 1024, True), (12, 256 * 1024 + 1, False), (16, 6, True), (16, 7, False), (20, 8, True), (20, 9, False)],
)
def test_argon2_works_for_a_stranger_no_more_than_the_ceilings_say(monkeypatch, offset, value, worked):
    """Four times the memory and twice the passes and lanes that we write."""
    envelope = bytearray(seal(PAYLOAD, Kind.RING, Opener.passphrase("a")))
    envelope[offset : offset + 4] = value.to_bytes(4, "little")
    calls = []
    monkeypatch.setattr("regionmarker.crypto.envelope.Argon2id", lambda **cost: calls.append(cost) or _Key())
    assert refused(bytes(envelope), Opener.passphrase("a"))
    assert bool(calls) is worked


class _Key:
    def derive(self, _passphrase: bytes) -> bytes:
        return bytes(32)


def test_wrong_secrets_kinds_and_versions_are_refused_alike(sealed):
    assert refused(sealed, Opener(Lock.SECRET_FILE, Secret(b"t" * 32)))
    assert refused(sealed, Opener.passphrase("s" * 32))
    assert refused(sealed, kind=Kind.SERVING)
    newer = bytearray(sealed)
    newer[8] = VERSION + 1
    assert refused(bytes(newer))
    assert refused(b"")
    assert refused(b"text that is no key " * 10)


def test_two_envelopes_of_one_payload_share_nothing_but_the_format(sealed):
    again = seal(PAYLOAD, Kind.RING, OPENER)
    assert again[24:52] != sealed[24:52]
    assert again[HEADER_BYTES:] != sealed[HEADER_BYTES:]
