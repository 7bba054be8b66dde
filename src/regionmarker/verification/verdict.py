"""The verdict: whether a suspect was trained on vectors that carry the mark of a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from math import exp, lgamma, log
from pathlib import Path
from typing import TYPE_CHECKING

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Sealed
from regionmarker.html_table import html_table
from regionmarker.keys.key import Key
from regionmarker.vectors import Doubles
from regionmarker.verification.answers import Answers
from regionmarker.verification.examination import ExactTest, Examination
from regionmarker.verification.ledger import LedgerHead
from regionmarker.verification.paper_statistics import PaperStatistics
from regionmarker.verification.power import ENOUGH, Power
from regionmarker.verification.questions import DEFAULT_BUDGET, Cost

if TYPE_CHECKING:
    from regionmarker.evidence.signature import Signer
    from regionmarker.keys.places import Assignment
    from regionmarker.verification.tracing import Trace

INFRINGEMENT, NO_EVIDENCE, INCONCLUSIVE = "infringement", "no evidence", "inconclusive"
HONEST_DRAW = (
    "no public salt was mixed into the targets after a commitment: the p-value assumes that they were drawn honestly"
)
OWN_SALT = (
    "that the public salt was not chosen is the claimant's word: salts can be tried until one fits, so the p-value "
    "assumes that the targets were drawn honestly"
)
SEVERAL_COMMITMENTS = (
    "the salt is the first round of a public beacon after the time stamp of the commitment and its delay; but whoever "
    "has several commitments stamped, or one several times, can keep what fits, and only a log that shows all of them "
    "rules that out"
)
LOGGED_COMMITMENT = (
    "the salt is the first round of a public beacon after the time stamp of the commitment and its delay, and the "
    "commitment is on a transparency log: ask the log for all entries of this signer, because any of them might "
    "have been kept"
)
DRAWS = (HONEST_DRAW, OWN_SALT, SEVERAL_COMMITMENTS, LOGGED_COMMITMENT)
"""What can be said of the draw of the targets, the worst first; exactly one of them stands in every verdict."""
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
        Which look with this key it was.
    holm
        Corrected for looks and for all keys of the ring: compare this with the level.
    infringement
        Whether ``holm`` is at or below the level.
    inputs_digest
        Of all that this key's statistic was computed from.
    """

    key_id: str
    p_value: float
    look: int
    holm: float
    infringement: bool
    inputs_digest: str

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
    unasked
        How many of the texts that are usually asked were not.
    other_keys
        What the other keys of the ring found; this verdict is that of the key with most to say.
    notes
        What a reader has to know besides the numbers; see :func:`cautions`.
    ledger
        Where the ledger stood when this verdict was entered; None where looks are not counted.
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
    unasked: int
    notes: tuple[str, ...]
    ledger: LedgerHead | None
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
        plain["ledger"] = None if self.ledger is None else self.ledger.to_dict()
        return plain

    def _repr_html_(self) -> str:
        colour = {INFRINGEMENT: "#b3261e", NO_EVIDENCE: "#2e7d4f"}.get(self.outcome, "#8a5a00")
        rows = [
            ("suspect", self.suspect),
            ("p-value", f"{self.p_value:.3g}"),
            ("convicts at or below", f"{self.judged_at:.3g} (level {self.level:g}, look {self.look})"),
            ("key", self.key_id),
            ("the paper's own p, for comparison", f"{self.paper.p_value:.3g}"),
        ]
        return html_table((), rows, title=self.outcome.upper(), note="; ".join(self.notes), colour=colour)

    def save(
        self,
        directory: str | Path,
        *,
        level: str = "summary",
        signer: Signer | None = None,
        traces: Sequence[Trace] = (),
        places: Sequence[Assignment] = (),
        archive: bool = False,
        overwrite: bool = False,
        statement: Mapping[str, bytes] | None = None,
    ) -> Path:
        """Write evidence that others can check; see :func:`regionmarker.evidence.save_evidence`."""
        from regionmarker.evidence import save_evidence

        return save_evidence(
            self,
            directory,
            level=level,
            signer=signer,
            traces=traces,
            places=places,
            archive=archive,
            overwrite=overwrite,
            statement=statement,
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
    *,
    draw: str,
    asked: int,
    missing: int,
    p_value: float,
    own_probes: bool,
    unasked: int,
    axes: str | None,
    times: Sequence[str],
    judged: datetime,
    power_is_enough: bool,
    other_keys: int = 0,
    test: bool = False,
) -> tuple[str, ...]:
    """Return what a reader of a verdict has to know besides its numbers, each a sentence without its full stop.

    All of it follows from what a bundle of evidence shows at every level, so that whoever checks one says it again.

    Parameters
    ----------
    draw
        One of :data:`DRAWS`.
    asked, missing
        Texts that were asked with the key, and those without an answer.
    own_probes
        Whether the probes are the claimant's own instead of the key's.
    unasked
        Texts that are usually asked, and were not.
    times
        When the answers were given, ISO 8601.
    judged
        When they were judged.
    power_is_enough
        Whether this run could have caught a good copy; true where that was not estimated.
    other_keys
        How many other keys of the ring judged.
    test
        Whether the key is a TEST key.
    """
    found = []
    if test:
        found.append("this is a TEST key: anyone can make it again, so this verdict proves nothing to others")
    found.append(draw)
    if other_keys:
        found.append(
            f"{other_keys + 1} keys judged the same answers, and this verdict is that of the key with the "
            "strongest finding, corrected for their number (Holm); what would have been caught is said of it alone"
        )
    found += _choices(asked, missing, p_value, own_probes=own_probes, unasked=unasked, axes=axes)
    dates = _dates(times, judged)
    if dates:
        found.append(dates)
    if not power_is_enough:
        found.append(f"this run would have missed copies of fidelity {ENOUGH} too often: ask more texts")
    return tuple(found)


