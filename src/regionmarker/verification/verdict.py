"""The verdict: whether a suspect was trained on vectors that carry the mark of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.vectors import Doubles, Encoder, Floats
from regionmarker.verification import ledger as ledgers
from regionmarker.verification.answers import Answers
from regionmarker.verification.asking import ask
from regionmarker.verification.judging import Finding, OtherKey, findings
from regionmarker.verification.paper_statistics import PaperStatistics, paper_statistics
from regionmarker.verification.power import Power, estimate_power
from regionmarker.verification.questions import DEFAULT_BUDGET, Cost, keys_of

if TYPE_CHECKING:
    from regionmarker.evidence.signature import Signer
    from regionmarker.verification.tracing import Trace
from datetime import timedelta

from regionmarker.verification.power import ENOUGH

INFRINGEMENT, NO_EVIDENCE, INCONCLUSIVE = "infringement", "no evidence", "inconclusive"
_RECHECKED = 64
_SAME_EMBEDDING = 0.999


@dataclass(frozen=True, repr=False, eq=False)
class Material(Sealed):
    """What a verdict was judged from, kept so that evidence can be written."""

    key: Key
    answers: Answers
    probes: TextSet | None  # own probes; None for the key's reservoir


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
        The false-positive rate agreed on; what is left of it for this look at this suspect, with this many keys;
        which look it was.
    total
        U, the observed sum of standardised scores.
    floor
        The smallest p-value that this key could have given.
    paper
        The paper's own statistics, for comparison only.
    power
        What this run would have caught; None where it was not estimated.
    other_keys
        What the other keys of the ring found; this verdict is that of the key with most to say.
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
    paper: PaperStatistics
    power: Power | None
    other_keys: tuple[OtherKey, ...]
    notes: tuple[str, ...]
    scores: Doubles = field(repr=False, compare=False)
    material: Material | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "material": None}  # a verdict may travel between processes, its key may not

    def to_dict(self) -> dict[str, object]:
        """Return plain values that show nothing of the key."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("scores", "material")}
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


def verify(
    marker: object,
    suspect: object,
    *,
    probes: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    embeddings: object = None,
    level: float | None = None,
    budget: int = DEFAULT_BUDGET,
    ledger: Path | None = None,
    power: bool = True,
    cache: str | Path | bool | None = None,
    progress: bool = False,
) -> Verdict:
    """Judge a suspect.

    Parameters
    ----------
    marker
        A fitted marker, its key, or a :class:`~regionmarker.keys.files.KeyRing`: every key of it judges, and they are
        corrected for how many there are.
    suspect
        Its :class:`~regionmarker.verification.answers.Answers`, or anything that can be asked.
    probes
        Own probe texts instead of the key's reservoir; they need ``encoder`` or ``embeddings``.
    encoder
        The clean encoder; checked against the key before it is believed.
    embeddings
        The clean embeddings of ``probes``, (n, D).
    level
        The false-positive rate; the key's own when not given.
    budget
        How many texts to ask at the most, for each key.
    ledger
        Where looks are counted; see :mod:`regionmarker.verification.ledger`.
    power
        Estimate what this run would have caught.

    Returns
    -------
    Verdict
    """
    own = _own_probes(keys_of(marker), probes, encoder, embeddings)
    answers = (
        suspect
        if isinstance(suspect, Answers)
        else ask(marker, suspect, budget, probes=own, cache=cache, progress=progress)
    )
    return judge(marker, answers, probes=own, level=level, ledger=ledger, power=power)


