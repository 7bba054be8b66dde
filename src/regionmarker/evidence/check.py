"""Check a bundle offline: recompute all that its level of disclosure allows.

First that nothing was changed (digests, signature, time stamp); only then what the numbers say. Nothing here believes a
number of the bundle that it can compute, and nothing needs the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isclose, perm
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.evidence.bundle import COURT, MANIFEST, SUMMARY, Bundle, read_bundle
from regionmarker.evidence.check_expert import court_checks, expert_checks
from regionmarker.evidence.disclosure import SCORES, VERDICT
from regionmarker.evidence.integrity import Check, attempt, integrity, need
from regionmarker.evidence.openings import COMMITMENT, Opened, check_commitment, committed_settings
from regionmarker.verification.decoy_test import LIMIT, STEP, holm, inflation, p_from_counts, p_from_lists, sum_of_sums
from regionmarker.verification.ledger import correction
from regionmarker.verification.power import ENOUGH
from regionmarker.verification.verdict import INCONCLUSIVE, INFRINGEMENT, NO_EVIDENCE

_CLOSE = 1e-9


@dataclass(frozen=True)
class Report:
    """All checks of a bundle.

    Attributes
    ----------
    checks
        In the order in which they were made. After a broken digest or signature no others follow.
    """

    path: str
    level: str
    outcome: str
    p_value: float | None
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return all(check.ok for check in self.checks)

    @property
    def failure(self) -> str | None:
        """What is wrong, in one sentence; None where nothing is."""
        return next((check.detail for check in self.checks if not check.ok), None)

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {**asdict(self), "ok": self.ok, "failure": self.failure}


def check_evidence(path: str | Path, *, signer: bytes | None = None, authority: Sequence[Path] = ()) -> Report:
    """Recompute, offline, all that a bundle's level allows.

    Parameters
    ----------
    path
        The bundle's directory or zip.
    signer
        The public key (PEM) that must have signed it, as the claimant published it elsewhere.
    authority
        PEM files of the time-stamping authority's certificates.

    Returns
    -------
    Report
    """
    bundle = read_bundle(path)
    checks = integrity(bundle, signer, authority)
    if not all(check.ok for check in checks):
        return Report(str(path), "", "", None, tuple(checks))
    level, verdict = bundle.level, bundle.json(VERDICT)
    checks += numbers(bundle, level)
    checks += expert_checks(bundle) if level != SUMMARY else []
    checks += court_checks(bundle) if level == COURT else []
    outcome, p_value = (verdict.get(name) if isinstance(verdict, dict) else None for name in ("outcome", "p_value"))
    return Report(str(path), level, str(outcome), p_value, tuple(checks))


def numbers(bundle: Bundle, level: str) -> list[Check]:
    """Check what can be computed without a text."""
    verdict, scores, commitment = bundle.json(VERDICT), bundle.json(SCORES), bundle.json(COMMITMENT)
    return [
        attempt("commitment", COMMITMENT, lambda: _commitment(bundle, verdict, commitment, level)),
        attempt("total", SCORES, lambda: _total(verdict, scores)),
        attempt("null distribution", SCORES, lambda: _null(scores)),
        attempt("p-value", VERDICT, lambda: _p_value(verdict, scores)),
        attempt("looks", VERDICT, lambda: _looks(verdict)),
        attempt("power", VERDICT, lambda: _power(verdict)),
        attempt("outcome", VERDICT, lambda: _outcome(verdict)),
    ]


def _commitment(bundle: Bundle, verdict: dict[str, Any], document: dict[str, Any], level: str) -> str:
    opened: Opened = check_commitment(bundle, document, level)
    need(document["key_id"] == verdict["key_id"], f"{COMMITMENT} and {VERDICT} name different keys")
    need(verdict["disclosure"] == level, f"{VERDICT} is of another level of disclosure than {MANIFEST}")
    statistic, committed = committed_settings(opened.contents)
    need(statistic == verdict["statistic"], f"{VERDICT}: the statistic {verdict['statistic']} was not committed to")
    if verdict["level"] > committed:
        return f"holds, but the level {verdict['level']:g} is laxer than the committed {committed:g}"
    return f"the leaves make it; {', '.join(sorted(opened.contents))} opened"


def _arrays(scores: dict[str, Any]) -> tuple[Any, int, int]:
    size, regions = int(scores["pool"]), int(scores["regions"])
    lists = np.array(scores["lists"], dtype=np.int64)
    need(scores["step"] == STEP, f"{SCORES} is on another grid than this version's")
    need(lists.shape == (regions, size), f"{SCORES}: the lists are not {regions} lists of {size} scores")
    need(bool((np.diff(lists, axis=1) <= 0).all()), f"{SCORES}: a list is not sorted")
    need(bool((np.abs(lists) <= LIMIT / STEP).all()), f"{SCORES}: a score is beyond the grid")
    return lists, size, regions


def _total(verdict: dict[str, Any], scores: dict[str, Any]) -> str:
    lists, _, regions = _arrays(scores)
    observed = scores["observed"]
    need(len(observed) == regions, f"{SCORES}: there is not one observed score a region")
    if None in observed:
        need(verdict["total"] is None, f"{VERDICT}: U is {verdict['total']}, but a target has no answer")
        return "a target has no answer, so there is no U"
    for row, score in zip(lists, observed, strict=True):
        need(score in row, f"{SCORES}: an observed score is not among its region's scores")
    total = sum(observed) * STEP
    need(
        total == verdict["total"], f"{VERDICT}: U is {verdict['total']:g}, but the observed scores add up to {total:g}"
    )
    return f"U = {total:g} is the sum of {regions} observed scores"


def _null(scores: dict[str, Any]) -> str:
    lists, size, regions = _arrays(scores)
    table = scores["null"]
    if table is None:
        return "not tabulated (too many tuples); p is a bound from the sorted lists"
    lowest, counts = int(table["lowest"]), [int(count) for count in table["counts"]]
    need(min(counts) >= 0, f"{SCORES}: the table counts fewer than no tuples")
    need(sum(counts) == perm(size, regions), f"{SCORES}: the table does not count all {perm(size, regions)} tuples")
    need(lowest >= lists.min(axis=1).sum(), f"{SCORES}: the table holds sums that the lists cannot give")
    need(
        lowest + len(counts) - 1 <= lists.max(axis=1).sum(),
        f"{SCORES}: the table holds sums that the lists cannot give",
    )
    sums = sum((lowest + place) * count for place, count in enumerate(counts))
    need(sums == sum_of_sums(lists), f"{SCORES}: the table and the sorted lists do not belong together")
    return f"counts all {sum(counts)} tuples and fits the sorted lists"


def _p_value(verdict: dict[str, Any], scores: dict[str, Any]) -> str:
    lists, size, regions = _arrays(scores)
    p_value = float(verdict["p_value"])
    need(isclose(verdict["floor"], 1 / perm(size, regions)), f"{VERDICT}: the floor is not 1 in {perm(size, regions)}")
    if None in scores["observed"]:
        need(p_value == 1.0, f"{VERDICT}: p is {p_value:g}, but a target has no answer, so it must be 1")
        return "p = 1, because a target has no answer"
    observed = sum(scores["observed"])
    bound = p_from_lists(lists, observed)
    if scores["null"] is None:
        need(isclose(p_value, bound, rel_tol=_CLOSE), f"{VERDICT}: p is {p_value:g}, but the lists give {bound:g}")
        return f"p = {p_value:g}, recomputed from the sorted lists"
    p_table = p_from_counts(int(scores["null"]["lowest"]), scores["null"]["counts"], observed)
    need(p_value == p_table, f"{VERDICT}: p is {p_value:g}, but the table gives {p_table:g}")
    # Tuples with repeats are all that may lie between the two.
    slack = inflation(size, regions) - 1
    need(
        p_table <= bound <= p_table + slack + _CLOSE,
        f"{SCORES}: the table's p {p_table:g} does not fit the lists' {bound:g}",
    )
    return f"p = {p_value:g}, recomputed exactly"


def _looks(verdict: dict[str, Any]) -> str:
    """See that the level is paid for: by the looks at this suspect, and by the keys of the ring that looked."""
    level, look, judged_at = float(verdict["level"]), int(verdict["look"]), float(verdict["judged_at"])
    others = verdict.get("other_keys", [])  # bundles of older versions have none
    keys = 1 + len(others)
    need(0 < level < 1 and look >= 1, f"{VERDICT}: the level {level:g} or the look {look} is impossible")
    counted = look != 1 or not isclose(judged_at, level / keys, rel_tol=_CLOSE)
    corrections = [correction(number) if counted else 1 for number in (look, *(int(other["look"]) for other in others))]
    right = level / (corrections[0] * keys)
    ring = f" with {keys} keys" if others else ""
    need(
        isclose(judged_at, right, rel_tol=_CLOSE),
        f"{VERDICT}: look {look} at level {level:g}{ring} is judged at {right:g}, not at {judged_at:g}",
    )
    _other_keys(verdict, others, corrections, level)
    return f"look {look} at level {level:g}{ring} is judged at {judged_at:g}" + ("" if counted else "; looks uncounted")


def _other_keys(verdict: dict[str, Any], others: list[dict[str, Any]], corrections: list[int], level: float) -> None:
    """See that the strongest finding leads, and that the others are corrected (Holm)."""
    p_values = [float(one["p_value"]) for one in (verdict, *others)]
    paid = np.minimum(np.array(p_values) * corrections, 1.0)
    need(bool(paid[0] <= paid.min() * (1 + _CLOSE)), f"{VERDICT}: another key of the ring has a stronger finding")
    for other, corrected in zip(others, holm(paid)[1:], strict=True):
        need(
            isclose(other["holm"], corrected, rel_tol=_CLOSE) and other["infringement"] == (other["holm"] <= level),
            f"{VERDICT}: the correction of key {other['key_id']} is not what the p-values of the ring give",
        )


def _power(verdict: dict[str, Any]) -> str:
    power = verdict["power"]
    if power is None:
        return "not estimated"
    good = [share >= power["wanted"] for share in power["detected"]]
    caught = next((power["fidelities"][place] for place in range(len(good)) if all(good[place:])), None)
    need(
        caught == power["caught"], f"{VERDICT}: the power curve does not say that fidelity {power['caught']} is caught"
    )
    need(power["enough"] == (caught is not None and caught <= ENOUGH), f"{VERDICT}: the power is not judged as agreed")
    return f"fidelity {caught} and above is caught" if caught is not None else "no fidelity is caught reliably"


def _outcome(verdict: dict[str, Any]) -> str:
    power = verdict["power"]
    enough = power is None or power["enough"]
    right = INFRINGEMENT if verdict["p_value"] <= verdict["judged_at"] else NO_EVIDENCE if enough else INCONCLUSIVE
    need(
        verdict["outcome"] == right, f"{VERDICT}: the outcome is {verdict['outcome']!r}, but the numbers say {right!r}"
    )
    return f"{right}: p = {verdict['p_value']:g}, judged at {verdict['judged_at']:g}"
