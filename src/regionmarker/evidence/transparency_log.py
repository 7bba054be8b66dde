"""A transparency log (Rekor's API): that a document is on a list which nobody can shorten, and which others read.

A time stamp shows that a document existed, and hides how many others did. A log shows all that a signer put there. An
entry is asked for once, by :func:`put_on_log`; after that it is checked offline: the log's signature, the Merkle proof
that the entry is in the tree (RFC 6962), and the checkpoint that the log signed for that tree.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import httpx2
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
    load_pem_public_key,
)

from regionmarker.errors import InputError, OutsideError
from regionmarker.evidence.bundle import need, plain_json
from regionmarker.evidence.signature import Signer
from regionmarker.terminal import plain

PUBLIC_LOG = "https://rekor.sigstore.dev"
_ENTRIES = "/api/v1/log/entries"
_TIMEOUT = 60.0
_MOST_BYTES = 1 << 20
_ENTRY_FIELDS = {"body", "integratedTime", "logID", "logIndex", "verification"}
_PROOF_FIELDS = {"checkpoint", "hashes", "logIndex", "rootHash", "treeSize"}


@dataclass(frozen=True)
class LogEntry:
    """What a checked entry says.

    Attributes
    ----------
    index
        Its place in the log.
    time
        When the log took it, by its own clock.
    log
        The SHA-256 of the log's public key, in hexadecimal digits.
    is_trusted
        Whether the log's key was given by whoever checks; otherwise its signatures were not looked at.
    """

    index: int
    time: datetime
    log: str
    is_trusted: bool


def put_on_log(
    content: bytes, signer: Signer, url: str = PUBLIC_LOG, *, transport: httpx2.BaseTransport | None = None
) -> bytes:
    """Put the digest of a document on a log, under the signer's log key, and return the entry as a file.

    A document that is there already is not put there twice: its entry is fetched.
    """
    proposal = proposed_entry(content, signer)
    try:
        with httpx2.Client(timeout=_TIMEOUT, transport=transport) as client:
            request = client.build_request("POST", url.rstrip("/") + _ENTRIES, json=proposal)
            response, whole = _sent(client, request, url)
            if response.status_code == 409:
                found = response.headers.get("location", "").rsplit("/", 1)[-1]
                need(found.isalnum(), f"the log at {url} says that the entry is there already, but not where")
                request = client.build_request("GET", f"{url.rstrip('/')}{_ENTRIES}/{found}")
                response, whole = _sent(client, request, url)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise OutsideError(f"cannot reach the log at {url}: {error}") from None
    if not response.is_success:
        said = plain(whole[:200].decode("utf-8", "replace").replace("\n", " "))
        raise OutsideError(f"the log at {url} answered {response.status_code}: {said}")
    document = _parsed(whole, f"the log at {url}")
    need(len(document) == 1, f"the log at {url} answered with something else than one entry")
    file = plain_json(next(iter(document.values())))
    check_log_entry(file, content, signer.log_key_pem)  # what is kept can be checked
    return file


def _sent(client: httpx2.Client, request: httpx2.Request, url: str) -> tuple[httpx2.Response, bytes]:
    """Return a response and its body, of which no more is read than an entry may have."""
    response, whole = client.send(request, stream=True), bytearray()
    try:
        for piece in response.iter_bytes():
            whole += piece
            much = f"the log at {url} answered with more than {_MOST_BYTES} bytes, which is no entry"
            need(len(whole) <= _MOST_BYTES, much)
    finally:
        response.close()
    return response, bytes(whole)


def proposed_entry(content: bytes, signer: Signer) -> dict[str, Any]:
    """Return what the log is asked to take: a digest, its signature and the public key (hashedrekord)."""
    return {
        "apiVersion": "0.0.1",
        "kind": "hashedrekord",
        "spec": {
            "data": {"hash": {"algorithm": "sha256", "value": sha256(content).hexdigest()}},
            "signature": {
                "content": base64.b64encode(signer.sign_for_log(content)).decode(),
                "publicKey": {"content": base64.b64encode(signer.log_key_pem).decode()},
            },
        },
    }


def check_log_entry(file: bytes, content: bytes, signed_by: bytes, log_key: bytes | None = None) -> LogEntry:
    """Check offline that a document is on a log.

    Parameters
    ----------
    file
        The entry, as :func:`put_on_log` returned it.
    content
        The document.
    signed_by
        The public key (PEM) under which it must stand there.
    log_key
        The log's public key (PEM). Without it the log's own signatures are not checked.
    """
    name = "the log entry"
    entry = _parsed(file, name)
    try:
        need(set(entry) == _ENTRY_FIELDS and plain_json(entry) == file, f"{name} is not spelled as one")
        body = _decoded(entry["body"])
        _check_body(_parsed(body, name), content, signed_by)
        proof = entry["verification"]["inclusionProof"]
        need(set(proof) == _PROOF_FIELDS, f"{name} has no whole proof of inclusion")
        _check_inclusion(body, proof)
        _check_checkpoint(proof, log_key)
        if log_key is not None:
            _check_promise(entry, log_key)
        time = datetime.fromtimestamp(entry["integratedTime"], UTC)
        return LogEntry(int(entry["logIndex"]), time, str(entry["logID"]), log_key is not None)
    except (KeyError, TypeError, ValueError, OverflowError, OSError, binascii.Error, AttributeError) as error:
        raise error if isinstance(error, InputError) else InputError(f"{name} is damaged") from None


def _check_body(body: dict[str, Any], content: bytes, signed_by: bytes) -> None:
    need(body["kind"] == "hashedrekord", "the log entry is of another kind than hashedrekord")
    digest = body["spec"]["data"]["hash"]
    right = digest == {"algorithm": "sha256", "value": sha256(content).hexdigest()}
    need(right, "the log entry is of something else than this document")
    signature = body["spec"]["signature"]
    shown = _decoded(signature["publicKey"]["content"])
    need(_der(shown) == _der(signed_by), "the log entry stands under another key than the signer's log key")
    signed = _decoded(signature["content"])
    need(_is_signed(signed_by, signed, content), "the log entry is not signed by the signer's log key")


def _check_inclusion(body: bytes, proof: dict[str, Any]) -> None:
    """Walk from the leaf to the root of the Merkle tree (RFC 9162, 2.1.3.2)."""
    place, last = int(proof["logIndex"]), int(proof["treeSize"]) - 1
    need(0 <= place <= last, "the log entry lies outside of its tree")
    node = sha256(b"\0" + body).digest()
    for other in map(bytes.fromhex, proof["hashes"]):
        need(last > 0, "the proof of inclusion is too long")
        if place % 2 or place == last:
            node = sha256(b"\1" + other + node).digest()
            while place % 2 == 0 and place:
                place, last = place // 2, last // 2
        else:
            node = sha256(b"\1" + node + other).digest()
        place, last = place // 2, last // 2
    need(last == 0 and node.hex() == proof["rootHash"], "the proof of inclusion does not lead to the root of the tree")


def _check_checkpoint(proof: dict[str, Any], log_key: bytes | None) -> None:
    """See that the log signed this root for a tree of this size (a signed note)."""
    text, _, signatures = str(proof["checkpoint"]).partition("\n\n")
    lines = text.split("\n")
    right = len(lines) >= 3 and lines[1] == str(proof["treeSize"])
    right = right and _decoded(lines[2]).hex() == proof["rootHash"]
    need(right, "the checkpoint is of another tree than the proof of inclusion")
    if log_key is None:
        return
    own = f"\N{EM DASH} {lines[0].partition(' - ')[0]} "  # witnesses may have signed it, too
    found = [_decoded(line.removeprefix(own)) for line in signatures.splitlines() if line.startswith(own)]
    hint = sha256(_der(log_key)).digest()[:4]
    right = any(one[:4] == hint and _is_signed(log_key, one[4:], f"{text}\n".encode()) for one in found)
    need(right, "the checkpoint is not the log's own")


def _check_promise(entry: dict[str, Any], log_key: bytes) -> None:
    """See that the log signed place and time of the entry."""
    names = ("body", "integratedTime", "logID", "logIndex")
    promised = json.dumps({name: entry[name] for name in names}, sort_keys=True, separators=(",", ":")).encode()
    signed = _decoded(entry["verification"]["signedEntryTimestamp"])
    need(_is_signed(log_key, signed, promised), "the log did not sign place and time of the entry")
    need(entry["logID"] == sha256(_der(log_key)).hexdigest(), "the log entry is of another log than the expected one")


def _is_signed(public_pem: bytes, signature: bytes, message: bytes) -> bool:
    try:
        key = load_pem_public_key(public_pem)
    except (ValueError, UnsupportedAlgorithm):
        raise InputError("the log's key is not a public key in PEM") from None
    try:
        if isinstance(key, EllipticCurvePublicKey):
            key.verify(signature, message, ECDSA(SHA256()))
        elif isinstance(key, Ed25519PublicKey):
            key.verify(signature, message)
        else:
            raise InputError("the log's key is neither ECDSA nor Ed25519")
    except InvalidSignature:
        return False
    return True


def _der(public_pem: bytes) -> bytes:
    try:
        return load_pem_public_key(public_pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        raise InputError("the log's key is not a public key in PEM") from None


def check_key_spelling(public_pem: str, name: str) -> None:
    """See that a public key is spelled as we write it: readers of PEM forgive what stands around it."""
    key = load_der_public_key(_der(public_pem.encode()))
    spelled = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    need(spelled == public_pem, f"{name} is not spelled as a public key")


def _decoded(text: str) -> bytes:
    """Return what base64 says; of its spellings only the one is taken."""
    found = base64.b64decode(text, validate=True)
    if base64.b64encode(found).decode() != text:
        raise ValueError
    return found


def _parsed(content: bytes, name: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{name} is not JSON as a log writes it")
    return found
