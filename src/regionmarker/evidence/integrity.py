"""Nothing was changed: the digests, the signature and the time stamp of a bundle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from regionmarker.errors import InputError, MissingExtraError
from regionmarker.evidence.bundle import FORMAT, MANIFEST, SIGNATURE, SIGNER, TOKEN, UNLISTED, Bundle, manifest_of
from regionmarker.evidence.signature import check_signature, public_name


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; ``detail`` says what was found, or what is wrong."""

    name: str
    ok: bool
    detail: str


def attempt(name: str, file: str, look: Callable[[], str]) -> Check:
    """Make one check; a file that lacks something or holds nonsense fails it, too."""
    try:
        return Check(name, True, look())
    except MissingExtraError as error:
        return Check(name, False, str(error))
    except InputError as error:
        return Check(name, False, str(error))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError):
        return Check(name, False, f"{file} is damaged: a value is missing or is not what it should be")


def need(condition: bool, complaint: str) -> None:
    """Fail the check with a complaint unless the condition holds."""
    if not condition:
        raise InputError(complaint)


def integrity(bundle: Bundle, signer: bytes | None = None, authority: Sequence[Path] = ()) -> list[Check]:
    """Check that nothing was changed since the bundle was written."""
    return [
        attempt("signature", SIGNATURE, lambda: _signature(bundle, signer)),
        attempt("files", MANIFEST, lambda: _files(bundle)),
        attempt("time stamp", TOKEN, lambda: _time_stamp(bundle, authority)),
    ]


def _files(bundle: Bundle) -> str:
    manifest = bundle.json(MANIFEST)
    need(manifest["format"] == FORMAT, f"{MANIFEST} has the format {manifest['format']!r}, not {FORMAT!r}")
    listed: dict[str, str] = manifest["files"]
    for name in sorted(listed):
        need(
            sha256(bundle.read(name)).hexdigest() == listed[name],
            f"{name} was changed: its digest is not the manifest's",
        )
    for name in sorted(bundle.files):
        need(name in listed or name in UNLISTED, f"{name} does not belong to the bundle: the manifest does not list it")
    plain = manifest_of(bundle.level, {name: bundle.files[name] for name in listed})
    need(plain == bundle.files[MANIFEST], f"{MANIFEST} was changed: it is not written as a manifest is")
    return f"{len(listed)} files have the digests of the manifest"


def _signature(bundle: Bundle, expected: bytes | None) -> str:
    if SIGNATURE not in bundle.files and SIGNER not in bundle.files:
        need(expected is None, f"{SIGNATURE} is missing: the bundle is not signed, but a signer is expected")
        return "not signed: anyone may have written this"
    name = check_signature(bundle.read(SIGNER), bundle.read(SIGNATURE), bundle.read(MANIFEST))
    if expected is None:
        return f"signed by {name}: compare with what the claimant has published"
    need(name == public_name(expected), f"{SIGNER}: the bundle is signed by {name}, not by the expected signer")
    return f"signed by the expected signer, {name}"


def _time_stamp(bundle: Bundle, authority: Sequence[Path]) -> str:
    if TOKEN not in bundle.files:
        need(not authority, f"{TOKEN} is missing: the bundle has no time stamp")
        return "none"
    from regionmarker.evidence.timestamp import check_token

    time = check_token(bundle.read(TOKEN), bundle.read(MANIFEST), authority)
    return f"{time}, " + ("by the given authority" if authority else "authority not checked: give its certificate")
