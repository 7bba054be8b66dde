"""Evidence: what others need to check a verdict, at three levels of disclosure.

disclosure.py    what each level shows, and nothing else
report.py        the page for people, drawn by charts.py and templates/
bundle.py        the directory or zip, whole or not there, under a manifest
signature.py     who vouches for it; timestamp.py since when it exists
save.py          all of that, from a verdict
check.py         first that nothing was changed, then the table of checks of each level that the bundle shows:
                 check_summary.py, check_expert.py, check_court.py
check_ledger.py  that no look was removed from the ledger since a bundle was made
replay.py        asks the suspect again
"""

from __future__ import annotations

from regionmarker.evidence.check import Check, CheckReport, check_evidence
from regionmarker.evidence.check_ledger import LedgerReport, check_ledger
from regionmarker.evidence.replay import Replay, replay_evidence
from regionmarker.evidence.save import save_evidence
from regionmarker.evidence.signature import Signer

__all__ = [
    "Check",
    "CheckReport",
    "LedgerReport",
    "Replay",
    "Signer",
    "check_evidence",
    "check_ledger",
    "replay_evidence",
    "save_evidence",
]
