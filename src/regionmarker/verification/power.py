"""Power: what this run would have caught, so that "no evidence" means something.

Shadow thieves are trained on the key's own texts, in the clean space: each sees every text through noise, u = n(e +
noise), and learns the served vectors of the reservoir texts that were not asked by ridge regression on [u, max(u W, 0)]
with random W. The noise sets how well it can learn; its fidelity is measured on the probes. Each shadow has a fresh
draw of targets; the true ones are not used. A real thief has more texts to learn from, so it learns the mark better.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace

import numpy as np

from regionmarker.crypto.secret import Secret
from regionmarker.keys.key import Key
from regionmarker.vectors import Doubles, Floats
from regionmarker.verification.clean_space import solve
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.examination import Examination
from regionmarker.verification.questions import Questions

NOISES = (0.0, 0.7, 1.2, 1.8, 2.5)
WANTED = 0.9
ENOUGH = 0.9
"""A run that would miss thieves of this fidelity more often than one time in ten is inconclusive."""
_HIDDEN = 2048
_PENALTY = 0.01
_LEAST_TEXTS = 500


@dataclass(frozen=True)
class Power:
    """Detection of shadow thieves over fidelity.

    Attributes
    ----------
    fidelities, detected
        The curve, from the worst thief to the best.
    caught
        The lowest fidelity from which on at least 90 % are detected; None where the run reaches that nowhere.
    shadows
        Thieves a point of the curve.
    texts
        Texts that each thief learnt from.
    """

    fidelities: tuple[float, ...]
    detected: tuple[float, ...]
    caught: float | None
    shadows: int
    texts: int

    @property
    def enough(self) -> bool:
        """Whether the run could have caught a good copy."""
        return self.caught is not None and self.caught <= ENOUGH

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {**asdict(self), "wanted": WANTED, "enough": self.enough}


def estimate_power(key: Key, questions: Questions, level: float, shadows: int = 4, seed: int | None = None) -> Power:
    """Let shadow thieves of several fidelities steal, and judge each at ``level``."""
    rng = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
    clean = _training_rows(key, questions)
    points = sorted(_point(key, questions, clean, noise, level, shadows, rng) for noise in NOISES)
    good = [detected >= WANTED for _, detected in points]
    caught = next((points[place][0] for place in range(len(good)) if all(good[place:])), None)
    fidelities, detected = zip(*points, strict=True)
    return Power(fidelities, detected, caught, shadows, len(clean))


def _training_rows(key: Key, questions: Questions) -> Floats:
    """Return the reservoir texts that were not asked; all of them where that leaves too few."""
    asked = set(questions.probes.texts)
    unused = np.array([text not in asked for text in key.reservoir.texts], dtype=bool)
    return key.reservoir.embeddings[unused] if unused.sum() >= _LEAST_TEXTS else key.reservoir.embeddings


def _point(
    key: Key,
    questions: Questions,
    clean: Floats,
    noise: float,
    level: float,
    shadows: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the mean fidelity and the share detected of thieves that see through one amount of noise."""
    weights = rng.standard_normal((clean.shape[1], _HIDDEN)).astype(np.float32)
    seen = [
        _features(rows, noise, weights, rng) for rows in (clean, questions.probes.embeddings, questions.pool.embeddings)
    ]
    factor = _factor(seen[0])
    outcomes = [_shadow(key, questions, clean, seen, factor, rng) for _ in range(shadows)]
    return (
        round(float(np.mean([fidelity for fidelity, _ in outcomes])), 3),
        float(np.mean([p_value <= level for _, p_value in outcomes])),
    )


def _shadow(
    key: Key, questions: Questions, clean: Floats, seen: list[Floats], factor: object, rng: np.random.Generator
) -> tuple[float, float]:
    """Let one thief steal; return its fidelity and its p-value."""
    from regionmarker.marking.marker import RegionMarker

    shadow = replace(key, master=Secret(rng.bytes(32)))
    marker = RegionMarker.from_key(shadow)
    learnt = solve(factor, seen[0].T @ marker.transform(clean)).astype(np.float32)  # (f, D)
    probes, pool = _unit(seen[1] @ learnt), _unit(seen[2] @ learnt)
    fidelity = float((probes * marker.transform(questions.probes.embeddings)).sum(axis=1).mean())
    z = Examination.simulated(key, questions, probes, pool).scores()
    return fidelity, DecoyTest(z).p_value(shadow.provider_targets())


def _features(clean: Floats, noise: float, weights: Floats, rng: np.random.Generator) -> Floats:
    """Return [u, max(u W, 0), 1] for every text as the thief sees it, (n, f)."""
    blurred = clean + rng.standard_normal(clean.shape).astype(np.float32) * np.float32(noise / np.sqrt(clean.shape[1]))
    u = _unit(blurred)
    return np.hstack([u, np.maximum(u @ weights, 0.0) / np.sqrt(_HIDDEN), np.ones((len(u), 1))]).astype(np.float32)


def _factor(features: Floats) -> object:
    from scipy.linalg import cho_factor

    gram: Doubles = (features.T @ features).astype(np.float64)
    gram[np.diag_indices_from(gram)] += _PENALTY
    return cho_factor(gram, overwrite_a=True)


def _unit(rows: Floats) -> Floats:
    unit: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit
