"""One leaderboard, and verdicts on what the paper's abstract claims, from our own data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean, stdev

from regionmarker.benchmark.tables.power import losses
from regionmarker.benchmark.tables.results import LEVEL, Results, default_settings, label, mean_sd, scheme, share
from regionmarker.benchmark.tables.table import Table

MOST_LOST = 0.5
"""Points of accuracy that a defense may cost: the standard of equal utility."""
UNSURE = 1.0
"""The standard error of a loss that was measured with fewer than three keys: another seed of the classifier alone does
as much."""
RESISTS, HALF = 0.8, 0.2


Standing = tuple[tuple[bool, float], tuple[str, ...]]
"""What a setting is ranked by, and its line of the table."""


def leaderboard(results: Results) -> Iterable[Table]:
    """Yield one row per defense, ranked by power over all attacks among those of equal utility.

    A scheme with several settings takes part with the one that catches most within the standard of utility. Of one
    scheme there is no board.
    """
    best: list[Standing] = []
    results = results.most_common_setup()
    common = _common_attacks(results)
    for name in results.marked_schemes():
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
            f"most {MOST_LOST:g} points of accuracy on average, allowing for two standard errors; those that cost more "
            "rank behind."
        )
        yield Table("leaderboard", "Leaderboard", heads, rows, note)


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
    lost = losses(rows)
    dear = _is_dear(lost)
    power = sum(shares) / len(shares)
    resisted = sum(part >= RESISTS for part in shares)
    return (dear, -power), (
        defense, "no" if dear else "yes", f"{power:.2f}", share(rows.copies.detected()), f"{resisted} of {len(shares)}",
        share(rows.innocents.detected()), share(rows.copies.called_copies()), share(rows.innocents.called_copies()),
        mean_sd(lost), mean_sd(rows.values("overlap"), 3),
    )  # fmt: skip


def _is_dear(lost: Sequence[float]) -> bool:
    """Return whether a mark costs more than the standard allows, beyond doubt: by two standard errors."""
    if not lost:
        return False
    error = stdev(lost) / len(lost) ** 0.5 if len(lost) >= 3 else UNSURE
    return mean(lost) - 2 * error > MOST_LOST


def claims(results: Results) -> Iterable[Table]:
    """Yield a verdict on each statement of the abstract, for RegionMarker with its defaults."""
    rows = results.where(default_settings).most_common_setup().of("regionmarker")
    statements = {
        "resists CSE": ("cse",),
        "resists paraphrasing": ("paraphrase",),
        "resists dimension perturbation": ("shift", "truncate", "permute", "project"),
    }
    lines = []
    for statement, attacks in statements.items():
        of = rows.attacked(*attacks)
        caught, judged = of.copies.detected()
        if judged:
            part = caught / judged
            verdict = "holds" if part >= RESISTS else "holds in part" if part > HALF else "does not hold"
            lines.append((statement, verdict, f"{share((caught, judged))} copies caught",
                          f"{share(of.innocents.detected())} blameless caught"))  # fmt: skip
    lost = losses(rows)
    if lost:
        kept = mean_sd(rows.values("overlap"), 3)
        sure = len(lost) >= 3 and mean(lost) <= MOST_LOST
        verdict = "does not hold" if _is_dear(lost) else "holds" if sure else f"cannot be told from {len(lost)} keys"
        lines.append(("negligible effect on utility", verdict, f"{mean_sd(lost)} points of accuracy lost",
                      f"{kept} of the ten nearest neighbours kept"))  # fmt: skip
    if lines:
        note = (
            f"At a false-positive rate of {LEVEL:g}. Holds: at least {RESISTS:.0%} of the copies are caught; in part: "
            f"more than {HALF:.0%}. Utility holds where at most {MOST_LOST:g} points of accuracy are lost."
        )
        heads = ("statement", "verdict", "from", "beside it")
        yield Table("claims", "What the abstract says", heads, tuple(lines), note)
