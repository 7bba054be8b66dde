"""Tracing: which customer's vectors the suspect was trained on.

Every tenant's tuple of targets is an independent draw, so every tenant's p-value is exact whoever else has leaked, and
one matrix of scores ranks any number of tenants without a further question to the suspect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.errors import InputError
from regionmarker.html_table import html_table
from regionmarker.keys.key import Key
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.examination import Examination, examine
from regionmarker.verification.questions import key_of


@dataclass(frozen=True)
class Trace:
    """One tenant's place in the ranking.

    Attributes
    ----------
    p_value
        Exact for this tenant alone, whoever else has leaked.
    holm
        Corrected for all tenants looked at (Holm): compare this with the level.
    accused
        Whether ``holm`` is at or below the level.
    label
        What the tenant's mark follows from: its name, or its place.
    """

    tenant: str
    p_value: float
    holm: float
    total: float
    accused: bool
    label: str


class Ranking(list[Trace]):
    """Tenants, the most suspicious first; a list that notebooks show as a table."""

    def _repr_html_(self) -> str:
        rows = [(row.tenant, f"{row.p_value:.3g}", f"{row.holm:.3g}", "yes" if row.accused else "no") for row in self]
        return html_table(("tenant", "p", "corrected p", "accused"), rows)


def trace(
    marker: object,
    answers: Answers,
    tenants: Iterable[str] | Mapping[str, str],
    *,
    level: float | None = None,
    probes: TextSet | None = None,
) -> Ranking:
    """Rank tenants by how strongly the suspect carries their own mark; the most suspicious first.

    Parameters
    ----------
    marker
        A fitted marker, or its key.
    answers
        The suspect's answers, the same that :func:`~regionmarker.verification.judging.verify` judges.
    tenants
        All that were ever served: their names, as they were given to ``transform``; or, by name, their labels.
    level
        The chance of accusing anyone when nobody leaked; the key's own when not given.
    """
    key = key_of(marker)
    labels = labels_of(key, tenants)
    return trace_examined(key, examine(key, answers, probes), labels, level=level)


def labels_of(key: Key, tenants: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Return the label of every tenant; refuse a key without marks for tenants, and a list without any."""
    labels = dict(tenants) if isinstance(tenants, Mapping) else {name: name for name in tenants}
    if not labels or "" in labels or "" in labels.values():
        raise InputError("give the names of the tenants to look at; the empty name stands for nobody in particular")
    if not key.marks_tenants:
        raise InputError("this key has no marks for tenants: tracing needs a key that was made with them")
    return labels


def trace_examined(
    key: Key, examination: Examination, labels: Mapping[str, str], *, level: float | None = None
) -> Ranking:
    """Rank tenants by an examination that was made already; see :func:`trace`."""
    names = list(labels)
    tuples = np.array([key.tenant_targets(label) for label in labels.values()])
    test = examination.tenant_test(examination.tenant_scores())  # sees no tenant
    p_values, totals = test.p_values(tuples), test.totals(tuples)
    corrected = holm(p_values)
    level = key.settings.level if level is None else level
    order = np.lexsort((-np.abs(totals), p_values))
    return Ranking(
        Trace(
            tenant=names[row],
            p_value=float(p_values[row]),
            holm=float(corrected[row]),
            total=float(totals[row]),
            accused=bool(corrected[row] <= level),
            label=labels[names[row]],
        )
        for row in order
    )


def finding(ranking: Sequence[Trace], level: float) -> str:
    """Say whom the answers point to, one tenant, several or nobody, so that nobody needs statistics to read it.

    Examples
    --------
    >>> row = Trace("acme", 1e-9, 2e-9, 14.0, True, "place-0001")
    >>> print(finding([row, Trace("zenith", 0.4, 0.4, 0.9, False, "place-0002")], 0.001))
    The answers carry the mark of one tenant: acme (place-0001). The chance of naming any of the 2 tenants looked at ...
    """
    accused = [row for row in ranking if row.accused]
    shown = ", ".join(row.tenant if row.label in ("", row.tenant) else f"{row.tenant} ({row.label})" for row in accused)
    count = f"{len(ranking):,} tenant{'s' if len(ranking) > 1 else ''} looked at"
    least = min((row.holm for row in ranking), default=1.0)
    if not accused:
        return (
            f"The answers point to no tenant: of the {count}, none reaches the agreed limit (smallest corrected p "
            f"{least:.2g}, limit {level:.2g}). That does not say that no tenant leaked: a weak copy shows little, and "
            "tenants who compare their vectors can remove their own marks."
        )
    chance = (
        f"The chance of naming any of the {count} whose vectors were not used is at most {level:.2g}, whatever the "
        f"others did (smallest corrected p {least:.2g})."
    )
    if len(accused) == 1:
        return (
            f"The answers carry the mark of one tenant: {shown}. {chance} That the others are not named does not clear "
            "them."
        )
    return (
        f"The answers carry the marks of {len(accused)} tenants: {shown}. {chance} Vectors of each of them went into "
        "the copy, from themselves or by way of others."
    )
