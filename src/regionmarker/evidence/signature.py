"""Ed25519 signatures: who vouches for a bundle.

A signature shows that the bundle is the signer's and unchanged. It proves nothing about the suspect's answers; for that
there is ``evidence replay``. Plain files, so that any tool can check them::

    openssl pkeyutl -verify -pubin -inkey signer.pem -rawin -in manifest.json -sigfile manifest.sig
"""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from regionmarker.crypto.secret import Sealed, Secret, read_owner_only, write_owner_only
from regionmarker.errors import InputError, KeyFileError

_DOES_NOT_FIT = "manifest.sig is not the signature of manifest.json by signer.pem: one of the three was changed"
_NOT_A_KEY = "signer.pem is not an Ed25519 public key"
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def signer_path(key_path: Path) -> Path:
    """Return where the signing key of a key file lies when nothing else is said.

    Examples
    --------
    >>> signer_path(Path("provider.rmkey")).name
    'provider.rmkey.signer'
    """
    return key_path.with_name(key_path.name + ".signer")


class Signer(Sealed):
    """A private signing key.

    Examples
    --------
    >>> signer = Signer.generate()
    >>> signer
    <Signer: sealed>
    >>> check_signature(signer.public_pem, signer.sign(b"manifest"), b"manifest") == signer.name
    True
    """

    __slots__ = ("_key",)

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> Signer:
        """Make a new key, in memory only."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | Path) -> Signer:
        """Read a key from a PEM file that only its owner can read."""
        path = Path(path)
        content = read_owner_only(path)
        try:
            key = load_pem_private_key(content.reveal(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise KeyFileError(f"{path} is not a signing key: it must be an Ed25519 private key in PEM, not encrypted")
        return cls(key)

    @classmethod
    def beside(cls, key_path: str | Path) -> Signer:
        """Read the signing key beside a key file; make it (0600) where there is none."""
        path = signer_path(Path(key_path))
        if not path.exists() and not path.is_symlink():
            cls.generate().save(path)
        return cls.load(path)

    def save(self, path: str | Path) -> None:
        """Write the private key to a PEM file that only its owner can read."""
        path = Path(path)
        if path.exists():
            raise InputError(f"{path} exists already: a signing key is never overwritten")
        write_owner_only(path, Secret(self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())))

    @property
    def public_pem(self) -> bytes:
        """The public key, for bundles and for publishing."""
        return self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @property
    def name(self) -> str:
        """The public key as hexadecimal digits."""
        return public_name(self.public_pem)

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)

    # ---- logs take digests, and Ed25519 signs whole messages: on a log the signer has a second key, from the same file

    def _log_key(self) -> EllipticCurvePrivateKey:
        raw = self._key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        drawn = HKDF(algorithm=SHA256(), length=48, salt=None, info=b"regionmarker log key 1").derive(raw)
        return derive_private_key(int.from_bytes(drawn, "big") % (_P256_ORDER - 1) + 1, SECP256R1())

    @property
    def log_key_pem(self) -> bytes:
        """The public key (ECDSA, P-256) under which the signer's entries stand on a log."""
        return self._log_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign_for_log(self, message: bytes) -> bytes:
        # The same signature each time (RFC 6979): a log takes a document with another signature for another entry.
        return self._log_key().sign(message, ECDSA(SHA256(), deterministic_signing=True))


def public_name(public_pem: bytes) -> str:
    """Return a public key as hexadecimal digits."""
    return _public(public_pem).public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def pem_of_name(name: str) -> bytes:
    """Return the public key (PEM) that hexadecimal digits name.

    Examples
    --------
    >>> signer = Signer.generate()
    >>> pem_of_name(signer.name) == signer.public_pem
    True
    """
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(name))
    except ValueError:
        raise InputError("the signer is not named by the 32 bytes of an Ed25519 public key") from None
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def check_signature(public_pem: bytes, signature: bytes, message: bytes, complaint: str = _DOES_NOT_FIT) -> str:
    """Return the signer's name, or refuse a signature that is not theirs."""
    key = _public(public_pem)
    try:
        key.verify(signature, message)
    except InvalidSignature:
        raise InputError(complaint) from None
    if key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) != public_pem:
        raise InputError("signer.pem holds more than a public key")
    return public_name(public_pem)


def _public(public_pem: bytes) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(public_pem)
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(_NOT_A_KEY) from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(_NOT_A_KEY)
    return key
