"""Ask the suspect again: a signature proves nothing about what the suspect answered, asking does."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from regionmarker.errors import InputError
from regionmarker.evidence.bundle import SUMMARY, Bundle, read_bundle
from regionmarker.evidence.check import check_integrity
from regionmarker.evidence.check_expert import stored_answers
from regionmarker.evidence.score_forms import VERDICT
from regionmarker.verification.answers import Answers
from regionmarker.verification.asking import ask_texts

SAME = 0.99
"""Cosine from which on two answers count as the same: servers round, batch and move between processors."""
MOST = 0.95  # share of the sample that must have the same answers


@dataclass(frozen=True)
class Replay:
    """What came of asking again.

    Attributes
    ----------
    sample, answered, same
        Texts asked; those answered; those whose answer is the stored one.
    lowest, median
        Cosines of the new answers with the stored ones.
    confirmed
        Whether at least 95 % of the sample have the same answer.
    """

    suspect: str
    recorded_suspect: str
    sample: int
    answered: int
    same: int
    lowest: float
    median: float

    @property
    def confirmed(self) -> bool:
        return self.same >= MOST * self.sample

    @property
    def sentence(self) -> str:
        if self.confirmed:
            return f"{self.suspect} answers {self.same} of {self.sample} texts as the bundle says"
        return (
            f"{self.suspect} answers only {self.same} of {self.sample} texts as the bundle says: it is another model, "
            "it has changed, or the answers in the bundle are not its own"
        )

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "confirmed": self.confirmed, "sentence": self.sentence}


def replay_evidence(
    path: str | Path, suspect: object, *, sample: int = 100, seed: int | None = None, progress: bool = False
) -> Replay:
    """Ask a suspect a random sample of a bundle's texts and compare with the stored answers.

    Parameters
    ----------
    path
        An expert or court bundle: a summary does not show the texts.
    suspect
        Whatever :func:`regionmarker.ask` takes.
    sample
        How many texts to ask.
    seed
        Fixes the sample, for tests; None draws it anew, so that nobody can prepare for it.
    """
    bundle, texts, stored = draw_texts(path, sample, seed)
    again = ask_texts(suspect, texts, cache=False, progress=progress)  # kept answers would prove nothing
    if again.width != stored.width:
        raise InputError(
            f"{again.suspect} answers with vectors of width {again.width}, the bundle's have width {stored.width}: "
            "it is another model"
        )
    cosines = np.nan_to_num(np.einsum("ij,ij->i", again.lookup(texts), stored.lookup(texts)), nan=-1.0)
    return Replay(
        suspect=again.suspect,
        recorded_suspect=str(bundle.json(VERDICT)["suspect"]),
        sample=len(texts),
        answered=len(texts) - again.missing,
        same=int((cosines >= SAME).sum()),
        lowest=round(float(cosines.min()), 6),
        median=round(float(np.median(cosines)), 6),
    )


def draw_texts(path: str | Path, sample: int, seed: int | None = None) -> tuple[Bundle, list[str], Answers]:
    """Return a bundle that was not changed, a random sample of the texts that were answered, and all its answers."""
    if sample < 1:
        raise InputError(f"sample is {sample}, but must be at least 1")
    bundle = read_bundle(path)
    for check in check_integrity(bundle):
        if check.fails:
            raise InputError(f"{path} is not as it was written: {check.detail}")
    if bundle.disclosure == SUMMARY:
        raise InputError(
            f"{path} is a summary, which does not show the texts that were asked: "
            "ask the claimant for an expert or a court bundle"
        )
    stored = stored_answers(bundle)
    known = np.flatnonzero(np.isfinite(stored.vectors).all(axis=1))
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    chosen = rng.choice(known, size=min(sample, len(known)), replace=False)
    texts = [stored.texts[row] for row in chosen]
    return bundle, texts, stored
