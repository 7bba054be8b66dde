"""The verdict: whether a suspect was trained on vectors that carry the mark of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Sealed
from regionmarker.keys.key import Key
from regionmarker.marks.regions import RegionMark
from regionmarker.vectors import Doubles
from regionmarker.verification.answers import Answers
from regionmarker.verification.examination import ExactTest, Examination
from regionmarker.verification.paper_statistics import PaperStatistics
from regionmarker.verification.power import ENOUGH, Power
from regionmarker.verification.questions import Cost

if TYPE_CHECKING:
    from regionmarker.evidence.signature import Signer
    from regionmarker.verification.tracing import Trace

INFRINGEMENT, NO_EVIDENCE, INCONCLUSIVE = "infringement", "no evidence", "inconclusive"
HONEST_DRAW = (
    "no public salt was mixed into the targets after a commitment: the p-value assumes that they were drawn honestly"
)
_FRESH = timedelta(days=1)


@dataclass(frozen=True, repr=False, eq=False)
class Basis(Sealed):
    """What one key judged, kept so that evidence is written without a second examination."""

    key: Key
    answers: Answers
    probes: TextSet | None  # own probes; None for the key's reservoir
    examination: Examination
    test: ExactTest
    targets: tuple[int, ...]


@dataclass(frozen=True)
class OtherKey:
    """What another key of the ring found.

    Attributes
    ----------
    p_value
        Exact for this key alone.
    look
        Which look it was at this suspect with this key.
    holm
        Corrected for looks and for all keys of the ring: compare this with the level.
    infringement
        Whether ``holm`` is at or below the level.
    """

    key_id: str
    p_value: float
    look: int
    holm: float
    infringement: bool

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """What can be said of a suspect, and how sure it is.

    Attributes
    ----------
    outcome
        "infringement", "no evidence" or "inconclusive".
    p_value
        The exact p-value of the decoy test.
    level, judged_at, look
        The false-positive rate agreed on; what is left of it for this look, with this many keys; which look with this
        key it was.
    total
        U, the observed sum of standardised scores.
    floor
        The smallest p-value that this key could have given.
    inputs_digest
        Of all that the statistic was computed from: two verdicts with the same one are the same look.
    axes
        Whether the suspect's dimensions were taken for the clean ones: "matched" or "unknown"; None under decoy-1.
    paper
        The paper's own statistics, for comparison only.
    power
        What this run would have caught; None where it was not estimated.
    other_keys
        What the other keys of the ring found; this verdict is that of the key with most to say.
    notes
        What a reader has to know besides the numbers; see :func:`cautions`.
    basis
        What was judged; None in a verdict that came from another process.
    """

    outcome: str
    p_value: float
    level: float
    judged_at: float
    look: int
    total: float
    floor: float
    statistic: str
    suspect: str
    key_id: str
    created: str
    asked: Cost
    missing: int
    scores_digest: str
    answers_digest: str
    inputs_digest: str
    axes: str | None
    paper: PaperStatistics
    power: Power | None
    other_keys: tuple[OtherKey, ...]
    notes: tuple[str, ...]
    scores: Doubles = field(repr=False, compare=False)
    basis: Basis | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "basis": None}  # a verdict may travel between processes, its key may not

    def to_dict(self) -> dict[str, object]:
        """Return plain values that show nothing of the key."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("scores", "basis")}
        plain["asked"] = vars(self.asked)
        plain["paper"] = self.paper.to_dict()
        plain["power"] = None if self.power is None else self.power.to_dict()
        plain["other_keys"] = [other.to_dict() for other in self.other_keys]
        plain["notes"] = list(self.notes)
        return plain

    def save(
        self,
        directory: str | Path,
        *,
        level: str = "summary",
        signer: Signer | None = None,
        traces: Sequence[Trace] = (),
        archive: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write evidence that others can check; see :func:`regionmarker.evidence.save_evidence`."""
        from regionmarker.evidence import save_evidence

        return save_evidence(
            self, directory, level=level, signer=signer, traces=traces, archive=archive, overwrite=overwrite
        )


def outcome_of(p_value: float, judged_at: float, *, enough: bool) -> str:
    """Return the outcome; ``enough`` says whether the run could have caught a good copy, as far as that is known.

    Examples
    --------
    >>> outcome_of(1e-6, 1e-3, enough=True), outcome_of(0.4, 1e-3, enough=False)
    ('infringement', 'inconclusive')
    """
    if p_value <= judged_at:
        return INFRINGEMENT
    return NO_EVIDENCE if enough else INCONCLUSIVE


def cautions(
    key: Key, answers: Answers, power: Power | None, judged: datetime, *, other_keys: int = 0
) -> tuple[str, ...]:
    """Return what a reader of a verdict has to know besides its numbers, each a sentence without its full stop."""
    found = []
    if key.test:
        found.append("this is a TEST key: anyone can make it again, so this verdict proves nothing to others")
    if not key.salt:
        found.append(HONEST_DRAW)
    if other_keys:
        found.append(
            f"{other_keys + 1} keys judged the {len(answers)} answers, and this verdict is that of the key with the "
            "strongest finding, corrected for their number (Holm); what would have been caught is said of it alone"
        )
    if answers.missing and isinstance(key.mark, RegionMark):
        found.append(
            f"{answers.missing} of {len(answers)} texts have no answer: pool texts among them are left out of the "
            "pool, which is exact if the silence is the suspect's own; whoever doubts that asks them again"
        )
    elif answers.missing:
        found.append(
            f"{answers.missing} of {len(answers)} texts have no answer and are left out; no candidate is ever asked, "
            "so silence cannot favour a target"
        )
    dates = _dates(answers, judged)
    if dates:
        found.append(dates)
    if power is not None and not power.enough:
        found.append(f"this run would have missed copies of fidelity {ENOUGH} too often: ask more texts")
    return tuple(found)


def _dates(answers: Answers, judged: datetime) -> str | None:
    """Say when the answers were given, where that was not just now."""
    times = sorted(_utc(exchange.time) for exchange in answers.exchanges)
    if not times or judged - times[0] <= _FRESH:
        return None
    first, last = times[0].date().isoformat(), times[-1].date().isoformat()
    when = f"of {first}" if first == last else f"given between {first} and {last}"
    return f"the answers are {when}: the suspect may have changed since then"


def _utc(time: str) -> datetime:
    found = datetime.fromisoformat(time)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
