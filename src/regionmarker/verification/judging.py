"""From a suspect, or from its answers, to a verdict.

A key's p-value is exact for that key. Looks are paid for (see :mod:`regionmarker.verification.ledger`), and the keys of
a ring are corrected together (Holm): innocent suspects are convicted by any key at any look with at most the level's
probability.
"""

from __future__ import annotations

import contextlib
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
from regionmarker.verification.clean_vectors import SAME_EMBEDDING, check_clean
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.examination import examine, scores_digest
from regionmarker.verification.graded_examination import GradedExamination
from regionmarker.verification.power import estimate_power
from regionmarker.verification.questions import (
    DEFAULT_BUDGET,
    Questions,
    checked_probes,
    keys_of,
    least_budget,
    plan_questions,
)
from regionmarker.verification.verdict import (
    HONEST_DRAW,
    OWN_SALT,
    Basis,
    OtherKey,
    Verdict,
    cautions,
    outcome_of,
)

_RECHECKED = 64


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
        The clean embeddings of ``probes``, (n, D). Refused where they carry the key's own mark, or are not its own for
        texts that it knows; see :mod:`regionmarker.verification.clean_vectors`.
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
    own = TextSet(tuple(probes), clean)
    check_own_probes(keys, own)
    return own


def check_own_probes(keys: Sequence[Key], probes: TextSet) -> None:
    """Refuse own probes whose vectors are not the clean ones of every key, before anyone is asked."""
    for key in keys:
        given = checked_probes(key, probes)
        check_clean(key, given.texts, given.embeddings)


def check_encoder(key: Key, encoder: Encoder) -> None:
    """Refuse an encoder whose answers are not the key's clean embeddings: with marked ones verdicts are wrong."""
    texts = key.pool.texts[:_RECHECKED]
    answers = encoder.encode(list(texts))
    if answers.shape[1] != key.width:
        raise InputError(f"the encoder's vectors have width {answers.shape[1]}, but the key was made for {key.width}")
    cosines = np.einsum("ij,ij->i", answers, key.pool.embeddings[: len(texts)])
    if cosines.min() < SAME_EMBEDDING:
        strange = int((cosines < SAME_EMBEDDING).sum())
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
    if probes is not None:
        check_own_probes(keys, probes)
    with contextlib.nullcontext() if ledger is None else ledgers.Ledger(ledger) as book:
        verdict = _judged(keys, answers, probes, level, book, power=power)
        return verdict if book is None else replace(verdict, ledger=book.enter(verdict.to_dict()))


def _judged(
    keys: Sequence[Key],
    answers: Answers,
    probes: TextSet | None,
    level: float,
    ledger: ledgers.Ledger | None,
    *,
    power: bool,
) -> Verdict:
    first, others = judge_keys(keys, answers, probes, ledger, level)
    basis, key, questions = first.basis, first.basis.key, first.basis.examination.questions
    judged_at = level / (first.correction * len(keys))
    found = estimate_power(key, _answered(basis), judged_at, axes=basis.examination.axes) if power else None
    created = datetime.now(UTC).replace(microsecond=0)
    unasked = unasked_of(key, answers, probes)
    return Verdict(
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
        unasked=unasked,
        notes=cautions(
            draw=OWN_SALT if key.salt else HONEST_DRAW,
            asked=len(questions),
            missing=answers.missing,
            p_value=first.p_value,
            own_probes=probes is not None,
            unasked=unasked,
            axes=basis.examination.axes,
            times=[exchange.time for exchange in answers.exchanges],
            judged=created,
            power_is_enough=found is None or found.enough,
            other_keys=len(others),
            test=key.test,
        ),
        ledger=None,
        scores=first.scores,
        basis=basis,
    )


def unasked_of(key: Key, answers: Answers, probes: TextSet | None) -> int:
    """Return how many of the texts that are usually asked were not; own probes have no usual ones."""
    if probes is not None:
        return 0
    usual = plan_questions(key, max(DEFAULT_BUDGET, least_budget(key)), seed=0).texts
    return len(set(usual).difference(answers.texts))


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
    def of(cls, key: Key, answers: Answers, probes: TextSet | None, ledger: ledgers.Ledger | None) -> KeyJudgement:
        """Score the answers, then look up the targets."""
        examination = examine(key, answers, probes)
        z = examination.scores()  # sees no target ...
        digest = scores_digest(z)  # ... and is fixed before one is looked up: this is why p is exact
        basis = Basis(key, answers, probes, examination, examination.test(z), key.provider_targets())
        inputs = inputs_digest(key, examination.questions.asked, answers)
        look = 1 if ledger is None else ledger.look(key.id, inputs)
        correction = 1.0 if ledger is None else ledgers.correction(look, key.settings.statistic)
        return cls(basis, z, digest, inputs, basis.test.p_value(basis.targets), look, correction)


def inputs_digest(key: Key, asked: TextSet, answers: Answers) -> str:
    """Return the SHA-256 of all that a key's statistic is computed from: the texts, their clean vectors, the answers.

    ``asked`` is in the order in which the statistic reads it, which is the key's own and not that of any file. What
    else a file of answers holds does not count, nor does a text without an answer. A salt counts: it draws other
    targets.
    """
    given = answers.lookup(asked.texts)
    salted = f" {key.salt.hex()}" if key.salt else ""
    whole = sha256(f"regionmarker inputs 1 {key.id} {given.shape[1]}{salted}\n".encode())
    for text, clean, answer in zip(asked.texts, asked.embeddings, given, strict=True):
        if np.isfinite(answer).all():
            whole.update(text_digest(text) + clean.astype("<f4").tobytes() + answer.astype("<f4").tobytes())
    return whole.hexdigest()


def judge_keys(
    keys: Sequence[Key], answers: Answers, probes: TextSet | None, ledger: ledgers.Ledger | None, level: float
) -> tuple[KeyJudgement, tuple[OtherKey, ...]]:
    """Return the judgement of the key that has most to say, and what the others found, the most telling first.

    Of keys that say the same, the newest leads: it comes last in a ring.
    """
    found = [_named(key, answers, probes, ledger, alone=len(keys) == 1) for key in reversed(keys)]
    paid = np.array([min(one.p_value * one.correction, 1.0) for one in found])
    corrected = holm(paid)
    order = np.argsort(paid, kind="stable")
    first, *rest = ((found[row], float(corrected[row])) for row in order)
    others = (
        OtherKey(one.basis.key.id, one.p_value, one.look, p, infringement=p <= level, inputs_digest=one.inputs_digest)
        for one, p in rest
    )
    return first[0], tuple(others)


def _named(
    key: Key, answers: Answers, probes: TextSet | None, ledger: ledgers.Ledger | None, *, alone: bool
) -> KeyJudgement:
    """Judge by one key; where there are several, an error says which one it is about."""
    try:
        return KeyJudgement.of(key, answers, probes, ledger)
    except InputError as error:
        if alone:
            raise
        raise InputError(f"key {key.id} of the ring: {error}; or judge by one key alone (--key-id)") from error
