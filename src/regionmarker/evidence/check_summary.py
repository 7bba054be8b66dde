"""What can be checked without a single text: the commitment, the total, the null distribution, p and the outcome."""

from __future__ import annotations

from collections.abc import Callable
from math import isclose
from typing import Any, NamedTuple

import numpy as np

from regionmarker.evidence.bundle import MANIFEST, Bundle, need
from regionmarker.evidence.disclosure import OPENED
from regionmarker.evidence.score_forms import CLOSE, SCORES, VERDICT, form_of
from regionmarker.keys.commitment import COMMITMENT, OpenedParts
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.ledger import correction
from regionmarker.verification.power import ENOUGH, reliably_caught
from regionmarker.verification.verdict import outcome_of


class CheckRow(NamedTuple):
    """One check of a level's table."""

    name: str
    file: str  # the file to blame where a value is missing or is nonsense
    look: Callable[[Bundle], str]  # says what was found, or complains by an InputError
    optional: bool = False  # made only where the bundle has the file
    needed: bool = False  # where it fails, the checks after it in its table are not made


def _commitment(bundle: Bundle) -> str:
    verdict, document, disclosure = bundle.json(VERDICT), bundle.json(COMMITMENT), bundle.disclosure
    opened = OpenedParts.read(document, bundle.files, OPENED[disclosure])
    need(document["key_id"] == verdict["key_id"], f"{COMMITMENT} and {VERDICT} name different keys")
    need(verdict["disclosure"] == disclosure, f"{VERDICT} is of another level of disclosure than {MANIFEST}")
    need(
        opened.statistic == verdict["statistic"],
        f"{VERDICT}: the statistic {verdict['statistic']} was not committed to",
    )
    if verdict["level"] > opened.level:
        return f"holds, but the level {verdict['level']:g} is laxer than the committed {opened.level:g}"
    return f"the leaves make it; {', '.join(sorted(opened.contents))} opened"


def _total(bundle: Bundle) -> str:
    verdict, scores = bundle.json(VERDICT), bundle.json(SCORES)
    form = form_of(verdict)
    lists, observed = form.lists(scores), scores["observed"]
    need(len(observed) == len(lists), f"{SCORES}: there is not one observed score per {form.group}")
    if None in observed:
        need(verdict["total"] is None, f"{VERDICT}: U is {verdict['total']}, but a target has no answer")
        return "a target has no answer, so there is no U"
    for row, score in zip(lists, observed, strict=True):
        need(score in row, f"{SCORES}: an observed score is not among its {form.group}'s scores")
    total, stated = sum(observed) * form.step, verdict["total"]
    need(total == stated, f"{VERDICT}: U is {stated:g}, but the observed scores add up to {total:g}")
    return f"U = {total:g} is the sum of {len(observed)} observed scores"


def _null(bundle: Bundle) -> str:
    return form_of(bundle.json(VERDICT)).check_null(bundle.json(SCORES))


def _p_value(bundle: Bundle) -> str:
    verdict = bundle.json(VERDICT)
    return form_of(verdict).check_p_value(verdict, bundle.json(SCORES))


def _looks(bundle: Bundle) -> str:
    """See that the level is paid for: by the looks with this key, and by the keys of the ring that looked."""
    verdict = bundle.json(VERDICT)
    level, look, judged_at = float(verdict["level"]), int(verdict["look"]), float(verdict["judged_at"])
    others = verdict.get("other_keys", [])  # bundles of older versions have none
    keys = 1 + len(others)
    need(0 < level < 1 and look >= 1, f"{VERDICT}: the level {level:g} or the look {look} is impossible")
    counted = look != 1 or not isclose(judged_at, level / keys, rel_tol=CLOSE)
    looks = (look, *(int(other["look"]) for other in others))
    corrections = [correction(number, verdict["statistic"]) if counted else 1.0 for number in looks]
    right = level / (corrections[0] * keys)
    ring = f" with {keys} keys" if others else ""
    need(
        isclose(judged_at, right, rel_tol=CLOSE),
        f"{VERDICT}: look {look} at level {level:g}{ring} is judged at {right:g}, not at {judged_at:g}",
    )
    _other_keys(verdict, others, corrections, level)
    return f"look {look} at level {level:g}{ring} is judged at {judged_at:g}" + ("" if counted else "; looks uncounted")


def _other_keys(verdict: dict[str, Any], others: list[dict[str, Any]], corrections: list[float], level: float) -> None:
    """See that the strongest finding leads, and that the others are corrected (Holm)."""
    p_values = [float(one["p_value"]) for one in (verdict, *others)]
    paid = np.minimum(np.array(p_values) * corrections, 1.0)
    need(bool(paid[0] <= paid.min() * (1 + CLOSE)), f"{VERDICT}: another key of the ring has a stronger finding")
    for other, corrected in zip(others, holm(paid)[1:], strict=True):
        need(
            isclose(other["holm"], corrected, rel_tol=CLOSE) and other["infringement"] == (other["holm"] <= level),
            f"{VERDICT}: the correction of key {other['key_id']} is not what the p-values of the ring give",
        )


def _power(bundle: Bundle) -> str:
    verdict = bundle.json(VERDICT)
    power = verdict["power"]
    if power is None:
        return "not estimated"
    fidelities, detected = power["fidelities"], power["detected"]
    low, high = (power.get(end) or detected for end in ("low", "high"))  # bundles of 0.1.0 have no interval
    rows = list(zip(low, detected, high, strict=True))
    need(
        len(rows) == len(fidelities) and all(0 <= least <= share <= most <= 1 for least, share, most in rows),
        f"{VERDICT}: a share of the power curve does not lie in its interval",
    )
    caught = reliably_caught(fidelities, low, power["wanted"])
    need(
        caught == power["caught"], f"{VERDICT}: the power curve does not say that fidelity {power['caught']} is caught"
    )
    need(power["enough"] == (caught is not None and caught <= ENOUGH), f"{VERDICT}: the power is not judged as agreed")
    return f"fidelity {caught} and above is caught" if caught is not None else "no fidelity is caught reliably"


def _outcome(bundle: Bundle) -> str:
    verdict = bundle.json(VERDICT)
    power = verdict["power"]
    right = outcome_of(verdict["p_value"], verdict["judged_at"], enough=power is None or power["enough"])
    stated = verdict["outcome"]
    need(stated == right, f"{VERDICT}: the outcome is {stated!r}, but the numbers say {right!r}")
    return f"{right}: p = {verdict['p_value']:g}, judged at {verdict['judged_at']:g}"


CHECKS = (
    CheckRow("commitment", COMMITMENT, _commitment),
    CheckRow("total", SCORES, _total),
    CheckRow("null distribution", SCORES, _null),
    CheckRow("p-value", VERDICT, _p_value),
    CheckRow("looks", VERDICT, _looks),
    CheckRow("power", VERDICT, _power),
    CheckRow("outcome", VERDICT, _outcome),
)
"""The checks of a summary."""
