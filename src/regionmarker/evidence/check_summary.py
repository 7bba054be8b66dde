"""What can be checked without a single text: the commitment, the total, the null distribution, p and the outcome."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from math import isclose
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regionmarker.evidence.bundle import MANIFEST, Bundle, need
from regionmarker.evidence.disclosure import OPENED
from regionmarker.evidence.fields import TRANSCRIPT
from regionmarker.evidence.score_forms import CLOSE, SCORES, VERDICT, form_of
from regionmarker.evidence.traces import TRACES, check_correction, stored_traces
from regionmarker.keys.commitment import COMMITMENT, OpenedParts
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.ledger import START, chained, correction, verdict_entries
from regionmarker.verification.paper_statistics import CANNOT_SAY, RegionStatistics, aggregate
from regionmarker.verification.power import ENOUGH, WANTED, reliably_caught
from regionmarker.verification.verdict import HONEST_DRAW, OWN_SALT, cautions, outcome_of, utc

if TYPE_CHECKING:
    from regionmarker.evidence.statement import Draw

_CLOCKS = timedelta(minutes=5)  # how far those of two machines may differ


OK, FAILED, ABSENT, UNEXPECTED = "ok", "failed", "absent", "unexpected"


class Finding(NamedTuple):
    """What a check found where that is not simply in order."""

    status: str
    detail: str
    fails: bool = False


class CheckRow(NamedTuple):
    """One check of a level's table."""

    name: str
    file: str  # the file to blame where a value is missing or is nonsense
    look: Callable[[Bundle], str | Finding]  # says what was found, or complains by an InputError
    optional: bool = False  # made only where the bundle has the file
    needed: bool = False  # where it fails, the checks after it in its table are not made


def _commitment(bundle: Bundle) -> str:
    verdict, document, disclosure = bundle.json(VERDICT), bundle.json(COMMITMENT), bundle.disclosure
    opened = OpenedParts.read(document, bundle.files, OPENED[disclosure])
    need(document["key_id"] == verdict["key_id"], f"{COMMITMENT} and {VERDICT} name different keys")
    need(verdict["disclosure"] == disclosure, f"{VERDICT} names another disclosure than {MANIFEST}")
    need(
        opened.statistic == verdict["statistic"],
        f"{VERDICT}: the statistic {verdict['statistic']} was not committed to",
    )
    level = verdict["level"]
    need(level == opened.level, f"{VERDICT}: the level is {level:g}, but {opened.level:g} was committed to")
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


def _axes(bundle: Bundle) -> str:
    """See that the carriers weigh what they weigh for such axes."""
    verdict = bundle.json(VERDICT)
    axes = verdict.get("axes")  # bundles of the first format know none
    form_of(verdict).check_axes(axes, bundle.json(SCORES))
    power = verdict["power"]
    need(power is None or power.get("axes") == axes, f"{VERDICT}: the power is that of other axes than the suspect's")
    return "decoy-1 does not ask for them" if axes is None else f"{axes}; the weights are those for it"


def _looks(bundle: Bundle) -> str:
    """See that the level is paid for: by the looks with this key, and by the keys of the ring that looked."""
    verdict = bundle.json(VERDICT)
    level, look, judged_at = float(verdict["level"]), int(verdict["look"]), float(verdict["judged_at"])
    others = verdict.get("other_keys", [])  # bundles of older versions have none
    keys = 1 + len(others)
    looks = (look, *(int(other["look"]) for other in others))
    need(0 < level < 1 and min(looks) >= 1, f"{VERDICT}: the level {level:g} or the look {min(looks)} is impossible")
    counted = _looks_are_counted(verdict)
    corrections = [correction(number, verdict["statistic"]) if counted else 1.0 for number in looks]
    right = level / (corrections[0] * keys)
    ring = f" with {keys} keys" if others else ""
    need(
        isclose(judged_at, right, rel_tol=CLOSE),
        f"{VERDICT}: look {look} at level {level:g}{ring} is judged at {right:g}, not at {judged_at:g}",
    )
    _other_keys(verdict, others, corrections, level)
    return f"look {look} at level {level:g}{ring} is judged at {judged_at:g}" + ("" if counted else "; looks uncounted")


def _looks_are_counted(verdict: dict[str, Any]) -> bool:
    """Whether the level was paid for looks; the first look that nobody counted is judged at the whole level."""
    whole = float(verdict["level"]) / (1 + len(verdict.get("other_keys", [])))
    return int(verdict["look"]) != 1 or not isclose(float(verdict["judged_at"]), whole, rel_tol=CLOSE)


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


