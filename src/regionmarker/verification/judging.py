"""What the keys of a ring find in one set of answers, corrected for how many keys looked and how often.

A key's p-value is exact for that key. Look k counts k (k + 1) times, and the keys of a ring are corrected together
(Holm): an innocent suspect is convicted by any key at any look with at most the level's probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.vectors import Doubles
from regionmarker.verification import ledger as ledgers
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoy_test import DecoyTest, holm
from regionmarker.verification.examination import Examination, scores_digest


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
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, repr=False, eq=False)
class Finding(Sealed):
    """One key's scores, and what they make of its targets."""

    key: Key
    examination: Examination
    z: Doubles  # (R, M)
    digest: str  # of z
    targets: tuple[int, ...]
    test: DecoyTest
    p_value: float
    look: int
    correction: int  # what a p-value is multiplied by, for this look

    @classmethod
    def of(cls, key: Key, answers: Answers, probes: TextSet | None, ledger: Path | None) -> Finding:
        """Score the answers, then look up the targets."""
        examination = Examination.of(key, answers, probes)
        z = examination.scores()  # sees no target ...
        digest = scores_digest(z)  # ... and is fixed before one is looked up: this is why p is exact
        targets = key.provider_targets()
        test = DecoyTest(z)
        look = 1 if ledger is None else ledgers.looks(ledger, key.id, answers.suspect, answers.digest)
        correction = 1 if ledger is None else ledgers.correction(look)
        return cls(key, examination, z, digest, targets, test, test.p_value(targets), look, correction)


def findings(
    keys: Sequence[Key], answers: Answers, probes: TextSet | None, ledger: Path | None, level: float
) -> tuple[Finding, tuple[OtherKey, ...]]:
    """Return the finding of the key that has most to say, and what the others found, the most telling first.

    Of keys that say the same, the newest leads: it comes last in a ring.
    """
    found = [_named(key, answers, probes, ledger, alone=len(keys) == 1) for key in reversed(keys)]
    paid = np.array([min(one.p_value * one.correction, 1.0) for one in found])
    corrected = holm(paid)
    order = np.argsort(paid, kind="stable")
    others = tuple(
        OtherKey(
            found[row].key.id,
            found[row].p_value,
            found[row].look,
            float(corrected[row]),
            bool(corrected[row] <= level),
        )
        for row in order[1:]
    )
    return found[order[0]], others


def _named(key: Key, answers: Answers, probes: TextSet | None, ledger: Path | None, *, alone: bool) -> Finding:
    """Judge by one key; where there are several, an error says which one it is about."""
    try:
        return Finding.of(key, answers, probes, ledger)
    except InputError as error:
        if alone:
            raise
        raise InputError(f"key {key.id} of the ring: {error}; or judge by one key alone (--key-id)") from error
