"""A transparency log without a network: Rekor's API over a Merkle tree, written from RFC 6962's own definitions."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any

import httpx2
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

URL = "https://log.example"
_EARLIER = 1000  # entries of the log's older trees: places in the log and in the tree differ, as they do in Rekor


class FakeLog:
    """Takes entries, refuses to take one twice, and proves them."""

    def __init__(self, time: int = 1_700_000_000, others: int = 0) -> None:
        self._key = generate_private_key(SECP256R1())
        self.time = time
        self.bodies: list[bytes] = [b"entry %d of somebody else" % number for number in range(others)]
        self.asked: list[httpx2.Request] = []

    @property
    def public_pem(self) -> bytes:
        return self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @property
    def name(self) -> str:
        der = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return sha256(der).hexdigest()

    @property
    def transport(self) -> httpx2.MockTransport:
        return httpx2.MockTransport(self._answer)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        if request.method == "GET":
            found = request.url.path.rsplit("/", 1)[-1]
            place = [sha256(body).hexdigest() for body in self.bodies].index(found)
            return httpx2.Response(200, json={found: self.entry(place)})
        body = json.dumps(json.loads(request.content), sort_keys=True, separators=(",", ":")).encode()
        if body in self.bodies:  # signature and all: signed anew, the same document is another entry
            where = f"/api/v1/log/entries/{sha256(body).hexdigest()}"
            return httpx2.Response(409, headers={"location": where}, json={"code": 409, "message": "there already"})
        self.bodies.append(body)
        return httpx2.Response(201, json={sha256(body).hexdigest(): self.entry(len(self.bodies) - 1)})

    def entry(self, place: int) -> dict[str, Any]:
        """One entry with its proof in the tree as it is now."""
        promised = {
            "body": base64.b64encode(self.bodies[place]).decode(),
            "integratedTime": self.time,
            "logID": self.name,
            "logIndex": _EARLIER + place,
        }
        root = tree_root(self.bodies).hex()
        proof = {
            "checkpoint": self._checkpoint(root),
            "hashes": [node.hex() for node in tree_path(place, self.bodies)],
            "logIndex": place,
            "rootHash": root,
            "treeSize": len(self.bodies),
        }
        signed = self._sign(json.dumps(promised, sort_keys=True, separators=(",", ":")).encode())
        return {**promised, "verification": {"inclusionProof": proof, "signedEntryTimestamp": signed}}

    def _checkpoint(self, root: str) -> str:
        text = f"log.example - 1\n{len(self.bodies)}\n{base64.b64encode(bytes.fromhex(root)).decode()}\n"
        signed = bytes.fromhex(self.name)[:4] + base64.b64decode(self._sign(text.encode()))
        return f"{text}\n\N{EM DASH} log.example {base64.b64encode(signed).decode()}\n"

    def _sign(self, message: bytes) -> str:
        return base64.b64encode(self._key.sign(message, ECDSA(SHA256()))).decode()


def tree_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, 2.1."""
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    half = _half(len(leaves))
    return sha256(b"\1" + tree_root(leaves[:half]) + tree_root(leaves[half:])).digest()


def tree_path(place: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, 2.1.1."""
    if len(leaves) == 1:
        return []
    half = _half(len(leaves))
    if place < half:
        return [*tree_path(place, leaves[:half]), tree_root(leaves[half:])]
    return [*tree_path(place - half, leaves[half:]), tree_root(leaves[:half])]


def _half(count: int) -> int:
    """The largest power of two below ``count``."""
    return 1 << (count - 1).bit_length() - 1
