"""The tables and the figure of the study, made from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, kstest

from regionmarker.files import atomic_path
from studies._study import markdown
from studies.innocents.judging import LEVEL, LOOSE, REDRAWS
from studies.innocents.suspects import ALIGNED, AS_IT_IS, INNOCENTS, THIEF, TURNED

Rows = Sequence[dict[str, Any]]
Doubles = NDArray[np.float64]
FORMS = (ALIGNED, TURNED)
CONFIDENCE = 0.99
"""With which probability all counts of a table lie in their bands where every verdict is right."""
KS_LEVEL = 0.01
HEAD = (
    "suspect", "form", "keys, axes matched", "p ≤ 0.05", "p ≤ 1e-3", "KS p", "redrawn: p ≤ 0.05", "redrawn: p ≤ 1e-3",
    "exactly", "paper's rule says copy",
)  # fmt: skip
SABOTAGED_HEAD = ("verifier", "form", "keys", "p ≤ 0.05", "p ≤ 1e-3", "KS p", "redrawn: p ≤ 1e-3", "fails")


def write_summary(rows: Rows, control: Rows, folder: Path) -> None:
    """Write `summary.md` and `uniformity.png`; ``control`` is the row of the thief's own key."""
    parts = [_innocents(rows), _sabotaged(rows), _traces(rows)]
    for row in control:
        found = {form: row["suspects"][THIEF][form]["p"] for form in FORMS}
        parts.append(f"The thief, judged by its own key: {', '.join(f'{form} p = {p:.1e}' for form, p in found.items())}.\n")
    with atomic_path(folder / "summary.md") as temporary:
        temporary.write_text("\n".join(parts))
    curves = {form: {name: _values(rows, name, form, "p") for name in INNOCENTS} for form in FORMS}
    _draw(curves, folder / "uniformity.png")


def band(keys: int, level: float, counts: int = 1) -> tuple[int, int]:
    """Return bounds that ``counts`` binomial counts of so many keys all keep with 99 % probability at the least.

    Examples
    --------
    >>> band(1000, 0.05), band(1000, 0.05, counts=32)
    ((33, 69), (27, 76))
    """
    tail = (1 - CONFIDENCE) / counts / 2
    return int(binom.ppf(tail, keys, level)), int(binom.ppf(1 - tail, keys, level))


def _values(rows: Rows, suspect: str, form: str, field: str) -> Doubles:
    return np.array([row["suspects"][suspect][form].get(field, np.nan) for row in rows], dtype=np.float64)


def _innocents(rows: Rows) -> str:
    lines = []
    for name in (*INNOCENTS, THIEF):
        for form in FORMS:
            p = _values(rows, name, form, "p")
            matched = sum(row["suspects"][name][form]["axes"] == "matched" for row in rows)
            paper = _values(rows, name, form, "paper")
            lines.append(
                [
                    name,
                    form,
                    f"{len(rows)}, {matched}",
                    f"{(p <= LOOSE).sum()}",
                    f"{(p <= LEVEL).sum()}",
                    f"{kstest(p, 'uniform').pvalue:.2f}",
                    f"{_values(rows, name, form, 'redrawn_loose').mean() / REDRAWS:.5f}",
                    f"{1000 * _values(rows, name, form, 'redrawn').mean() / REDRAWS:.3f}e-3",
                    f"{1000 * _values(rows, name, form, 'exactly').mean():.3f}e-3",
                    f"{np.nanmean(paper):.0%}" if np.isfinite(paper).any() else "",
                ]
            )
    return f"{markdown(HEAD, lines)}\n{_together(rows, len(lines))}"


def _together(rows: Rows, lines: int) -> str:
    """Say what the bands are, and what all innocents are together."""
    counts = 2 * lines  # at two levels
    loose, strict = (band(len(rows), level, counts) for level in (LOOSE, LEVEL))
    p = np.concatenate([_values(rows, name, form, "p") for name in INNOCENTS for form in FORMS])
    deviation = np.sqrt(LEVEL / (REDRAWS * len(rows))) * 1000
    same = [
        abs(forms[AS_IT_IS]["p"] - forms[TURNED]["p"])
        for row in rows for forms in row["suspects"].values() if AS_IT_IS in forms
    ]  # fmt: skip
    return (
        f"\nAll {counts} counts lie in their bands with {CONFIDENCE:.0%} probability: {loose[0]} to {loose[1]} at 0.05, "
        f"{strict[0]} to {strict[1]} at 1e-3. All {len(p)} judgements of innocents together: {(p <= LOOSE).sum()} at "
        f"0.05 ({(p <= LOOSE).mean():.2%}), {(p <= LEVEL).sum()} at 1e-3 ({LEVEL * len(p):.1f} expected); the smallest "
        f"p is {p.min():.1e}. Redraws: {REDRAWS * len(rows):.0e} tuples per line, standard deviation "
        f"{deviation:.3f}e-3. Judged as they are, {len(same)} verdicts on strangers differ from the turned ones by "
        f"{max(same, default=np.nan):.0e} at the most.\n"
    )


