"""Check a bundle offline: recompute all that its level of disclosure allows.

First that nothing was changed (digests, signature, time stamp); only then what the numbers say. Nothing here believes a
number of the bundle that it can compute, and nothing needs the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from regionmarker.errors import InputError, MissingExtraError
from regionmarker.evidence import check_court, check_expert, check_summary
from regionmarker.evidence.bundle import (
    DISCLOSURES,
    FORMAT,
    MANIFEST,
    SIGNATURE,
    SIGNER,
    TOKEN,
    UNLISTED,
    Bundle,
    manifest_of,
    need,
    read_bundle,
)
from regionmarker.evidence.check_summary import CheckRow
from regionmarker.evidence.score_forms import VERDICT
from regionmarker.evidence.signature import check_signature, public_name

TABLES = (check_summary.CHECKS, check_expert.CHECKS, check_court.CHECKS)
"""What each level of disclosure adds to the checks of the one before it."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; ``detail`` says what was found, or what is wrong."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """All checks of a bundle.

    Attributes
    ----------
    checks
        In the order in which they were made. After a broken digest or signature no others follow.
    """

    path: str
    level: str
    outcome: str
    p_value: float | None
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def failure(self) -> str | None:
        """What is wrong, in one sentence; None where nothing is."""
        return next((check.detail for check in self.checks if not check.ok), None)

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "ok": self.ok, "failure": self.failure}


def check_evidence(path: str | Path, *, signer: bytes | None = None, authority: Sequence[Path] = ()) -> CheckReport:
    """Recompute, offline, all that a bundle's level allows.

    Parameters
    ----------
    path
        The bundle's directory or zip.
    signer
        The public key (PEM) that must have signed it, as the claimant published it elsewhere.
    authority
        PEM files of the time-stamping authority's certificates.

    Returns
    -------
    CheckReport
    """
    bundle = read_bundle(path)
    checks = check_integrity(bundle, signer, authority)
    if not all(check.ok for check in checks):
        return CheckReport(str(path), "", "", None, tuple(checks))
    verdict = bundle.json(VERDICT)
    for table in TABLES[: DISCLOSURES.index(bundle.disclosure) + 1]:
        checks += _made(table, bundle)
    outcome, p_value = (verdict.get(name) if isinstance(verdict, dict) else None for name in ("outcome", "p_value"))
    return CheckReport(str(path), bundle.disclosure, str(outcome), p_value, tuple(checks))


def check_integrity(bundle: Bundle, signer: bytes | None = None, authority: Sequence[Path] = ()) -> list[Check]:
    """Check that nothing was changed since the bundle was written."""
    table = (
        CheckRow("signature", SIGNATURE, lambda given: _signature(given, signer)),
        CheckRow("files", MANIFEST, _files),
        CheckRow("time stamp", TOKEN, lambda given: _time_stamp(given, authority)),
    )
    return _made(table, bundle)


def _made(table: Sequence[CheckRow], bundle: Bundle) -> list[Check]:
    """Make the checks of one table; a file that lacks something or holds nonsense fails its check, too."""
    made: list[Check] = []
    for row in table:
        if row.optional and row.file not in bundle.files:
            continue
        try:
            made.append(Check(row.name, True, row.look(bundle)))
        except (InputError, MissingExtraError) as error:
            made.append(Check(row.name, False, str(error)))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError):
            damaged = f"{row.file} is damaged: a value is missing or is not what it should be"
            made.append(Check(row.name, False, damaged))
        if row.needed and not made[-1].ok:
            break
    return made


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
    plain = manifest_of(bundle.disclosure, {name: bundle.files[name] for name in listed})
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
