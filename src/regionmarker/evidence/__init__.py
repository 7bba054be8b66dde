"""Evidence: what others need to check a verdict, at three levels of disclosure.

disclosure.py    what each level shows, and nothing else
openings.py      the commitment: its leaves, its opened parts, the key made again from them
nulls.py         the null distribution as a table from which anyone recomputes p
report.py        the page for people, drawn by charts.py and templates/
bundle.py        the directory or zip, whole or not there, under a manifest
signature.py     who vouches for it; timestamp.py since when it exists
saving.py        all of that, from a verdict
check.py         recomputes offline all that a level allows: integrity.py that nothing was changed,
                 reexamination.py what needs texts or the opened key
replay.py        asks the suspect again
"""

from __future__ import annotations

from regionmarker.evidence.check import Report, check_evidence
from regionmarker.evidence.integrity import Check
from regionmarker.evidence.replay import Replay, replay_evidence
from regionmarker.evidence.save import save_evidence
from regionmarker.evidence.signature import Signer

__all__ = ["Check", "Replay", "Report", "Signer", "check_evidence", "replay_evidence", "save_evidence"]
