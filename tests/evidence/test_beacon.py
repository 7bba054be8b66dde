"""A beacon: its rounds are verified offline, and nothing else passes for one."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from regionmarker.errors import InputError, MissingExtraError
from regionmarker.evidence.beacon import BEACONS, randomness, read_round

QUICKNET = BEACONS["drand-quicknet"]
ROUND = 657413
SIGNATURE = bytes.fromhex(
    "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b"
)
"""A round as drand issued it."""


def test_a_round_that_drand_issued_verifies():
    drawn = randomness(QUICKNET, ROUND, SIGNATURE)
    assert drawn.hex() == "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587"  # as drand published it


def flipped(place: int, bit: int = 1) -> bytes:
    return SIGNATURE[:place] + bytes([SIGNATURE[place] ^ bit]) + SIGNATURE[place + 1 :]


NOT_SIGNATURES = {
    "first byte flipped": flipped(0),
    "middle byte flipped": flipped(24),
    "last byte flipped": flipped(47),
    "the same point on the other side": flipped(0, 0x20),
    "not compressed": flipped(0, 0x80),
    "the point at infinity": b"\xc0" + bytes(47),
    "a point of the curve outside of the group": b"\x80" + bytes(46) + b"\x04",
    "no point of the curve": b"\xff" * 48,
    "a byte less": SIGNATURE[:-1],
    "a byte more": SIGNATURE + b"\0",
    "nothing": b"",
}


@pytest.mark.parametrize("what", NOT_SIGNATURES)
def test_what_the_beacon_did_not_sign_is_refused(what):
    with pytest.raises(
        InputError, match=rf"round {ROUND} is not signed by the beacon: get it again from https://.*/{ROUND}"
    ):
        randomness(QUICKNET, ROUND, NOT_SIGNATURES[what])


@pytest.mark.parametrize("number", [ROUND - 1, ROUND + 1, 0, -1])
def test_a_signature_is_of_one_round_only(number):
    with pytest.raises(InputError, match=f"round {number} is not signed by the beacon"):
        randomness(QUICKNET, number, SIGNATURE)


def test_a_round_of_another_beacon_is_refused():
    other = (  # the generator of G2: a key whose secret everybody knows
        "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e024aa2b2f08f0a9126"
        "0805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
    )
    with pytest.raises(InputError, match="is not signed by the beacon"):
        randomness(replace(QUICKNET, public_key=other), ROUND, SIGNATURE)


def test_a_check_leaves_the_recursion_limit_alone():
    """py_ecc lifts it to 100,000 when it is imported, and there nested JSON ends the process instead of a sentence."""
    script = f"""
import json, sys
from regionmarker.errors import InputError
from regionmarker.evidence.beacon import BEACONS, randomness, read_round
limit = sys.getrecursionlimit()
assert "py_ecc" not in sys.modules
randomness(BEACONS["drand-quicknet"], {ROUND}, bytes.fromhex("{SIGNATURE.hex()}"))
assert "py_ecc" in sys.modules
assert sys.getrecursionlimit() == limit, sys.getrecursionlimit()
try:
    read_round(b"[" * 90_000, "round.json")
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("round.json is not a round of a beacon")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "py_ecc.bls.g2_primitives", None)
    with pytest.raises(MissingExtraError, match=r"regionmarker\[beacon\]"):
        randomness(QUICKNET, ROUND + 99, SIGNATURE)  # not one that was looked at before


def test_the_first_round_at_or_after_a_time_is_the_one():
    assert QUICKNET.time_of(1) == QUICKNET.genesis
    for number in (1, 2, ROUND):
        assert QUICKNET.first_round_from(QUICKNET.time_of(number)) == number
        assert QUICKNET.first_round_from(QUICKNET.time_of(number) + 0.001) == number + 1
        assert QUICKNET.first_round_from(QUICKNET.time_of(number + 1) - 0.001) == number + 1
    assert QUICKNET.first_round_from(0) == 1


def test_a_round_is_read_as_the_servers_give_it():
    document = {"round": ROUND, "randomness": "00", "signature": SIGNATURE.hex()}
    assert read_round(json.dumps(document).encode(), "round.json") == (ROUND, SIGNATURE)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b'{"round": 1}',
        b'{"round": true, "signature": "00"}',
        b'{"round": 1.0, "signature": "00"}',
        b'{"round": 1, "signature": "zz"}',
        b'{"round": 1, "signature": 7}',
        b"[" * 90_000,
        b'{"round":' * 90_000,
    ],
    ids=lambda content: content[:20].decode("latin-1") + f" {len(content)}",
)
def test_what_is_not_a_round_is_refused_in_a_sentence(content):
    with pytest.raises(InputError, match=r"round\.json is not a round of a beacon: it needs round and signature"):
        read_round(content, "round.json")