def _sabotaged(rows: Rows) -> str:
    lines, titles = [], [title for title in rows[0]["sabotaged"][TURNED]] if rows else []
    counts = 2 * len(FORMS) * (len(titles) + 2)
    for title in (*titles, "marked as clean", "none: the honest one"):
        for form in FORMS:
            p, redrawn = _of_verifier(rows, title, form)
            lines.append([title, form, *failures(p, redrawn, counts)])
    return markdown(SABOTAGED_HEAD, lines) + "\n"


def _of_verifier(rows: Rows, title: str, form: str) -> tuple[Doubles, float | None]:
    """Return a verifier's p-values, and the share of redrawn tuples with p at or below 1e-3 where there are any."""
    if title == "marked as clean":
        return np.array([row["misled"][form] for row in rows if row["misled"]]), None
    if title.startswith("none"):
        found = [row["suspects"][row["sabotaged"]["suspect"]][form] for row in rows]
    else:
        found = [row["sabotaged"][form][title] for row in rows]
    redrawn = [one["redrawn"] for one in found if "redrawn" in one]
    return np.array([one["p"] for one in found]), float(np.mean(redrawn)) / REDRAWS if redrawn else None


def failures(p: Doubles, redrawn: float | None, counts: int) -> list[str]:
    """Return the cells of a line that says by which tests a verifier fails: counts, uniformity, redraws."""
    at = {level: int((p <= level).sum()) for level in (LOOSE, LEVEL)}
    uniform = float(kstest(p, "uniform").pvalue)
    allowed = 2.576 * np.sqrt(LEVEL / (REDRAWS * len(p)))  # 99 %
    bands = {level: band(len(p), level, counts) for level in at}
    failed = [
        *([f"{level:g}" for level in at if not bands[level][0] <= at[level] <= bands[level][1]]),
        *(["uniformity"] if uniform < KS_LEVEL else []),
        *(["redraws"] if redrawn is not None and redrawn > LEVEL + allowed else []),
    ]
    shown = [f"{at[level]} ({bands[level][0]} to {bands[level][1]})" for level in at]
    rate = "" if redrawn is None else f"{1000 * redrawn:.3f}e-3"
    return [f"{len(p)}", *shown, f"{uniform:.1e}", rate, ", ".join(failed) or "no"]


def _traces(rows: Rows) -> str:
    corrected = np.array([row["trace"]["holm"] for row in rows])
    tenants = rows[0]["setting"]["tenants"] if rows else 0
    return (
        f"Tracing {tenants} tenants of whom none leaked, one innocent per key: someone is accused in "
        f"{(corrected <= LOOSE).sum()} of {len(rows)} runs at 0.05 (more than {band(len(rows), LOOSE)[1]} would be too "
        f"many), in {(corrected <= LEVEL).sum()} at 1e-3.\n"
    )


def _draw(curves: dict[str, dict[str, Doubles]], path: Path) -> None:
    """Draw how far each suspect's p-values are from uniform, with the band that holds 99 % of uniform samples."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, len(curves), figsize=(9.0, 3.8), sharey=True, layout="constrained")
    for axes, (form, p_values) in zip(both, curves.items(), strict=True):
        _draw_form(axes, form, p_values)
    both[0].set_ylabel("share of keys at or below p, less p")
    figure.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", fontsize=7, ncols=3)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    plt.close(figure)


def _draw_form(axes: Any, form: str, p_values: dict[str, Doubles]) -> None:
    grid = np.linspace(0.0, 1.0, 201)
    for name, p in p_values.items():
        axes.plot(grid, np.searchsorted(np.sort(p), grid, side="right") / len(p) - grid, label=name, linewidth=1)
    limit = 1.628 / np.sqrt(_least(p_values.values()))  # Kolmogorov's 99 % point
    axes.axhspan(-limit, limit, color="0.9", label="99 % of uniform samples lie inside")
    axes.set(xlabel="p", title=form, xlim=(0, 1), ylim=(-1.6 * limit, 1.6 * limit))


def _least(samples: Iterable[Doubles]) -> int:
    return min(len(sample) for sample in samples)
