"""A public randomness beacon: which round a commitment has to use, and that a round is the beacon's own.

drand's quicknet signs the number of every round with BLS over BLS12-381; the randomness is the SHA-256 of the
signature. Nobody can choose it, and nobody knows it before its time. Whoever has the beacon's public key verifies a
round offline.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import ceil

from regionmarker.errors import InputError, MissingExtraError

_DOMAIN = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"  # RFC 9380, signatures on G1
_SIGNATURE_BYTES = 48


@dataclass(frozen=True)
class Beacon:
    """A beacon that issues a round every few seconds.

    Attributes
    ----------
    chain
        What the beacon's servers call it, in hexadecimal digits.
    public_key
        On G2, compressed, in hexadecimal digits.
    genesis
        When round 1 was issued, in seconds since 1970.
    period
        Seconds from one round to the next.

    Examples
    --------
    >>> quicknet = BEACONS["drand-quicknet"]
    >>> quicknet.first_round_from(quicknet.time_of(657413)), quicknet.first_round_from(quicknet.time_of(657413) + 0.1)
    (657413, 657414)
    """

    chain: str
    public_key: str
    genesis: int
    period: int

    def time_of(self, number: int) -> int:
        """Return when a round was issued, in seconds since 1970."""
        return self.genesis + (number - 1) * self.period

    def first_round_from(self, time: float) -> int:
        """Return the first round at or after a time."""
        return max(ceil((time - self.genesis) / self.period) + 1, 1)

    def address(self, number: int) -> str:
        """Return where a round can be had."""
        return f"https://api.drand.sh/{self.chain}/public/{number}"


BEACONS = {
    "drand-quicknet": Beacon(
        chain="52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971",
        public_key=(
            "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c"
            "921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
        ),
        genesis=1692803367,
        period=3,
    )
}
"""The beacons that this version knows, with the public keys that are published for them."""


def randomness(beacon: Beacon, number: int, signature: bytes) -> bytes:
    """Return the randomness of a round, 32 bytes, or refuse a signature that is not the beacon's.

    Examples
    --------
    >>> signature = "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b"
    >>> randomness(BEACONS["drand-quicknet"], 657413, bytes.fromhex(signature)).hex()
    'fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587'
    """
    if len(signature) != _SIGNATURE_BYTES or number < 1 or not _is_signed(beacon, number, signature):
        raise InputError(f"round {number} is not signed by the beacon: get it again from {beacon.address(number)}")
    return sha256(signature).digest()


def read_round(content: bytes, source: object) -> tuple[int, bytes]:
    """Read a round as the beacon's servers give it: its number and its signature."""
    try:
        document = json.loads(content)
        number, signature = document["round"], bytes.fromhex(document["signature"])
        if type(number) is not int:
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{source} is not a round of a beacon: it needs round and signature, in JSON") from None
    return number, signature


@lru_cache(maxsize=64)  # a function of its arguments alone, and two seconds of work
def _is_signed(beacon: Beacon, number: int, signature: bytes) -> bool:
    """Verify e(signature, g2) = e(H(round), public key)."""
    limit = sys.getrecursionlimit()
    try:
        from py_ecc.bls.g2_primitives import subgroup_check
        from py_ecc.bls.hash_to_curve import hash_to_G1
        from py_ecc.bls.point_compression import decompress_G1, decompress_G2
        from py_ecc.bls.typing import G1Compressed, G2Compressed
        from py_ecc.fields import optimized_bls12_381_FQ12 as FQ12
        from py_ecc.optimized_bls12_381.optimized_curve import G2, is_inf, neg
        from py_ecc.optimized_bls12_381.optimized_pairing import final_exponentiate, pairing
    except ImportError:
        raise MissingExtraError.for_module("py_ecc", "beacon") from None
    finally:
        sys.setrecursionlimit(limit)  # py_ecc lifts it to 100,000, where nested JSON ends the process
    key = bytes.fromhex(beacon.public_key)
    try:
        signed = decompress_G1(G1Compressed(int.from_bytes(signature, "big")))
        halves = int.from_bytes(key[:48], "big"), int.from_bytes(key[48:], "big")
        public = decompress_G2(G2Compressed(halves))
    except ValueError:
        return False
    if is_inf(signed) or not subgroup_check(signed):
        return False
    message = hash_to_G1(sha256(number.to_bytes(8, "big")).digest(), _DOMAIN, sha256)  # type: ignore[arg-type] # it wants the function
    both = pairing(G2, signed, final_exponentiate=False) * pairing(public, neg(message), final_exponentiate=False)
    return bool(final_exponentiate(both) == FQ12.one())
