"""Tracing: which customer's vectors the suspect was trained on.

Every tenant's tuple of targets is an independent draw, so every tenant's p-value is exact whoever else has leaked, and
one matrix of scores ranks any number of tenants without a further question to the suspect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.errors import InputError
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.examination import examine
from regionmarker.verification.questions import key_of


@dataclass(frozen=True)
class Trace:
    """One tenant's place in the ranking.

    Attributes
    ----------
    p_value
        Exact for this tenant alone.
    holm
        Corrected for all tenants looked at (Holm): compare this with the level.
    accused
        Whether ``holm`` is at or below the level.
    """

    tenant: str
    p_value: float
    holm: float
    total: float
    accused: bool


def trace(
    marker: object,
    answers: Answers,
    tenants: Iterable[str],
    *,
    level: float | None = None,
    probes: TextSet | None = None,
) -> list[Trace]:
    """Rank tenants by how strongly the suspect carries their own mark; the most suspicious first.

    Parameters
    ----------
    marker
        A fitted marker, or its key.
    answers
        The suspect's answers, the same that :func:`~regionmarker.verification.judging.verify` judges.
    tenants
        Their names, as they were given to ``transform``.
    level
        The chance of accusing anyone when nobody leaked; the key's own when not given.
    """
    key = key_of(marker)
    names = list(dict.fromkeys(tenants))
    if not names or "" in names:
        raise InputError("give the names of the tenants to look at; the empty name stands for nobody in particular")
    tuples = np.array([key.tenant_targets(name) for name in names])
    if not tuples.size:
        raise InputError("this key has no marks for tenants: tracing needs a key that was made with them")
    examination = examine(key, answers, probes)
    test = examination.tenant_test(examination.tenant_scores())  # sees no tenant
    p_values, totals = test.p_values(tuples), test.totals(tuples)
    corrected = holm(p_values)
    level = key.settings.level if level is None else level
    order = np.lexsort((-np.abs(totals), p_values))
    return [
        Trace(
            names[row], float(p_values[row]), float(corrected[row]), float(totals[row]), bool(corrected[row] <= level)
        )
        for row in order
    ]
