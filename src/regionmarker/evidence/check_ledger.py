"""Check a ledger of looks: that its lines make one chain, and that bundles of evidence stand where they say.

The ledger is the claimant's. A bundle that was handed over names the head that the ledger had then; whoever holds such
a bundle sees a line that was removed or changed before it, and a ledger that was begun anew. What was never entered,
and what was removed behind the last head that anybody holds, no chain can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from regionmarker.errors import InputError
from regionmarker.evidence.bundle import need, read_bundle
from regionmarker.evidence.check import check_integrity
from regionmarker.evidence.score_forms import VERDICT
from regionmarker.verification.ledger import LookLines, read_ledger


@dataclass(frozen=True)
class LedgerReport:
    """What a ledger says.

    Attributes
    ----------
    entries, head
        How many lines it has, and the chain's value after the last.
    looks
        How many looks were taken with each key.
    bundles
        The line that each bundle's verdict ends at.
    """

    path: str
    entries: int
    head: str
    looks: dict[str, int]
    bundles: dict[str, int]

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def check_ledger(path: str | Path, bundles: Sequence[str | Path] = ()) -> LedgerReport:
    """Follow a ledger's chain, and find the heads that bundles name in it; what does not fit is an InputError.

    Parameters
    ----------
    path
        The ledger, as it lies beside the key file.
    bundles
        Directories or zips of evidence that rest on it.
    """
    path = Path(path)
    need(path.is_file(), f"{path} does not exist, or is not a file: a ledger lies beside its key, KEY.ledger.jsonl")
    with path.open("rb") as file:
        need(file.read(1) in (b"{", b""), f"{path} is not a ledger: give KEY.ledger.jsonl, which lies beside its key")
    lines = read_ledger(path)
    found = {str(bundle): _line_of(Path(bundle), lines, path) for bundle in bundles}
    return LedgerReport(str(path), len(lines.entries), lines.heads[-1], lines.looks, found)


def _line_of(bundle: Path, lines: LookLines, ledger: Path) -> int:
    """Return the line at which a bundle's verdict ends."""
    opened = read_bundle(bundle)
    for check in check_integrity(opened):
        need(not check.fails, f"{bundle} is not as it was written: {check.detail}")
    verdict = opened.json(VERDICT)
    try:
        stated = verdict["ledger"]
        if stated is None:
            raise KeyError("ledger")
        entries, head = int(stated["entries"]), str(stated["head"])
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{bundle} names no ledger: its looks were not counted") from None
    have = len(lines.entries)
    need(0 < entries <= have, f"{ledger} has {have} lines, but had {entries} when {bundle} was made: lines are missing")
    need(
        lines.heads[entries] == head,
        f"{ledger}: the first {entries} lines are not those that {bundle} was made with: a line was changed, removed "
        "or put in",
    )
    return entries