def _paper(bundle: Bundle) -> str:
    """See that the paper's numbers are the best over the regions, and its decision follows from them."""
    verdict = bundle.json(VERDICT)
    stated, count = verdict["paper"], len(bundle.json(SCORES)["lists"])
    need(stated["cannot_say"] == CANNOT_SAY, f"{VERDICT}: the warning beside the paper's statistics was changed")
    need(
        len(stated["regions"]) == count,
        f"{VERDICT}: the paper's statistics are not of {count} {form_of(verdict).group}s",
    )
    found = aggregate([RegionStatistics(**row) for row in stated["regions"]], target=stated["target"])
    for name in ("delta_cos", "delta_l2", "p_value", "copy"):
        need(getattr(found, name) == stated[name], f"{VERDICT}: the paper's {name} is not the best of the regions")
    need(stated["target"] in ("suspect", "stored", "predicted"), f"{VERDICT}: the paper's target is of no known kind")
    return "the best of all regions, and the decision, follow from the statistics of each"


def cautions_of(bundle: Bundle, draw: str | None = None) -> tuple[str, ...]:
    """Return the cautions that belong to a bundle, whatever it says itself."""
    verdict = bundle.json(VERDICT)
    return cautions(
        draw=draw or (OWN_SALT if bundle.json(COMMITMENT)["salt"] else HONEST_DRAW),
        asked=verdict["asked"]["queries"],
        missing=verdict["missing"],
        p_value=verdict["p_value"],
        own_probes=verdict["probes"] == "own",
        unasked=verdict.get("unasked", 0),
        axes=verdict.get("axes"),
        times=[row["time"] for row in bundle.lines(TRANSCRIPT)],
        judged=datetime.fromisoformat(verdict["created"]),
        power_is_enough=verdict["power"] is None or verdict["power"]["enough"],
        other_keys=len(verdict["other_keys"]),
    )


def check_cautions(bundle: Bundle, draw: Draw | None) -> str:
    """See that no caution was left out or added."""
    stated = bundle.json(VERDICT)["notes"]
    if bundle.is_first_format:
        return "those of the first format are others: read the ones below"
    right = cautions_of(bundle, None if draw is None else draw.claimed)
    need(tuple(stated) == right, f"{VERDICT}: the cautions (notes) are not those that belong to this verdict")
    return f"all {len(right)} that belong to this verdict are there"


def _dates(bundle: Bundle) -> str:
    """See that what was asked came before what was judged, in the order of the transcript."""
    rows, created = bundle.lines(TRANSCRIPT), bundle.json(VERDICT)["created"]
    times = [row["time"] for row in rows]
    need([row["number"] for row in rows] == list(range(1, len(rows) + 1)), f"{TRANSCRIPT} is not numbered from 1")
    late = [time for time in times if utc(time) > utc(created) + _CLOCKS]
    need(not late, f"{VERDICT}: it was judged at {created}, before the last answer came")
    return f"{len(rows)} exchanges, all before the verdict of {created}"


def _ledger(bundle: Bundle) -> str:
    """See that the ledger's head is that of a ledger which this verdict was entered in."""
    verdict = bundle.json(VERDICT)
    stated = verdict.get("ledger")  # bundles of older versions have none
    right = bundle.is_first_format or (stated is not None) == _looks_are_counted(verdict)
    need(right, f"{VERDICT}: looks are paid for where a ledger counts them, and only there")
    if stated is None:
        return "none: how often was looked before is the claimant's word"
    entries = verdict_entries(verdict)
    _, head = chained(stated["before"], entries)
    need(head == stated["head"], f"{VERDICT}: the ledger's head does not follow from this verdict")
    earlier = stated["entries"] - len(entries)
    need(earlier >= 0, f"{VERDICT}: the ledger has fewer lines than this verdict alone")
    need((earlier == 0) == (stated["before"] == START), f"{VERDICT}: the ledger does not begin where ledgers begin")
    looks = sum(int(one["look"]) - 1 for one in (verdict, *verdict["other_keys"]))
    need(looks <= earlier, f"{VERDICT}: the ledger has {earlier} earlier lines, but {looks} earlier looks")
    return (
        f"this verdict ends at line {stated['entries']} of the ledger, with the head {head[:16]}: ask the claimant for "
        "the ledger (regionmarker evidence ledger)"
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
    need(power["wanted"] == WANTED, f"{VERDICT}: the power that is wanted is not {WANTED}")
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


def _tenants(bundle: Bundle) -> str:
    level = float(bundle.json(VERDICT)["level"])
    return check_correction(stored_traces(bundle, level), level)


CHECKS = (
    CheckRow("commitment", COMMITMENT, _commitment),
    CheckRow("total", SCORES, _total),
    CheckRow("null distribution", SCORES, _null),
    CheckRow("p-value", VERDICT, _p_value),
    CheckRow("axes", VERDICT, _axes),
    CheckRow("looks", VERDICT, _looks),
    CheckRow("ledger", VERDICT, _ledger),
    CheckRow("power", VERDICT, _power),
    CheckRow("outcome", VERDICT, _outcome),
    CheckRow("dates", TRANSCRIPT, _dates),
    CheckRow("the paper's totals", VERDICT, _paper),
    CheckRow("tenants", TRACES, _tenants, optional=True),
)
"""The checks of a summary."""
