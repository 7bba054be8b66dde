"""Power: what this run would have caught, so that "no evidence" means something.

Shadow copies are simulated in the clean space: a student that sees every text through noise, n(e + noise), and answers
with the mark of the region in which *it* sees the text. Each shadow has a fresh draw of targets; the true ones are not
used. A real student's errors are smoother than noise and harder to average away, so real copies of the same fidelity
are somewhat harder to catch than these; docs/thieves.md has the measured curve.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace

import numpy as np

from regionmarker.keys.key import Key
from regionmarker.keys.secret import Secret
from regionmarker.protocols import Floats
from regionmarker.verification.decoys import DecoyTest
from regionmarker.verification.examination import Examination
from regionmarker.verification.questions import Questions

FIDELITIES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
WANTED = 0.9
ENOUGH = 0.9
"""A run that would not have caught a copy of this fidelity with 90 % probability is inconclusive."""


@dataclass(frozen=True)
class Power:
    """Detection probability of shadow copies over fidelity.

    Attributes
    ----------
    fidelities, detected
        The curve.
    caught
        The lowest fidelity from which on at least 90 % are detected; None where the run reaches that nowhere.
    shadows
        Simulated copies a point of the curve.
    """

    fidelities: tuple[float, ...]
    detected: tuple[float, ...]
    caught: float | None
    shadows: int

    @property
    def enough(self) -> bool:
        """Whether the run could have caught a good copy."""
        return self.caught is not None and self.caught <= ENOUGH

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {**asdict(self), "wanted": WANTED, "enough": self.enough}


def estimate_power(key: Key, questions: Questions, level: float, shadows: int = 4, seed: int | None = None) -> Power:
    """Simulate shadow copies at several fidelities and judge each at ``level``."""
    rng = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
    detected = tuple(
        float(np.mean([_shadow_p(key, questions, fidelity, rng) <= level for _ in range(shadows)]))
        for fidelity in FIDELITIES
    )
    good = [share >= WANTED for share in detected]
    caught = next((FIDELITIES[place] for place in range(len(good)) if all(good[place:])), None)
    return Power(FIDELITIES, detected, caught, shadows)


def _shadow_p(key: Key, questions: Questions, fidelity: float, rng: np.random.Generator) -> float:
    """Return the p-value of one shadow copy with targets of its own."""
    shadow = replace(key, master=Secret(rng.bytes(32)))
    probes = _shadow_answers(shadow, questions.probes.embeddings, fidelity, rng)
    pool = _shadow_answers(shadow, questions.pool.embeddings, fidelity, rng)
    return DecoyTest(Examination.simulated(key, questions, probes, pool).scores()).p_value(shadow.provider_targets())


def _shadow_answers(shadow: Key, clean: Floats, fidelity: float, rng: np.random.Generator) -> Floats:
    from regionmarker.marking.marker import RegionMarker

    # cos(n(e + s g), e) = 1 / sqrt(1 + s^2) for noise g of unit length.
    size = np.sqrt(1.0 / fidelity**2 - 1.0)
    noise = rng.standard_normal(clean.shape) * size / np.sqrt(clean.shape[1])
    seen = clean + noise
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    return RegionMarker.from_key(shadow).transform(seen.astype(np.float32))