def _choices(
    asked: int, missing: int, p_value: float, *, own_probes: bool, unasked: int, axes: str | None
) -> list[str]:
    """Say what the claimant may have chosen, among what was asked and what was answered: p assumes that nobody did."""
    found = []
    if missing:
        texts = "1 text has no answer and is" if missing == 1 else f"{missing} texts have no answer and are"
        found.append(
            f"{texts} left out: p holds if the silence is the suspect's own, and is only at most "
            f"{withheld_p(p_value, asked, missing):.2g} if the claimant chose them, knowing the targets; whoever "
            "doubts that asks again"
        )
    before = "p assumes that this was decided before anyone saw an answer"
    if own_probes:
        found.append(f"the probes and their clean vectors are the claimant's own, and not the key's: {before}")
    elif unasked:
        was = "1 text that is usually asked was" if unasked == 1 else f"{unasked} texts that are usually asked were"
        found.append(f"{was} not: {before}")
    elif asked > DEFAULT_BUDGET and axes == "matched":
        found.append(f"{asked} texts were asked, where {DEFAULT_BUDGET} are usual: {before}")
    return found


def withheld_p(p_value: float, asked: int, silent: int) -> float:
    """Return the most that p can be if someone who knows the targets chose which answers to leave out.

    p holds for every set of answers that is chosen without the targets. There are C(asked, silent) ways to leave
    ``silent`` of them out, so the smallest of their p-values is at most that many times too small.

    Examples
    --------
    >>> withheld_p(1e-9, 3000, 0), round(withheld_p(1e-9, 3000, 2), 6), withheld_p(1e-9, 3000, 150)
    (1e-09, 0.004498, 1.0)
    """
    silent = min(silent, asked // 2)  # of several keys, some may be another's
    ways = lgamma(asked + 1) - lgamma(silent + 1) - lgamma(asked - silent + 1)
    return p_value if not silent else min(1.0, exp(min(log(max(p_value, 1e-300)) + ways, 0.0)))


def _dates(given: Sequence[str], judged: datetime) -> str | None:
    """Say when the answers were given, where that was not just now."""
    times = sorted(map(utc, given))
    if not times or judged - times[0] <= _FRESH:
        return None
    first, last = times[0].date().isoformat(), times[-1].date().isoformat()
    when = f"of {first}" if first == last else f"given between {first} and {last}"
    return f"the answers are {when}: the suspect may have changed since then"


def utc(time: str) -> datetime:
    """Read a time; one that names no zone is UTC."""
    found = datetime.fromisoformat(time)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
