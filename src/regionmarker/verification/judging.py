"""From a suspect, or from its answers, to a verdict.

A key's p-value is exact for that key. Looks are paid for (see :mod:`regionmarker.verification.ledger`), and the keys of
a ring are corrected together (Holm): innocent suspects are convicted by any key at any look with at most the level's
probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Sealed
from regionmarker.encoders.cache import text_digest
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.vectors import Doubles, Encoder, Floats
from regionmarker.verification import ledger as ledgers
from regionmarker.verification.answers import Answers
from regionmarker.verification.asking import ask
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.examination import examine, scores_digest
from regionmarker.verification.graded_examination import GradedExamination
from regionmarker.verification.power import estimate_power
from regionmarker.verification.questions import Questions, keys_of
from regionmarker.verification.verdict import Basis, OtherKey, Verdict, cautions, outcome_of

_RECHECKED = 64
_SAME_EMBEDDING = 0.999


def verify(
    marker: object,
    suspect: object,
    *,
    probes: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    embeddings: object = None,
    level: float | None = None,
    budget: int | None = None,
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
        How many texts to ask at the most, for each key; see :func:`~regionmarker.verification.asking.ask`.
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


def check_encoder(key: Key, encoder: Encoder) -> None:
    """Refuse an encoder whose answers are not the key's clean embeddings: with marked ones verdicts are wrong."""
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
    first, others = judge_keys(keys, answers, probes, ledger, level)
    basis, key, questions = first.basis, first.basis.key, first.basis.examination.questions
    judged_at = level / (first.correction * len(keys))
    found = estimate_power(key, _answered(basis), judged_at, axes=basis.examination.axes) if power else None
    created = datetime.now(UTC)
    verdict = Verdict(
        outcome=outcome_of(first.p_value, judged_at, enough=found is None or found.enough),
        p_value=first.p_value,
        level=level,
        judged_at=judged_at,
        look=first.look,
        total=float(basis.test.totals(np.array([basis.targets]))[0]),
        floor=basis.test.floor,
        statistic=key.settings.statistic,
        suspect=answers.suspect,
        key_id=key.id,
        created=created.isoformat(timespec="seconds"),
        asked=questions.cost(),
        missing=answers.missing,
        scores_digest=first.scores_digest,
        answers_digest=answers.digest,
        inputs_digest=first.inputs_digest,
        axes=basis.examination.axes,
        paper=basis.examination.paper(basis.targets),
        power=found,
        other_keys=others,
        notes=cautions(key, answers, found, created, other_keys=len(others)),
        scores=first.scores,
        basis=basis,
    )
    if ledger is not None:
        _enter(ledger, verdict)
    return verdict


def _answered(basis: Basis) -> Questions:
    """Return the questions that count for power: of a graded mark those that were answered."""
    examination = basis.examination
    if not isinstance(examination, GradedExamination):
        return examination.questions
    there, probes = np.flatnonzero(np.isfinite(examination.answers).all(axis=1)), examination.questions.probes
    left = TextSet(tuple(probes.texts[row] for row in there), probes.embeddings[there])
    return replace(examination.questions, probes=left)


@dataclass(frozen=True, repr=False, eq=False)
class KeyJudgement(Sealed):
    """One key's scores, and what they make of its targets."""

    basis: Basis
    scores: Doubles  # z
    scores_digest: str
    inputs_digest: str
    p_value: float
    look: int
    correction: float  # what a p-value is multiplied by, for this look

    @classmethod
    def of(cls, key: Key, answers: Answers, probes: TextSet | None, ledger: Path | None) -> KeyJudgement:
        """Score the answers, then look up the targets."""
        examination = examine(key, answers, probes)
        z = examination.scores()  # sees no target ...
        digest = scores_digest(z)  # ... and is fixed before one is looked up: this is why p is exact
        basis = Basis(key, answers, probes, examination, examination.test(z), key.provider_targets())
        inputs = inputs_digest(key, examination.questions.asked, answers)
        look = 1 if ledger is None else ledgers.looks(ledger, key.id, inputs)
        correction = 1.0 if ledger is None else ledgers.correction(look, key.settings.statistic)
        return cls(basis, z, digest, inputs, basis.test.p_value(basis.targets), look, correction)


def inputs_digest(key: Key, asked: TextSet, answers: Answers) -> str:
    """Return the SHA-256 of all that a key's statistic is computed from: the texts, their clean vectors, the answers.

    What else a file of answers holds does not count, and neither does the order of anything.
    """
    given = answers.lookup(asked.texts)
    rows = sorted(
        (text_digest(text), clean.astype("<f4").tobytes(), answer.astype("<f4").tobytes())
        for text, clean, answer in zip(asked.texts, asked.embeddings, given, strict=True)
    )
    whole = sha256(f"regionmarker inputs 1 {key.id} {given.shape[1]}\n".encode())
    for row in rows:
        whole.update(b"".join(row))
    return whole.hexdigest()


def judge_keys(
    keys: Sequence[Key], answers: Answers, probes: TextSet | None, ledger: Path | None, level: float
) -> tuple[KeyJudgement, tuple[OtherKey, ...]]:
    """Return the judgement of the key that has most to say, and what the others found, the most telling first.

    Of keys that say the same, the newest leads: it comes last in a ring.
    """
    found = [_named(key, answers, probes, ledger, alone=len(keys) == 1) for key in reversed(keys)]
    paid = np.array([min(one.p_value * one.correction, 1.0) for one in found])
    corrected = holm(paid)
    order = np.argsort(paid, kind="stable")
    first, *rest = ((found[row], float(corrected[row])) for row in order)
    others = (OtherKey(one.basis.key.id, one.p_value, one.look, p, infringement=p <= level) for one, p in rest)
    return first[0], tuple(others)


def _named(key: Key, answers: Answers, probes: TextSet | None, ledger: Path | None, *, alone: bool) -> KeyJudgement:
    """Judge by one key; where there are several, an error says which one it is about."""
    try:
        return KeyJudgement.of(key, answers, probes, ledger)
    except InputError as error:
        if alone:
            raise
        raise InputError(f"key {key.id} of the ring: {error}; or judge by one key alone (--key-id)") from error


def _enter(path: Path, verdict: Verdict) -> None:
    """Enter the look of every key, one line each."""
    plain = {
        "time": verdict.created,
        "suspect": verdict.suspect,
        "answers": verdict.answers_digest,
        "inputs": verdict.inputs_digest,
    }
    judged = {"look": verdict.look, "judged_at": verdict.judged_at, "p_value": verdict.p_value}
    ledgers.record(path, {**plain, **judged, "key_id": verdict.key_id, "outcome": verdict.outcome})
    for other in verdict.other_keys:
        ledgers.record(path, {**plain, **other.to_dict()})
