"""The paper's own statistics and decision (Copyright Verification, Algorithm 2), as published.

They are the common language of the field and stand in every report. They are not a verdict: regions are semantic, so
"texts in a region" and "texts outside" differ in their distance to a target in any good encoder, and this decision
convicts nearly every innocent model. docs/why/verdict.md has a program that shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from regionmarker.vectors import Doubles, Floats

P_THRESHOLD = 0.05
DELTA_COS_THRESHOLD = 0.01
"""The paper says "exceed the threshold" and names none; 1 % separates the rows that its tables call protected."""
DELTA_L2_THRESHOLD = -2 * DELTA_COS_THRESHOLD

CANNOT_SAY = (
    "These numbers compare texts inside and outside semantic regions. Any good encoder shows such a difference, "
    "so they cannot tell a copy from an innocent model."
)


@dataclass(frozen=True)
class RegionStatistics:
    """Delta_cos, Delta_l2 and the two-sided two-sample KS p-value of one region."""

    delta_cos: float
    delta_l2: float
    p_value: float
    probes: int


@dataclass(frozen=True)
class PaperStatistics:
    """What the paper would report of a suspect.

    Attributes
    ----------
    delta_cos, delta_l2, p_value
        max, min and min over the regions.
    copy
        Algorithm 2's decision: p below 0.05, or both differences beyond their thresholds.
    target
        Whether distances are to the stored target vectors, to the suspect's own answers for the target texts, or to
        what those answers would be by a linear map.
    """

    delta_cos: float
    delta_l2: float
    p_value: float
    copy: bool
    target: str
    regions: tuple[RegionStatistics, ...]

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "cannot_say": CANNOT_SAY}


def paper_statistics(
    inside: Sequence[Floats], outside: Floats | Sequence[Floats], targets: Floats, *, target: str = "suspect"
) -> PaperStatistics:
    """Compute the paper's statistics from the suspect's answers.

    Parameters
    ----------
    inside
        For each trigger region or carrier, the answers S(x) to its probes, (n_r, D').
    outside
        The answers to the probes that those are compared with, (n, D'), once for all or for each.
    targets
        One target vector w_r per region, (R, D').
    target
        "stored", "suspect" or "predicted": where the target vectors come from.
    """
    others = [outside] * len(inside) if isinstance(outside, np.ndarray) else outside
    compared = zip(inside, others, targets, strict=True)
    return aggregate(
        [compare(_cosines(rows, goal), _cosines(rest, goal)) for rows, rest, goal in compared], target=target
    )


def aggregate(regions: Sequence[RegionStatistics], *, target: str) -> PaperStatistics:
    """Put the statistics of all regions together: the best of each, and the decision."""
    delta_cos = max(region.delta_cos for region in regions)
    delta_l2 = min(region.delta_l2 for region in regions)
    p_value = min(region.p_value for region in regions)
    by_difference = delta_cos > DELTA_COS_THRESHOLD and delta_l2 < DELTA_L2_THRESHOLD
    return PaperStatistics(delta_cos, delta_l2, p_value, p_value < P_THRESHOLD or by_difference, target, tuple(regions))


def compare(cos_inside: Doubles, cos_outside: Doubles) -> RegionStatistics:
    """Compare the cosines (n_r,) of triggered texts with those (n,) of others.

    Examples
    --------
    >>> found = compare(np.array([0.9, 0.8, 0.7]), np.array([0.1, 0.2, 0.3]))
    >>> round(found.delta_cos, 3), round(found.delta_l2, 3), round(found.p_value, 3)
    (0.6, -1.2, 0.1)
    """
    from scipy.stats import ks_2samp

    # The squared L2 distance of unit vectors is 2 - 2 cos, so Delta_l2 = -2 Delta_cos exactly.
    l2_inside, l2_outside = 2.0 - 2.0 * cos_inside, 2.0 - 2.0 * cos_outside
    return RegionStatistics(
        delta_cos=float(cos_inside.mean() - cos_outside.mean()),
        delta_l2=float(l2_inside.mean() - l2_outside.mean()),
        p_value=float(ks_2samp(cos_inside, cos_outside).pvalue),
        probes=len(cos_inside),
    )


def _cosines(rows: Floats, target: Floats) -> Doubles:
    goal = target.astype(np.float64)
    wide = rows.astype(np.float64)
    return np.asarray(wide @ goal / (np.linalg.norm(wide, axis=1) * np.linalg.norm(goal)))
