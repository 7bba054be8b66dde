"""From a verdict to a bundle of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regionmarker.errors import InputError
from regionmarker.evidence.bundle import DISCLOSURES, SUMMARY, write_bundle
from regionmarker.evidence.disclosure import REPORT, disclose
from regionmarker.evidence.signature import Signer

if TYPE_CHECKING:
    from regionmarker.verification.tracing import Trace
    from regionmarker.verification.verdict import Verdict


def save_evidence(
    verdict: Verdict,
    directory: str | Path,
    *,
    level: str = SUMMARY,
    signer: Signer | None = None,
    traces: Sequence[Trace] = (),
    archive: bool = False,
    overwrite: bool = False,
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
        What :func:`regionmarker.trace` said, if tenants were looked at. It names them.
    archive
        Also write DIRECTORY.zip.
    overwrite
        Replace an older bundle in the same place; anything else that is there is left alone.

    Returns
    -------
    Path
        The directory.
    """
    if level not in DISCLOSURES:
        raise InputError(f"level is {level!r}, but must be one of {', '.join(DISCLOSURES)}")
    from regionmarker.evidence.report import render_report

    shown = disclose(verdict, level, traces)
    files = {**shown.files, REPORT: render_report(shown).encode()}
    return write_bundle(Path(directory), files, disclosure=level, signer=signer, archive=archive, overwrite=overwrite)
