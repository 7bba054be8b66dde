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
from studies.innocents.sabotage import VERIFIERS
from studies.innocents.suspects import ALIGNED, AS_IT_IS, FURTHER, INNOCENTS, THIEF, TURNED

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
        found = [f"{form} p = {row['suspects'][THIEF][form]['p']:.1e}" for form in FORMS]
        parts.append(f"The thief, judged by its own key: {', '.join(found)}.\n")
    with atomic_path(folder / "summary.md") as temporary:
        temporary.write_text("\n".join(parts))
    curves = {form: {name: _values(rows, name, form, "p") for name in INNOCENTS} for form in FORMS}
    _draw(curves, folder / "uniformity.png")


def band(keys: int, level: float, counts: int = 1) -> tuple[int, int]:
    """Return bounds that ``counts`` binomial counts of so many keys all keep with 99 % probability at the least.

    Examples
    --------
    >>> band(1000, 0.05), band(1000, 0.05, counts=32)
    ((33, 69), (27, 77))
    """
    tail = (1 - CONFIDENCE) / counts / 2
    return int(binom.ppf(tail, keys, level)), int(binom.ppf(1 - tail, keys, level))


def _found(rows: Rows, suspect: str, form: str) -> list[dict[str, Any]]:
    return [row["suspects"][suspect][form] for row in rows if form in row["suspects"][suspect]]


def _values(rows: Rows, suspect: str, form: str, field: str) -> Doubles:
    return np.array([one[field] for one in _found(rows, suspect, form) if field in one], dtype=np.float64)


def _innocents(rows: Rows) -> str:
    lines, counts = [], 2 * len(FORMS) * (len(INNOCENTS) + 2)  # at two levels
    others = [name for name in rows[0]["suspects"] if name not in (*INNOCENTS, FURTHER, THIEF)]
    for name in (*INNOCENTS, FURTHER, *others, THIEF):
        for form in FORMS:
            p, paper = _values(rows, name, form, "p"), _values(rows, name, form, "paper")
            matched = sum(one["axes"] == "matched" for one in _found(rows, name, form))
            lines.append(
                [
                    name,
                    form,
                    f"{len(p)}, {matched}",
                    *(_counted(p, level, counts) for level in (LOOSE, LEVEL)),
                    f"{kstest(p, 'uniform').pvalue:.2f}",
                    f"{_values(rows, name, form, 'redrawn_loose').mean() / REDRAWS:.5f}",
                    f"{1000 * _values(rows, name, form, 'redrawn').mean() / REDRAWS:.3f}e-3",
                    f"{1000 * _values(rows, name, form, 'exactly').mean():.3f}e-3",
                    f"{int(paper.sum())} of {len(paper)}",
                ]
            )
    return f"{markdown(HEAD, lines)}\n{_together(rows, counts)}"


def _counted(p: Doubles, level: float, counts: int) -> str:
    low, high = band(len(p), level, counts)
    return f"{(p <= level).sum()} ({low} to {high})"


def _together(rows: Rows, counts: int) -> str:
    """Say what the bands are, and what all innocents are together."""
    p = np.concatenate([_values(rows, name, form, "p") for name in INNOCENTS for form in FORMS])
    deviation = np.sqrt(LEVEL / (REDRAWS * len(rows))) * 1000
    same = [
        abs(forms[AS_IT_IS]["p"] - forms[TURNED]["p"])
        for row in rows for forms in row["suspects"].values() if AS_IT_IS in forms
    ]  # fmt: skip
    return (
        f"\nAll {counts} counts lie in their bands with {CONFIDENCE:.0%} probability. All {len(p)} judgements of the "
        f"{len(INNOCENTS)} encoders together: {(p <= LOOSE).sum()} at 0.05 ({(p <= LOOSE).mean():.2%}), "
        f"{(p <= LEVEL).sum()} at 1e-3 ({LEVEL * len(p):.1f} expected); the smallest p is {p.min():.1e}. Redraws: "
        f"{REDRAWS * len(rows):.0e} tuples per line, standard deviation {deviation:.3f}e-3. Judged as they "
        f"are, {len(same)} verdicts on strangers differ from the turned ones by {max(same, default=np.nan):.0e}.\n"
    )


def _sabotaged(rows: Rows) -> str:
    titles = [*VERIFIERS, "stop when small", "marked as clean", "none: the honest one"]
    counts, lines = 2 * len(FORMS) * len(titles), []
    for title in titles:
        for form in FORMS:
            lines.append([title, form, *_failures(*_of_verifier(rows, title, form), counts)])
    return markdown(SABOTAGED_HEAD, lines) + "\n"


def _of_verifier(rows: Rows, title: str, form: str) -> tuple[Doubles, Doubles]:
    """Return a verifier's p-values, and how many redrawn tuples of each key have p at or below 1e-3."""
    if title == "marked as clean":
        return np.array([row["misled"][form] for row in rows if row["misled"]]), np.empty(0)
    if title.startswith("none"):
        found = [row["suspects"][row["sabotaged"]["suspect"]][form] for row in rows]
    else:
        found = [row["sabotaged"][form][title] for row in rows if title in row["sabotaged"][form]]
    redrawn = np.array([one["redrawn"] for one in found if "redrawn" in one])
    return np.array([one["p"] for one in found]), redrawn


def _failures(p: Doubles, redrawn: Doubles, counts: int) -> list[str]:
    """Return the cells of a line that says by which tests a verifier fails: counts, uniformity, redraws."""
    uniform = float(kstest(p, "uniform").pvalue)
    tuples = max(REDRAWS * len(redrawn), 1)
    rate, allowed = redrawn.sum() / tuples, 2.576 * np.sqrt(LEVEL / tuples)  # 99 %
    failed = [
        *(f"{level:g}" for level in (LOOSE, LEVEL) if outside(p, level, counts)),
        *(["uniformity"] if uniform < KS_LEVEL else []),
        *(["redraws"] if rate > LEVEL + allowed else []),
    ]
    shown = [_counted(p, level, counts) for level in (LOOSE, LEVEL)]
    redraws = f"{1000 * rate:.3f}e-3" if len(redrawn) else ""
    return [f"{len(p)}", *shown, f"{uniform:.1e}", redraws, ", ".join(failed) or "no"]


def outside(p: Doubles, level: float, counts: int = 1) -> bool:
    """Say whether p-values are at or below a level too often or too rarely."""
    low, high = band(len(p), level, counts)
    return not low <= int((p <= level).sum()) <= high


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
