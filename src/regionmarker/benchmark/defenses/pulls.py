"""The decoy test's statistic for schemes that pull vectors towards targets, whatever triggers them.

It is :mod:`regionmarker.verification.scores` without regions: the functions here are given every candidate and no
choice, and see there why that makes the p-value exact.
"""

from __future__ import annotations

import numpy as np

from regionmarker.protocols import AnyArray, Doubles, Floats
from regionmarker.verification.alignment import to_clean_space
from regionmarker.verification.cleanside import CleanSide, Unmarked
from regionmarker.verification.scores import displacements, standardised


def pull_scores(
    answers: Floats,
    clean: Floats,
    weights: Doubles,
    pool_clean: Floats,
    covariates: Doubles,
    shifts: AnyArray | None = None,
) -> Doubles:
    """Return z (R, M): how well candidate t explains what the suspect does to texts that trigger mark r.

    Parameters
    ----------
    answers
        The suspect's answers S(x) to texts whose clean embeddings are known, (T, D').
    clean
        Those embeddings e(x), (T, D).
    weights
        How strongly each text triggers each mark, (T, R); texts with a row of zeros are unmarked.
    pool_clean
        The candidates' clean vectors, (M, D).
    covariates
        What meaning alone may explain of a score, a row for each candidate, (M, C).
    shifts
        A second estimate of the displacement that each mark makes, in the suspect's space, (R, D').
    """
    S = answers.astype(np.float32)
    nowhere = np.empty((0, 0))  # the candidates are not asked, and there are no hyperplanes
    side = CleanSide(clean, np.empty((len(clean), 0)), clean[:0], nowhere)
    found = displacements(S, Unmarked.of(side.e, np.asarray(~weights.any(axis=1))), weights)  # (R, D')
    both = found if shifts is None else np.vstack([found, shifts])  # (R or 2R, D')
    pull = to_clean_space(both, side, S - S.mean(axis=0))  # (R or 2R, D)
    seen = np.ones(len(pool_clean), dtype=bool)
    z = standardised(pull @ (pool_clean - side.centre).T, covariates, seen)
    if shifts is None:
        return z
    # Two looks at the same displacement, each in units of its own noise.
    return standardised(z[: len(found)] + z[len(found) :], np.empty((len(pool_clean), 0)), seen)
