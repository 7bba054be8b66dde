"""Which tenant, in evidence: the ranking, whose place is whose, and what anyone can check of it.

Names of tenants who are not accused are nobody's business: at *summary* and *expert* their rows have p-values and no
names, which is all that the correction for their number (Holm) needs. At *court* everything is named, and where the
assignments of places were given, all of them, so that their published digest can be made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isclose
from typing import Any

import numpy as np

from regionmarker.errors import InputError
from regionmarker.evidence.bundle import COURT, Bundle, need
from regionmarker.evidence.score_forms import CLOSE
from regionmarker.keys.places import Assignment, chain_digest, read_chain
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.tracing import Trace

TRACES = "traces.json"


def traces_document(
    ranking: Sequence[Trace], places: Sequence[Assignment], level: float, disclosure: str
) -> dict[str, Any]:
    """Return what a level of disclosure shows of a tracing; it has to be judged at the verdict's level."""
    if any(row.accused != (row.holm <= level) for row in ranking):
        raise InputError(
            f"the tenants were traced at another level than the verdict's: trace them with level={level:g}"
        )
    if places:
        _check_complete({row.tenant: row.label for row in ranking}, places)
    rows = [{**asdict(row), "total": None if np.isnan(row.total) else row.total} for row in ranking]
    right = holm(np.array([row["p_value"] for row in rows]))
    if not np.allclose([row["holm"] for row in rows], right, rtol=CLOSE):
        raise InputError("traces are given in full: p-values are corrected for all tenants that were looked at")
    whole = disclosure == COURT
    hidden = {} if whole else {"tenant": None, "label": None}
    return {
        "level": level,
        "tenants": [row if row["accused"] else row | hidden for row in rows],
        "places": {"count": len(places), "digest": chain_digest(places)} if places else None,
        **({"assignments": [one.to_dict() for one in places]} if whole and places else {}),
    }


def stored_traces(bundle: Bundle, level: float) -> dict[str, Any]:
    """Read the document; bundles of 0.1.0 have its rows alone."""
    found = bundle.json(TRACES)
    if isinstance(found, list):
        return {"level": level, "tenants": [{**row, "label": row["tenant"]} for row in found], "places": None}
    return dict(found)


def check_correction(document: Mapping[str, Any], level: float) -> str:
    """See that the p-values are corrected for all that were looked at, and that the accused are those that it makes."""
    rows = document["tenants"]
    need(document["level"] == level, f"{TRACES}: the tenants were judged at another level than the verdict's")
    p_values = [row["p_value"] for row in rows]
    ordered = p_values == sorted(p_values) and all(0 < p <= 1 for p in p_values)
    need(bool(rows) and ordered, f"{TRACES} does not hold p-values from the smallest on")
    names = [row["tenant"] for row in rows if row["tenant"] is not None]
    need(len(set(names)) == len(names), f"{TRACES} names a tenant twice")
    corrected = holm(np.array([float(row["p_value"]) for row in rows]))
    for number, (row, right) in enumerate(zip(rows, corrected, strict=True), start=1):
        need(
            isclose(row["holm"], right, rel_tol=CLOSE) and row["accused"] == (row["holm"] <= level),
            f"{TRACES}: the correction of row {number} is not what the p-values of all {len(rows)} give",
        )
        need(bool(row["tenant"]) or not row["accused"], f"{TRACES}: row {number} is accused and has no name")
    places = document["places"]
    if places is not None:
        need(places["count"] == len(rows), f"{TRACES}: {places['count']} places were issued, {len(rows)} looked at")
    accused = [row["tenant"] for row in rows if row["accused"]]
    issued = "" if places is None else f"; places issued: {places['count']}, digest {places['digest']}"
    return f"{len(rows)} tenants looked at, accused: {', '.join(accused) or 'nobody'}{issued}"


def check_assignments(document: Mapping[str, Any]) -> str:
    """See that the assignments make the digest, and that all of them were looked at under their own labels."""
    if document["places"] is None:
        return ""
    chain = read_chain(document["assignments"])
    stated = document["places"]["digest"]
    need(chain_digest(chain) == stated, f"{TRACES}: the assignments make another digest than {stated}")
    _check_complete({row["tenant"]: row["label"] for row in document["tenants"]}, chain)
    return f"; the {len(chain)} assignments make the digest {stated}"


def _check_complete(labels: Mapping[str, str], places: Sequence[Assignment]) -> None:
    issued = {one.tenant: one.label for one in places}
    if labels != issued:
        strange = sorted(name for name in {*labels, *issued} if labels.get(name) != issued.get(name))
        raise InputError(
            f"{TRACES}: not all places issued were looked at, each as its tenant's: see {strange[0]}; p-values are "
            "corrected for all of them"
        )
