"""From a verdict to a bundle of evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regionmarker.errors import InputError
from regionmarker.evidence.bundle import DISCLOSURES, SUMMARY, write_bundle
from regionmarker.evidence.disclosure import disclose, why_no_evidence
from regionmarker.evidence.fields import REPORT
from regionmarker.evidence.report import check_report_extra
from regionmarker.evidence.signature import Signer
from regionmarker.evidence.statement import check_draw

if TYPE_CHECKING:
    from regionmarker.keys.key import Key
    from regionmarker.keys.places import Assignment
    from regionmarker.verification.tracing import Trace
    from regionmarker.verification.verdict import Verdict


def check_disclosure(disclosure: str) -> None:
    """Refuse a disclosure that there is not, and one that this installation cannot write."""
    if disclosure not in DISCLOSURES:
        raise InputError(f"the disclosure is {disclosure!r}, but must be one of {', '.join(DISCLOSURES)}")
    check_report_extra()


def check_before(keys: Sequence[Key], disclosure: str, level: float | None) -> None:
    """Refuse, before anything is asked, what would be refused when a verdict of these keys is saved."""
    check_disclosure(disclosure)
    judged = min(key.settings.level for key in keys) if level is None else level
    problems = [problem for key in keys if (problem := why_no_evidence(key, judged))]
    if len(problems) == len(keys):
        raise InputError(problems[0])


def save_evidence(
    verdict: Verdict,
    directory: str | Path,
    *,
    level: str = SUMMARY,
    signer: Signer | None = None,
    traces: Sequence[Trace] = (),
    places: Sequence[Assignment] = (),
    archive: bool = False,
    overwrite: bool = False,
    statement: Mapping[str, bytes] | None = None,
) -> Path:
    """Write what others need to check a verdict.

    Parameters
    ----------
    verdict
        A verdict of :func:`regionmarker.verify`, in the process that judged it.
    directory
        The directory to make. It is there in full or not at all.
    level
        "summary" shows nothing of the key; "expert" shows texts, groups, targets and answers; "court" opens the
        commitment, master secret included.
    signer
        Signs the manifest; None leaves the bundle unsigned.
    traces
        What :func:`regionmarker.trace` said at the verdict's level, if tenants were looked at. Those who are accused
        are named; the others only at "court".
    places
        Who was given which place, where the tenants' database says so: all that were ever issued.
    archive
        Also write DIRECTORY.zip.
    overwrite
        Replace an older bundle in the same place; anything else that is there is left alone.
    statement
        The files of the statement that committed to the key, as :func:`~regionmarker.evidence.statement.read_statement`
        returns them: they show that the salt was not chosen.

    Returns
    -------
    Path
        The directory.
    """
    check_disclosure(level)
    from regionmarker.evidence.report import render_report

    shown, given = disclose(verdict, level, traces, places), dict(statement or {})
    if given:
        found = check_draw(given, shown.commitment, None if signer is None else signer.name)
        shown = disclose(verdict, level, traces, places, draw=found.claimed)
    files = {**shown.files, **given, REPORT: render_report(shown).encode()}
    return write_bundle(Path(directory), files, disclosure=level, signer=signer, archive=archive, overwrite=overwrite)
