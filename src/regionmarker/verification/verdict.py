"""The verdict: whether a suspect was trained on vectors that carry the mark of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from regionmarker.errors import InputError
from regionmarker.keys.key import Key, TextSet
from regionmarker.keys.secret import Sealed
from regionmarker.protocols import Doubles, Encoder, Floats
from regionmarker.verification import ledger as ledgers
from regionmarker.verification.answers import Answers
from regionmarker.verification.asking import ask
from regionmarker.verification.decoys import DecoyTest
from regionmarker.verification.examination import Examination, scores_digest
from regionmarker.verification.paper import PaperStatistics, paper_statistics
from regionmarker.verification.power import ENOUGH, Power, estimate_power
from regionmarker.verification.questions import DEFAULT_BUDGET, Cost, key_of
from regionmarker.verification.scores import STATISTIC

if TYPE_CHECKING:
    from regionmarker.evidence.signature import Signer
    from regionmarker.verification.tracing import Trace

INFRINGEMENT, NO_EVIDENCE, INCONCLUSIVE = "infringement", "no evidence", "inconclusive"
HONEST_DRAW = (
    "no public salt was mixed into the targets after a commitment: the p-value assumes that they were drawn honestly"
)
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
        The false-positive rate agreed on; what is left of it for this look at this suspect; which look it was.
    total
        U, the observed sum of standardised scores.
    floor
        The smallest p-value that this key could have given.
    paper
        The paper's own statistics, for comparison only.
    power
        What this run would have caught; None where it was not estimated.
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
        A fitted marker, or its key.
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
        How many texts to ask at the most.
    ledger
        Where looks are counted; see :mod:`regionmarker.verification.ledger`.
    power
        Estimate what this run would have caught.

    Returns
    -------
    Verdict
    """
    key = key_of(marker)
    own = _own_probes(key, probes, encoder, embeddings)
    answers = (
        suspect
        if isinstance(suspect, Answers)
        else ask(key, suspect, budget, probes=own, cache=cache, progress=progress)
    )
    return judge(key, answers, probes=own, level=level, ledger=ledger, power=power)


def judge(
    key: Key,
    answers: Answers,
    *,
    probes: TextSet | None = None,
    level: float | None = None,
    ledger: Path | None = None,
    power: bool = True,
) -> Verdict:
    """Judge answers that are there already."""
    level = key.settings.level if level is None else level
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}, but must lie between 0 and 1")
    if key.settings.statistic != STATISTIC:
        raise InputError(
            f"this key is committed to the statistic {key.settings.statistic}, but this version has {STATISTIC}"
        )
    examination = Examination.of(key, answers, probes)
    z = examination.scores()  # sees no target ...
    digest = scores_digest(z)  # ... and is fixed before one is looked up: this is why p is exact
    targets = key.provider_targets()
    test = DecoyTest(z)
    p_value = test.p_value(targets)
    answers_digest = answers.digest
    look = 1 if ledger is None else ledgers.looks(ledger, key.id, answers.suspect, answers_digest)
    judged_at = level if ledger is None else ledgers.judged_level(level, look)
    found = estimate_power(key, examination.questions, judged_at) if power else None
    verdict = Verdict(
        outcome=_outcome(p_value, judged_at, found),
        p_value=p_value,
        level=level,
        judged_at=judged_at,
        look=look,
        total=float(test.totals(np.array([targets]))[0]),
        floor=test.floor,
        statistic=key.settings.statistic,
        suspect=answers.suspect,
        key_id=key.id,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        asked=examination.questions.cost(),
        missing=answers.missing,
        scores_digest=digest,
        answers_digest=answers_digest,
        paper=_paper(key, examination, targets),
        power=found,
        notes=_notes(key, found),
        scores=z,
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


def _own_probes(key: Key, probes: Sequence[str] | None, encoder: Encoder | None, embeddings: object) -> TextSet | None:
    if encoder is not None:
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


def _paper(key: Key, examination: Examination, targets: Sequence[int]) -> PaperStatistics:
    inside = [examination.inside(region) for region in key.regions]
    goals = examination.pool_answers[list(targets)]
    if np.isfinite(goals).all():
        return paper_statistics(inside, examination.outside(), goals, target="suspect")
    return paper_statistics(inside, examination.outside(), key.pool.embeddings[list(targets)], target="stored")


def _notes(key: Key, power: Power | None) -> tuple[str, ...]:
    notes = []
    if key.test:
        notes.append("this is a TEST key: anyone can make it again, so this verdict proves nothing to others")
    if not key.salt:
        notes.append(HONEST_DRAW)
    if power is not None and not power.enough:
        notes.append(f"this run would have missed copies of fidelity {ENOUGH} too often: ask more texts")
    return tuple(notes)


def _enter(path: Path, verdict: Verdict) -> None:
    ledgers.record(
        path,
        {
            "time": verdict.created,
            "key_id": verdict.key_id,
            "suspect": verdict.suspect,
            "answers": verdict.answers_digest,
            "look": verdict.look,
            "judged_at": verdict.judged_at,
            "p_value": verdict.p_value,
            "outcome": verdict.outcome,
        },
    )
