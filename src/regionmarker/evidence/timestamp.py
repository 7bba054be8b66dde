"""RFC 3161 time stamps: that a bundle existed at a certain time, on the word of a time-stamping authority.

Nothing here uses the network. :func:`write_request` writes ``timestamp.tsq``; send that file to an authority of your
choice (``curl -H 'Content-Type: application/timestamp-query' --data-binary @timestamp.tsq URL -o answer.tsr``), and
:func:`attach_response` puts the answer beside the manifest that it stamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from regionmarker.errors import InputError, MissingExtraError
from regionmarker.evidence.bundle import MANIFEST, REQUEST, TOKEN, read_bundle
from regionmarker.files import atomic_path

if TYPE_CHECKING:
    from rfc3161_client import TimeStampResponse

_SHA256 = "2.16.840.1.101.3.4.2.1"


def write_request(directory: str | Path) -> Path:
    """Write ``timestamp.tsq`` for a bundle's manifest; nothing is sent."""
    client = _client()
    directory = _directory(directory)
    manifest = read_bundle(directory).read(MANIFEST)
    builder = client.TimestampRequestBuilder().data(manifest).hash_algorithm(client.HashAlgorithm.SHA256)
    with atomic_path(directory / REQUEST) as temporary:
        temporary.write_bytes(builder.build().as_bytes())
    return directory / REQUEST


def attach_response(directory: str | Path, response: str | Path) -> str:
    """Put an authority's answer into a bundle, after a look at what it stamps; return the time that it states."""
    directory, response = _directory(directory), Path(response)
    if not response.is_file():
        raise InputError(f"{response} does not exist, or is not a file")
    token = response.read_bytes()
    time = check_token(token, read_bundle(directory).read(MANIFEST))
    with atomic_path(directory / TOKEN) as temporary:
        temporary.write_bytes(token)
    return time


def check_token(token: bytes, manifest: bytes, roots: Sequence[Path] = ()) -> str:
    """Return the time that a token states, or refuse it.

    Parameters
    ----------
    token
        The authority's answer.
    manifest
        What it should stamp.
    roots
        PEM files of the authority's certificates. Without them the authority's own signature is not checked.
    """
    answer = _decoded(token)
    imprint = answer.tst_info.message_imprint
    if imprint.hash_algorithm.dotted_string != _SHA256 or imprint.message != sha256(manifest).digest():
        raise InputError(f"{TOKEN} stamps something else than this bundle's {MANIFEST}")
    if roots:
        _check_authority(answer, manifest, roots)
    return answer.tst_info.gen_time.isoformat()


def _decoded(token: bytes) -> TimeStampResponse:
    client = _client()
    try:
        answer: TimeStampResponse = client.decode_timestamp_response(token)
        if client.PKIStatus(answer.status) not in (client.PKIStatus.GRANTED, client.PKIStatus.GRANTED_WITH_MODS):
            raise InputError(f"{TOKEN} is a refusal: the authority did not grant a time stamp")
        _ = answer.tst_info
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{TOKEN} is not an answer of a time-stamping authority (RFC 3161, in DER)") from None
    return answer


def _check_authority(answer: TimeStampResponse, manifest: bytes, roots: Sequence[Path]) -> None:
    from cryptography.x509 import load_pem_x509_certificates

    client = _client()
    builder = client.VerifierBuilder()
    for path in roots:
        try:
            certificates = load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError):
            raise InputError(f"{path} holds no certificate in PEM") from None
        for certificate in dict.fromkeys(certificates):
            builder = builder.add_root_certificate(certificate)
    try:
        builder.build().verify_message(answer, manifest)
    except client.VerificationError as error:
        raise InputError(f"{TOKEN} is not signed by the given authority: {error}") from None


def _directory(directory: str | Path) -> Path:
    directory = Path(directory)
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory: a zip is stamped before it is packed")
    return directory


def _client() -> ModuleType:
    try:
        import rfc3161_client
    except ImportError:
        raise MissingExtraError.for_module("rfc3161-client", "report") from None
    return rfc3161_client
