"""Check a bundle offline: recompute all that its level of disclosure allows, and name the rest as the claimant's word.

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
    FIRST_FORMAT,
    FORMAT,
    MANIFEST,
    REQUEST,
    SIGNATURE,
    SIGNER,
    TOKEN,
    UNLISTED,
    Bundle,
    manifest_of,
    need,
    read_bundle,
)
from regionmarker.evidence.check_report import check_report
from regionmarker.evidence.check_summary import ABSENT, FAILED, OK, UNEXPECTED, CheckRow, Finding
from regionmarker.evidence.claimant import Word, claimants_words
from regionmarker.evidence.fields import REPORT, STATEMENT, check_fields
from regionmarker.evidence.score_forms import VERDICT
from regionmarker.evidence.signature import check_signature, public_name
from regionmarker.evidence.statement import Draw, check_draw
from regionmarker.html_table import html_table
from regionmarker.keys.commitment import COMMITMENT

TABLES = (check_summary.CHECKS, check_expert.CHECKS, check_court.CHECKS)
"""What each level of disclosure adds to the checks of the one before it."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    status
        "ok"; "failed"; "absent" where a bundle lacks what would vouch for it; "unexpected" where nobody has named who
        vouches, or somebody else does.
    detail
        What was found, or what is wrong.
    fails
        Whether the bundle is refused: always where it failed, else where whoever checks has asked for more.
    """

    name: str
    status: str
    detail: str
    fails: bool = False

    @property
    def ok(self) -> bool:
        return self.status == OK


@dataclass(frozen=True)
class CheckReport:
    """All checks of a bundle.

    Attributes
    ----------
    checks
        In the order in which they were made. After a broken digest, signature or field no others follow.
    outcome, p_value
        As the bundle states them: they mean nothing where a check failed.
    cautions
        What a reader has to know besides the numbers, said again from the bundle and not taken from it.
    words
        What stays the claimant's word; everything else was recomputed and compared.
    """

    path: str
    level: str
    outcome: str
    p_value: float | None
    checks: tuple[Check, ...]
    cautions: tuple[str, ...] = ()
    words: tuple[Word, ...] = ()

    @property
    def ok(self) -> bool:
        return not any(check.fails for check in self.checks)

    @property
    def failure(self) -> str | None:
        """What is wrong, in one sentence; None where nothing is."""
        return next((check.detail for check in self.checks if check.fails), None)

    def to_dict(self) -> dict[str, object]:
        checks = [{**asdict(check), "ok": check.ok} for check in self.checks]
        return {**asdict(self), "checks": checks, "ok": self.ok, "failure": self.failure}

    def _repr_html_(self) -> str:
        rows = [(check.name, check.status, check.detail) for check in self.checks]
        title = f"{self.path}: nothing is wrong" if self.ok else f"{self.path}: {self.failure}"
        return html_table(
            ("check", "", "what was found"), rows, title=title, colour="#2e7d4f" if self.ok else "#b3261e"
        )


@dataclass(frozen=True)
class Expected:
    """What whoever checks knows from elsewhere.

    Attributes
    ----------
    signer
        The public key (PEM) that must have signed the bundle.
    authority
        PEM files of the time-stamping authority's certificates.
    log_key
        The public key (PEM) of the transparency log.
    commitment
        The commitment as it was published, in hexadecimal digits.
    """

    signer: bytes | None = None
    authority: tuple[Path, ...] = ()
    log_key: bytes | None = None
    commitment: str | None = None


def check_evidence(
    path: str | Path,
    *,
    signer: bytes | None = None,
    authority: Sequence[Path] = (),
    log_key: bytes | None = None,
    commitment: str | None = None,
) -> CheckReport:
    """Recompute, offline, all that a bundle's level allows.

    Parameters
    ----------
    path
        The bundle's directory or zip.
    signer
        The public key (PEM) that must have signed it, as the claimant published it elsewhere.
    authority
        PEM files of the time-stamping authority's certificates.
    log_key
        The public key (PEM) of the transparency log that the statement must stand on.
    commitment
        The commitment that was published, in hexadecimal digits.

    Returns
    -------
    CheckReport
    """
    bundle, expected = read_bundle(path), Expected(signer, tuple(authority), log_key, commitment)
    checks = check_integrity(bundle, expected)
    checks += [] if _refused(checks) else _made((CheckRow("fields", VERDICT, check_fields),), bundle)
    if _refused(checks):
        return CheckReport(str(path), "", "", None, tuple(checks))
    for table in TABLES[: DISCLOSURES.index(bundle.disclosure) + 1]:
        checks += _made(table, bundle)
    draw, found = _draw(bundle, expected)
    checks.append(found)
    said = (CheckRow("cautions", VERDICT, lambda given: check_summary.check_cautions(given, draw)),)
    checks += _made(said, bundle)
    if not _refused(checks):  # the slowest check comes last
        checks += _made((CheckRow("report", REPORT, check_report),), bundle)
    verdict = bundle.json(VERDICT)
    if _refused(checks):
        return CheckReport(str(path), bundle.disclosure, verdict["outcome"], verdict["p_value"], tuple(checks))
    words = claimants_words(
        bundle, signer=signer is not None, authority=bool(authority), log=log_key is not None,
        commitment=commitment is not None,
    )  # fmt: skip
    cautions = check_summary.cautions_of(bundle, None if draw is None else draw.caution)
    return CheckReport(
        str(path), bundle.disclosure, verdict["outcome"], verdict["p_value"], tuple(checks), cautions, tuple(words)
    )


def check_integrity(bundle: Bundle, expected: Expected | None = None) -> list[Check]:
    """Check that nothing was changed since the bundle was written."""
    known = expected or Expected()
    table = (
        CheckRow("signature", SIGNATURE, lambda given: _signature(given, known)),
        CheckRow("files", MANIFEST, _files),
        CheckRow("time stamp", TOKEN, lambda given: _time_stamp(given, known)),
    )
    return _made(table, bundle)


def _refused(checks: Sequence[Check]) -> bool:
    return any(check.fails for check in checks)


def _made(table: Sequence[CheckRow], bundle: Bundle) -> list[Check]:
    """Make the checks of one table; a file that lacks something or holds nonsense fails its check, too."""
    made: list[Check] = []
    for row in table:
        if row.optional and row.file not in bundle.files:
            continue
        try:
            found = row.look(bundle)
            made.append(Check(row.name, OK, found) if isinstance(found, str) else Check(row.name, *found))
        except (InputError, MissingExtraError) as error:
            made.append(Check(row.name, FAILED, str(error), fails=True))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError):
            damaged = f"{row.file} is damaged: a value is missing or is not what it should be"
            made.append(Check(row.name, FAILED, damaged, fails=True))
        if row.needed and made[-1].fails:
            break
    return made


def _files(bundle: Bundle) -> str:
    manifest = bundle.json(MANIFEST)
    known = manifest["format"] in (FORMAT, FIRST_FORMAT)
    need(known, f"{MANIFEST} has the format {manifest['format']!r}, not {FORMAT!r}")
    by = bundle.written_by
    right = bundle.is_first_format or (
        sorted(by) == ["matplotlib", "regionmarker"] and set(map(type, by.values())) == {str}
    )
    need(right, f"{MANIFEST} does not say which versions wrote it")
    listed: dict[str, str] = manifest["files"]
    for name in sorted(listed):
        need(
            sha256(bundle.read(name)).hexdigest() == listed[name],
            f"{name} was changed: its digest is not the manifest's",
        )
    for name in sorted(bundle.files):
        need(name in listed or name in UNLISTED, f"{name} does not belong to the bundle: the manifest does not list it")
    plain = manifest_of(bundle.disclosure, {name: bundle.files[name] for name in listed}, by)
    need(plain == bundle.files[MANIFEST], f"{MANIFEST} was changed: it is not written as a manifest is")
    return f"{len(listed)} files have the digests of the manifest"


def _signature(bundle: Bundle, known: Expected) -> str | Finding:
    if SIGNATURE not in bundle.files and SIGNER not in bundle.files:
        if known.signer is None:
            return Finding(ABSENT, "not signed: anyone may have written this")
        missing = f"{SIGNATURE} is missing: the bundle is not signed, but a signer is expected"
        return Finding(ABSENT, missing, fails=True)
    name = check_signature(bundle.read(SIGNER), bundle.read(SIGNATURE), bundle.read(MANIFEST))
    if known.signer is None:
        return Finding(UNEXPECTED, f"signed by {name}, whom nobody has named: compare with what the claimant published")
    if name != public_name(known.signer):
        other = f"{SIGNER}: the bundle is signed by {name}, not by the expected signer"
        return Finding(UNEXPECTED, other, fails=True)
    return f"signed by the expected signer, {name}"


def _time_stamp(bundle: Bundle, known: Expected) -> str | Finding:
    if REQUEST in bundle.files:
        from regionmarker.evidence.timestamp import check_request

        check_request(bundle.read(REQUEST), bundle.read(MANIFEST))
    if TOKEN not in bundle.files:
        if not known.authority:
            return Finding(ABSENT, "none: when the bundle was made is the claimant's word")
        return Finding(ABSENT, f"{TOKEN} is missing: the bundle has no time stamp", fails=True)
    from regionmarker.evidence.timestamp import check_token

    time = check_token(bundle.read(TOKEN), bundle.read(MANIFEST), known.authority)
    if not known.authority:
        return Finding(UNEXPECTED, f"{time}, authority not checked: give its certificate")
    return f"{time}, by the given authority"


def _draw(bundle: Bundle, known: Expected) -> tuple[Draw | None, Check]:
    """See whether a statement shows that the salt was not chosen, and that the commitment is the published one."""
    name, document = "draw of the salt", bundle.json(COMMITMENT)
    if known.commitment is not None and known.commitment != document["commitment"]:
        other = f"{COMMITMENT}: the commitment is {document['commitment']}, not the published one"
        return None, Check(name, UNEXPECTED, other, fails=True)
    if STATEMENT not in bundle.files:
        lacking = "no statement names a beacon" if document["salt"] else "no salt"
        if known.log_key is not None:
            return None, Check(name, ABSENT, f"{STATEMENT} is missing: nothing is on a log", fails=True)
        return None, Check(name, ABSENT, f"{lacking}: that the targets were drawn honestly is the claimant's word")
    signer = public_name(bundle.files[SIGNER]) if SIGNER in bundle.files else None
    try:
        draw = check_draw(bundle.files, document, signer, authority=known.authority, log_key=known.log_key)
    except (InputError, MissingExtraError) as error:
        return None, Check(name, FAILED, str(error), fails=True)
    if known.log_key is not None and draw.entry is None:
        return draw, Check(name, ABSENT, f"{STATEMENT} is not on a log: a time stamp alone is no log", fails=True)
    by = "the time stamp" if draw.entry is None else f"entry {draw.entry.index} of the log {draw.entry.log[:16]}"
    detail = f"the salt is round {draw.round}, the first after {by} of {draw.time.isoformat()} and the delay"
    if not draw.is_trusted:
        return draw, Check(
            name, UNEXPECTED, f"{detail}; but nobody has named the authority, or the log, behind that time"
        )
    return draw, Check(name, OK, detail)