def judge(
    marker: object,
    answers: Answers,
    *,
    probes: TextSet | None = None,
    level: float | None = None,
    ledger: Path | None = None,
    power: bool = True,
) -> Verdict:
    """Judge answers that are there already, by one key or by every key of a ring."""
    keys = keys_of(marker)
    level = min(key.settings.level for key in keys) if level is None else level
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}, but must lie between 0 and 1")
    first, others = findings(keys, answers, probes, ledger, level)
    key, questions = first.key, first.examination.questions
    judged_at = level / (first.correction * len(keys))
    found = estimate_power(key, questions, judged_at) if power else None
    created = datetime.now(UTC)
    verdict = Verdict(
        outcome=_outcome(first.p_value, judged_at, found),
        p_value=first.p_value,
        level=level,
        judged_at=judged_at,
        look=first.look,
        total=float(first.test.totals(np.array([first.targets]))[0]),
        floor=first.test.floor,
        statistic=key.settings.statistic,
        suspect=answers.suspect,
        key_id=key.id,
        created=created.isoformat(timespec="seconds"),
        asked=questions.cost(),
        missing=answers.missing,
        scores_digest=first.digest,
        answers_digest=answers.digest,
        paper=_paper(first),
        power=found,
        other_keys=others,
        notes=notes(key, answers, found, created, other_keys=len(others)),
        scores=first.z,
        material=Material(key, answers, probes),
    )
    if ledger is not None:
        _enter(ledger, verdict)
    return verdict


def check_encoder(key: Key, encoder: Encoder) -> None:
    """Refuse an encoder whose answers are not the key's clean embeddings: a marked one acquits every suspect."""
    texts = key.pool.texts[:_RECHECKED]
    answers = encoder.encode(list(texts))
    if answers.shape[1] != key.width:
        raise InputError(f"the encoder's vectors have width {answers.shape[1]}, but the key was made for {key.width}")
    cosines = np.einsum("ij,ij->i", answers, key.pool.embeddings[: len(texts)])
    if cosines.min() < _SAME_EMBEDDING:
        strange = int((cosines < _SAME_EMBEDDING).sum())
        raise InputError(
            f"the encoder is not the clean one that this key was made with: {strange} of {len(texts)} pool texts "
            "differ (is it behind a gateway that marks?)"
        )


def _own_probes(
    keys: Sequence[Key], probes: Sequence[str] | None, encoder: Encoder | None, embeddings: object
) -> TextSet | None:
    if encoder is not None:
        for key in keys:
            check_encoder(key, encoder)
    if probes is None:
        if embeddings is not None:
            raise InputError("embeddings= goes with probes=")
        return None
    if (embeddings is None) == (encoder is None):
        raise InputError("own probes need their clean embeddings: give either encoder= or embeddings=")
    clean: Floats = np.asarray(embeddings) if encoder is None else encoder.encode(list(probes))
    return TextSet(tuple(probes), clean)


def _outcome(p_value: float, judged_at: float, power: Power | None) -> str:
    if p_value <= judged_at:
        return INFRINGEMENT
    return INCONCLUSIVE if power is not None and not power.enough else NO_EVIDENCE


def _paper(found: Finding) -> PaperStatistics:
    key, examination, targets = found.key, found.examination, list(found.targets)
    inside = [examination.inside(region) for region in key.mark.regions]
    goals = examination.pool_answers[targets]
    if np.isfinite(goals).all():
        return paper_statistics(inside, examination.outside(), goals, target="suspect")
    return paper_statistics(inside, examination.outside(), key.pool.embeddings[targets], target="stored")


def _enter(path: Path, verdict: Verdict) -> None:
    """Enter the look of every key, one line each."""
    plain = {"time": verdict.created, "suspect": verdict.suspect, "answers": verdict.answers_digest}
    judged = {"look": verdict.look, "judged_at": verdict.judged_at, "p_value": verdict.p_value}
    ledgers.record(path, {**plain, **judged, "key_id": verdict.key_id, "outcome": verdict.outcome})
    for other in verdict.other_keys:
        ledgers.record(path, {**plain, **other.to_dict()})


# What a reader of a verdict has to know besides its numbers.

HONEST_DRAW = (
    "no public salt was mixed into the targets after a commitment: the p-value assumes that they were drawn honestly"
)
_FRESH = timedelta(days=1)


def notes(key: Key, answers: Answers, power: Power | None, judged: datetime, *, other_keys: int = 0) -> tuple[str, ...]:
    """Return the notes of a verdict, each a sentence without its full stop."""
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
    if answers.missing:
        found.append(
            f"{answers.missing} of {len(answers)} texts have no answer: pool texts among them are left out of the "
            "pool, which is exact if the silence is the suspect's own; whoever doubts that asks them again"
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
