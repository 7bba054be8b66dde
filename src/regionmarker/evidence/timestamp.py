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
from regionmarker.evidence.fields import STATEMENT, STATEMENT_REQUEST, STATEMENT_TOKEN
from regionmarker.files import atomic_path, read_bounded

if TYPE_CHECKING:
    from rfc3161_client import TimeStampResponse

_SHA256 = "2.16.840.1.101.3.4.2.1"


def write_request(directory: str | Path) -> Path:
    """Write a request for a bundle's manifest, or for a statement; nothing is sent."""
    directory = _directory(directory)
    stamped, request, _ = _names(directory)
    with atomic_path(directory / request) as temporary:
        temporary.write_bytes(request_for(read_bundle(directory).read(stamped)))
    return directory / request


def request_for(content: bytes) -> bytes:
    """Return a request to stamp ``content``, of which it holds the digest alone."""
    client = _client()
    builder = client.TimestampRequestBuilder().data(content).hash_algorithm(client.HashAlgorithm.SHA256)
    return bytes(builder.build().as_bytes())


def check_request(request: bytes, content: bytes) -> None:
    """Refuse a file that is not a request to stamp ``content``."""
    _client()
    from rfc3161_client._rust import parse_timestamp_request

    try:
        asked = parse_timestamp_request(request)
    except ValueError:
        raise InputError(f"{REQUEST} is not a request for a time stamp (RFC 3161, in DER)") from None
    imprint = asked.message_imprint
    right = imprint.hash_algorithm.dotted_string == _SHA256 and imprint.message == sha256(content).digest()
    # Written again it has the same bytes, so nothing else is hidden in it.
    if not right or asked.policy is not None or bytes(asked.as_bytes()) != request:
        raise InputError(f"{REQUEST} asks for a time stamp of something else than this bundle's {MANIFEST}")


def attach_response(directory: str | Path, response: str | Path) -> str:
    """Put an authority's answer into a bundle or beside a statement, after a look at what it stamps.

    It returns the time that the answer states.
    """
    directory, response = _directory(directory), Path(response)
    token = read_bounded(response)
    stamped, _, name = _names(directory)
    time = check_token(token, read_bundle(directory).read(stamped))
    with atomic_path(directory / name) as temporary:
        temporary.write_bytes(token)
    return time


def _names(directory: Path) -> tuple[str, str, str]:
    """Return what is stamped, and the files of request and answer: of a bundle, or of a statement's folder."""
    if (directory / MANIFEST).exists() or not (directory / STATEMENT).exists():
        return MANIFEST, REQUEST, TOKEN
    return STATEMENT, STATEMENT_REQUEST, STATEMENT_TOKEN


def check_token(
    token: bytes,
    content: bytes,
    roots: Sequence[Path] = (),
    *,
    name: str = TOKEN,
    what: str = f"this bundle's {MANIFEST}",
) -> str:
    """Return the time that a token states, or refuse it.

    Parameters
    ----------
    token
        The authority's answer.
    content
        What it should stamp.
    roots
        PEM files of the authority's certificates. Without them the authority's own signature is not checked.
    name, what
        What errors call the token and what it stamps.
    """
    answer = _decoded(token, name)
    imprint = answer.tst_info.message_imprint
    if imprint.hash_algorithm.dotted_string != _SHA256 or imprint.message != sha256(content).digest():
        raise InputError(f"{name} stamps something else than {what}")
    if roots:
        _check_authority(answer, content, roots, name)
    return answer.tst_info.gen_time.isoformat()


def _decoded(token: bytes, name: str) -> TimeStampResponse:
    client = _client()
    try:
        answer: TimeStampResponse = client.decode_timestamp_response(token)
        if client.PKIStatus(answer.status) not in (client.PKIStatus.GRANTED, client.PKIStatus.GRANTED_WITH_MODS):
            raise InputError(f"{name} is a refusal: the authority did not grant a time stamp")
        if bytes(answer.as_bytes()) != token:
            raise InputError(f"{name} holds more than the answer of a time-stamping authority")
        _ = answer.tst_info
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{name} is not an answer of a time-stamping authority (RFC 3161, in DER)") from None
    return answer


def _check_authority(answer: TimeStampResponse, content: bytes, roots: Sequence[Path], name: str) -> None:
    from cryptography.x509 import load_pem_x509_certificates

    client = _client()
    builder = client.VerifierBuilder()
    for path in roots:
        try:
            certificates = load_pem_x509_certificates(read_bounded(path))
        except ValueError:
            raise InputError(f"{path} holds no certificate in PEM") from None
        for certificate in dict.fromkeys(certificates):
            builder = builder.add_root_certificate(certificate)
    try:
        builder.build().verify_message(answer, content)
    except client.VerificationError as error:
        raise InputError(f"{name} is not signed by the given authority: {error}") from None


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
