"""Power: what this run would have caught, so that "no evidence" means something.

Simulated stealers are trained on the key's own texts, in the clean space: each sees every text through noise, u = n(e +
noise), and learns the served vectors of the reservoir texts that were not asked by ridge regression on [u, max(u W, 0)]
with random W. The noise sets how well it can learn; its fidelity is measured on the probes. Each stealer has a fresh
draw of targets; the true ones are not used. A real stealer has more texts to learn from, so it learns the mark better.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace

import numpy as np

from regionmarker.crypto.secret import Secret
from regionmarker.keys.key import Key
from regionmarker.marking.marker import RegionMarker
from regionmarker.measures import row_cosines
from regionmarker.vectors import Floats, normalised
from regionmarker.verification.examination import laid_out
from regionmarker.verification.questions import Questions
from regionmarker.verification.simulated_stealer import SimulatedStealer, Student

NOISES = (0.0, 0.7, 1.2, 1.8, 2.5)
WANTED = 0.9
ENOUGH = 0.9  # a run that would miss stealers of this fidelity more often than one time in ten is inconclusive
_HIDDEN = 2048
_PENALTY = 0.01
_LEAST_TEXTS = 500


@dataclass(frozen=True)
class Power:
    """Detection of simulated stealers over fidelity.

    Attributes
    ----------
    fidelities, detected
        The curve, from the worst stealer to the best.
    caught
        The lowest fidelity from which on at least 90 % are detected; None where the run reaches that nowhere.
    shadows
        Stealers per point of the curve.
    texts
        Texts that each stealer learnt from.
    """

    fidelities: tuple[float, ...]
    detected: tuple[float, ...]
    caught: float | None
    shadows: int
    texts: int

    @property
    def enough(self) -> bool:
        return self.caught is not None and self.caught <= ENOUGH

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "wanted": WANTED, "enough": self.enough}


def estimate_power(key: Key, questions: Questions, level: float, shadows: int = 4, seed: int | None = None) -> Power:
    """Let simulated stealers of several fidelities steal, and judge each at ``level``."""
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
    key: Key, questions: Questions, clean: Floats, noise: float, level: float, shadows: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean fidelity and the share detected of stealers that see through one amount of noise."""
    student = _Student.drawn_for(clean.shape[1], rng)
    features = np.vstack([_blurred(rows, noise, rng) for rows in (clean, questions.asked.embeddings)])
    stealer = SimulatedStealer(features, np.arange(len(clean)), student, _PENALTY, absolute=True)
    outcomes = [_steal(key, questions, clean, stealer, rng) for _ in range(shadows)]
    return (
        round(float(np.mean([fidelity for fidelity, _ in outcomes])), 3),
        float(np.mean([p_value <= level for _, p_value in outcomes])),
    )


def _steal(
    key: Key, questions: Questions, clean: Floats, stealer: SimulatedStealer, rng: np.random.Generator
) -> tuple[float, float]:
    """Let the stealer copy a fresh draw of targets; return its fidelity and its p-value."""
    redrawn = replace(key, master=Secret(rng.bytes(32)))
    marker, asked = RegionMarker.from_key(redrawn), questions.asked
    answers = stealer.steal(marker.transform(clean))(len(clean) + np.arange(len(asked)))
    row_of = {text: row for row, text in enumerate(asked.texts)}
    examination = laid_out(key, questions, lambda texts: answers[[row_of[text] for text in texts]])
    fidelity = float(row_cosines(answers, marker.transform(asked.embeddings)).mean())
    return fidelity, examination.test(examination.scores()).p_value(redrawn.provider_targets())


class _Student(Student):
    """[u, max(u W, 0)] of what is seen, u: the linear map stays within easy reach, however few the texts."""

    @classmethod
    def drawn_for(cls, width: int, rng: np.random.Generator) -> _Student:
        weights = rng.standard_normal((width, _HIDDEN)).astype(np.float32) / np.float32(np.sqrt(_HIDDEN))
        nothing = np.zeros(width, dtype=np.float32)
        output = np.zeros((width + _HIDDEN, width), dtype=np.float32)
        return cls(nothing, 1.0, weights, np.zeros(_HIDDEN, dtype=np.float32), output, nothing)

    def hidden(self, inputs: Floats) -> Floats:
        return np.hstack([inputs, super().hidden(inputs)])


def _blurred(clean: Floats, noise: float, rng: np.random.Generator) -> Floats:
    """Return u = n(e + noise) for every text, (n, D)."""
    blur = rng.standard_normal(clean.shape).astype(np.float32) * np.float32(noise / np.sqrt(clean.shape[1]))
    return normalised(clean + blur)
