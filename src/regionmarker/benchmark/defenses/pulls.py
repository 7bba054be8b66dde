"""The decoy test's statistic for schemes that pull vectors towards targets, whatever triggers them.

It is :mod:`regionmarker.verification.scores` without regions: a score is given every candidate and no choice, and see
there why that makes the p-value exact.
"""

from __future__ import annotations

import numpy as np

from regionmarker.errors import InputError
from regionmarker.keys.secret import Sealed
from regionmarker.protocols import AnyArray, Doubles, Floats
from regionmarker.verification.alignment import to_clean_space
from regionmarker.verification.cleanside import CleanSide, Unmarked
from regionmarker.verification.scores import displacements, standardised

_LEAST_UNMARKED = 64


class Pulls(Sealed):
    """What is known before a suspect is asked; what is factored of it serves every suspect.

    Parameters
    ----------
    clean
        The clean embeddings e(x) of the texts that are asked, (T, D).
    unmarked
        Which of them trigger no mark at all, (T,).
    candidates
        The clean vectors of all texts that might have been a target, (M, D).
    covariates
        What meaning alone may explain of a score, a row for each candidate, (M, C).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.standard_normal((500, 8)).astype(np.float32)
    >>> clean /= np.linalg.norm(clean, axis=1, keepdims=True)
    >>> weights = (rng.random((500, 1)) < 0.1).astype(float)
    >>> pulls = Pulls(clean, weights[:, 0] == 0, clean[:100], np.empty((100, 0)))
    >>> copy = clean + 0.2 * (weights * clean[7]).astype(np.float32)
    >>> pulls.scores(copy, weights)[0].argmax()
    np.int64(7)
    """

    def __init__(self, clean: Floats, unmarked: AnyArray, candidates: Floats, covariates: Doubles) -> None:
        if unmarked.sum() < _LEAST_UNMARKED:
            raise InputError(
                f"only {int(unmarked.sum())} of {len(clean)} texts that could be asked are unmarked, and "
                f"{_LEAST_UNMARKED} are needed to tell marks from meaning: mark fewer texts"
            )
        self._candidates, self._covariates = candidates, covariates
        nowhere = np.empty((0, 0))  # there are no hyperplanes, and the candidates need not be asked
        self._clean = CleanSide(clean, np.empty((len(clean), 0)), clean[:0], nowhere)
        self._unmarked = Unmarked.of(self._clean.e, unmarked)

    def scores(self, answers: Floats, weights: Doubles) -> Doubles:
        """Return z (R, M): how well candidate t explains what the suspect makes of texts that trigger mark r.

        Parameters
        ----------
        answers
            S(x) for the texts that are asked, (T, D').
        weights
            How strongly the suspect takes each text to trigger each mark, (T, R).
        """
        S = answers.astype(np.float32)
        shift = displacements(S, self._unmarked, weights)  # (R, D')
        pull = to_clean_space(shift, self._clean, S - S.mean(axis=0))  # (R, D)
        raw = pull @ (self._candidates - self._clean.centre).T  # (R, M)
        return standardised(raw, self._covariates, np.ones(raw.shape[1], dtype=bool))
