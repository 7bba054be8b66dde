"""One leaderboard, and verdicts on what the paper's abstract claims, from our own data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean, stdev

from regionmarker.benchmark.tables.paper_tables import MARKS
from regionmarker.benchmark.tables.power import loss, losses
from regionmarker.benchmark.tables.results import (
    LEVEL,
    Results,
    caught,
    clopper_pearson,
    default_settings,
    label,
    scheme,
    share,
    title,
)
from regionmarker.benchmark.tables.table import Table

MOST_LOST = 0.5
"""Points of accuracy that a defense may cost: the first standard of equal utility."""
LEAST_KEPT = 0.93
"""The share of the ten nearest neighbours that a defense must leave: the second."""
UNSURE = 1.0
"""The standard error of a loss that was measured with fewer than three keys: another seed of the classifier alone does
as much."""
RESISTS, HALF = 0.8, 0.2
UNRANKED = {"geomark": "known from its abstract only"}
"""Schemes that a footnote names: what was measured may not be what their authors mean."""


_ONE_SEED = "cannot be told from one seed"

BRIEF = ("rank", "defense", f"power at {LEVEL:g}", "copies caught", "blameless caught")
"""What a narrow screen shows of the leaderboard."""

Standing = tuple[tuple[bool, float], tuple[str, ...]]
"""What a setting is ranked by, and its line of the table."""


def leaderboard(results: Results) -> Iterable[Table]:
    """Yield one row per defense, ranked by power over all attacks among those of equal utility.

    A scheme with several settings takes part with the one that catches most within the standard of utility. Of one
    scheme there is no board.
    """
    best: list[Standing] = []
    results = results.most_common_setup()
    ranked = results.where(lambda row: scheme(row) not in UNRANKED)
    common = _common_attacks(ranked)
    for name in ranked.marked_schemes():
        groups = results.of(name).by(lambda row: label(row["defense"])).items()
        found = [standing for defense, some in groups if (standing := _standing(defense, some, common)) is not None]
        best += [min(found, key=lambda standing: standing[0])] if found else []
    best.sort(key=lambda standing: standing[0])
    rows = tuple((str(place), *cells) for place, (_, cells) in enumerate(best, start=1))
    if len(rows) > 1:
        heads = ("rank", "defense", "equal utility", f"power at {LEVEL:g}", "copies caught", "attacks resisted",
                 "blameless caught", "published rule: copies", "published rule: blameless", "accuracy lost, points",
                 "neighbours kept")  # fmt: skip
        note = (
            "Power: the mean, over the attacks that all met, of the share of copies that the decoy test catches at "
            f"{LEVEL:g}. Resisted: at least {RESISTS:.0%} of the copies are caught. Equal utility: the mark costs at "
            f"most {MOST_LOST:g} points of accuracy on average and leaves at least {LEAST_KEPT:g} of the ten nearest "
            "neighbours, allowing for two standard errors; those that cost more rank behind. In brackets: Clopper and "
            "Pearson's 95 % interval."
        )
        note += "".join(_footnote(name, results.of(name), common) for name in results.schemes() if name in UNRANKED)
        yield Table("leaderboard", "Leaderboard", heads, rows, note)


def _footnote(name: str, rows: Results, attacks: set[str]) -> str:
    met = rows.where(default_settings).where(lambda row: row["attack"] in attacks)
    counted = f"{caught(met.copies.detected())} copies caught, {share(met.innocents.detected())} blameless"
    return f" Not ranked: {title(name)}, {UNRANKED[name]} ({counted})." if met.copies else ""


def _common_attacks(results: Results) -> set[str]:
    """Return the attacks that every scheme was put to: nobody gains by having met fewer."""
    judged = results.where(default_settings).copies.where(error=None)
    sets = [{row["attack"] for row in some} for some in judged.by(lambda row: scheme(row)).values()]
    return set.intersection(*sets) if sets else set()


def _standing(defense: str, rows: Results, attacks: set[str]) -> Standing | None:
    rows = rows.where(lambda row: row["stealer"] == "" or row["attack"] in attacks)
    groups = rows.copies.where(error=None).by("attack")
    if not attacks or set(groups) != attacks:
        return None
    shares = [caught / judged for caught, judged in (some.detected() for some in groups.values())]
    dear = _is_dear(losses(rows)) or _moves_too_much(rows.of_keys("overlap"))
    power = sum(shares) / len(shares)
    resisted = sum(part >= RESISTS for part in shares)
    return (dear, -power), (
        defense, "no" if dear else "yes", f"{power:.2f}", caught(rows.copies.detected()),
        f"{resisted} of {len(shares)}", share(rows.innocents.detected()),
        share(rows.copies.called_copies()), share(rows.innocents.called_copies()),
        loss(rows), rows.mean_sd("overlap", 3, keys=True),
    )  # fmt: skip


def _is_dear(lost: Sequence[float]) -> bool:
    """Return whether a mark costs more than the standard allows, beyond doubt: by two standard errors."""
    if not lost:
        return False
    error = stdev(lost) / len(lost) ** 0.5 if len(lost) >= 3 else UNSURE
    return mean(lost) - 2 * error > MOST_LOST


def _moves_too_much(kept: Sequence[float]) -> bool:
    """Return whether a mark leaves fewer neighbours than the standard wants, beyond doubt."""
    error = stdev(kept) / len(kept) ** 0.5 if len(kept) >= 3 else 0.0
    return bool(kept) and mean(kept) + 2 * error < LEAST_KEPT


def claims(results: Results) -> Iterable[Table]:
    """Yield a verdict on each statement of the abstract, for RegionMarker three times, with its defaults."""
    judged = results.where(default_settings).most_common_setup()
    lines = [line for name in MARKS for line in _claims_of(judged.of(name), title(name))]
    if lines:
        note = (
            f"At a false-positive rate of {LEVEL:g}. Holds: at least {RESISTS:.0%} of the copies are caught; in part: "
            f"more than {HALF:.0%}. Utility holds where at most {MOST_LOST:g} points of accuracy are lost. "
            "One seed tells nothing."
        )
        heads = ("mark", "statement", "verdict", "from", "beside it")
        yield Table("claims", "What the abstract says", heads, tuple(lines), note)


def _claims_of(rows: Results, mark: str) -> Iterable[tuple[str, ...]]:
    statements = {
        "resists CSE": ("cse",),
        "resists paraphrasing": ("paraphrase",),
        "resists dimension perturbation": ("shift", "truncate", "permute", "project"),
    }
    for statement, attacks in statements.items():
        of = rows.attacked(*attacks)
        if of.copies.detected()[1]:
            yield (mark, statement, _resists(of.copies), f"{caught(of.copies.detected())} copies caught",
                   f"{share(of.innocents.detected())} blameless caught")  # fmt: skip
    lost = losses(rows)
    if lost:
        sure = len(lost) >= 3 and mean(lost) <= MOST_LOST
        verdict = "does not hold" if _is_dear(lost) else "holds" if sure else "cannot be told"
        if len({row["seed"] for row in rows}) < 2:
            verdict = _ONE_SEED
        yield (mark, "negligible effect on utility", verdict, f"{loss(rows)} points of accuracy lost",
               f"{rows.mean_sd('overlap', 3, keys=True)} of the ten nearest neighbours kept")  # fmt: skip


def _resists(copies: Results) -> str:
    """Return the verdict; where the interval reaches from one to the other, there is none."""
    low, high = clopper_pearson(copies.detected()) or (0.0, 1.0)
    hits, judged = copies.detected()
    if len({row["seed"] for row in copies}) < 2:
        return _ONE_SEED
    if low <= HALF and high >= RESISTS:
        return f"cannot be told from {judged} copies"
    return "holds" if hits / judged >= RESISTS else "holds in part" if hits / judged > HALF else "does not hold"
