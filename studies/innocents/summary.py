"""The tables and the figure of the study, made from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, kstest

from regionmarker.files import atomic_path
from studies._study import markdown
from studies.innocents.judging import LEVEL, MISLED, REDRAWS
from studies.innocents.suspects import THIEF

Rows = Sequence[dict[str, Any]]
LOOSE = 0.05
KS_LEVEL = 0.01
HEAD = (
    "suspect",
    "keys",
    "p ≤ 0.05",
    "99 % band",
    "p ≤ 1e-3",
    "uniform: KS p",
    "redrawn: p ≤ 1e-3",
    "exactly",
    "paper",
)
SABOTAGED_HEAD = (
    "verifier",
    "suspects",
    "keys",
    "p ≤ 0.05",
    "99 % band",
    "p ≤ 1e-3",
    "KS p",
    "redrawn: p ≤ 1e-3",
    "fails",
)


def write_summary(rows: Rows, control: Rows, folder: Path) -> None:
    """Write `summary.md` and `uniformity.png`; ``control`` is the row of the thief's own key."""
    parts = [_innocents(rows), _sabotaged(rows), _traces(rows)]
    parts += [f"The thief, judged by its own key: p = {row['suspects'][THIEF]['p']:.1e}.\n" for row in control]
    with atomic_path(folder / "summary.md") as temporary:
        temporary.write_text("\n".join(parts))
    _draw({name: _values(rows, name, "p") for name in _names(rows)}, folder / "uniformity.png")


def _names(rows: Rows) -> list[str]:
    """Return the innocents that were judged."""
    return [name for name in rows[0]["suspects"] if name != THIEF]


def _values(rows: Rows, suspect: str, field: str) -> NDArray[np.float64]:
    return np.array([row["suspects"][suspect][field] for row in rows], dtype=np.float64)


def band(keys: int, level: float = LOOSE) -> tuple[int, int]:
    """Return the counts that hold 99 % of the binomial distribution in their midst."""
    return int(binom.ppf(0.005, keys, level)), int(binom.ppf(0.995, keys, level))


def _innocents(rows: Rows) -> str:
    lines = []
    for name in (*_names(rows), THIEF):
        p = _values(rows, name, "p")
        lowest, highest = band(len(rows))
        lines.append(
            [
                name,
                f"{len(rows)}",
                f"{(p <= LOOSE).sum()}",
                f"{lowest} to {highest}",
                f"{(p <= LEVEL).sum()}",
                f"{kstest(p, 'uniform').pvalue:.2f}",
                f"{_rate(rows, name, 'redrawn'):.3f}e-3",
                f"{1000 * _values(rows, name, 'attained').mean():.3f}e-3",
                f"{_values(rows, name, 'paper_copy').mean():.1%}",
            ]
        )
    p = np.concatenate([_values(rows, name, "p") for name in _names(rows)])
    deviation = np.sqrt(LEVEL / (REDRAWS * len(rows))) * 1000
    together = (
        f"\nAll {len(p)} judgements of innocents together: {(p <= LOOSE).sum()} at 0.05 ({(p <= LOOSE).mean():.2%}), "
        f"{(p <= LEVEL).sum()} at 1e-3 ({LEVEL * len(p):.1f} expected); the smallest p is {p.min():.1e}. "
        f"Redraws: {REDRAWS * len(rows):.0e} tuples per suspect, standard deviation {deviation:.3f}e-3.\n"
    )
    return f"{markdown(HEAD, lines)}\n{together}"


def _rate(rows: Rows, suspect: str, field: str) -> float:
    """Return how often redrawn targets were convicted, in thousandths."""
    return float(_values(rows, suspect, field).sum() / (REDRAWS * len(rows)) * 1000)


def _sabotaged(rows: Rows) -> str:
    lines = []
    for title, p_field, drawn in (("far targets", "far_p", "far_redrawn"), ("best of two", "two_p", "two_redrawn")):
        for name in _names(rows):
            p = _values(rows, name, p_field)
            lines.append(_verdict(title, name, p, _rate(rows, name, drawn), rows))
    p = np.array([row["misled"] for row in rows if row["misled"] is not None])
    lines.append(_verdict("marked encoder", MISLED, p, None, rows))
    return markdown(SABOTAGED_HEAD, lines) + "\n"


def _verdict(title: str, name: str, p: NDArray[np.float64], rate: float | None, rows: Rows) -> list[str]:
    """Return a line that says by which of the three tests a verifier fails: count, uniformity, redraws."""
    lowest, highest = band(len(p))
    count, uniform = int((p <= LOOSE).sum()), float(kstest(p, "uniform").pvalue)
    allowed = 2.576 * np.sqrt(LEVEL / (REDRAWS * len(rows))) * 1000  # 99 %
    failed = [
        *(["count"] if not lowest <= count <= highest else []),
        *(["uniformity"] if uniform < KS_LEVEL else []),
        *(["redraws"] if rate is not None and rate > 1 + allowed else []),
    ]
    shown = "" if rate is None else f"{rate:.3f}e-3"
    tail = [f"{(p <= LEVEL).sum()}", f"{uniform:.1e}", shown, ", ".join(failed) or "no"]
    return [title, name, f"{len(p)}", f"{count}", f"{lowest} to {highest}", *tail]


def _traces(rows: Rows) -> str:
    corrected = np.array([row["trace"]["holm"] for row in rows])
    tenants = rows[0]["setting"]["tenants"] if rows else 0
    return (
        f"Tracing {tenants} tenants of whom none leaked, one innocent per key: someone is accused in "
        f"{(corrected <= LOOSE).sum()} of {len(rows)} runs at 0.05 (more than {band(len(rows))[1]} would be too many), "
        f"in {(corrected <= LEVEL).sum()} at 1e-3.\n"
    )


def _draw(p_values: dict[str, NDArray[np.float64]], path: Path) -> None:
    """Draw how far each suspect's p-values are from uniform, with the band that holds 99 % of uniform samples."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    grid = np.linspace(0.0, 1.0, 101)
    for name, p in p_values.items():
        share = np.searchsorted(np.sort(p), grid, side="right") / len(p)
        axes.plot(grid, share - grid, label=name, linewidth=1)
    limit = 1.628 / np.sqrt(len(next(iter(p_values.values()))))  # Kolmogorov's 99 % point
    axes.axhspan(-limit, limit, color="0.9", label="99 % of uniform samples lie inside")
    axes.set(xlabel="p", ylabel="share of keys at or below p, less p", xlim=(0, 1), ylim=(-1.6 * limit, 1.6 * limit))
    axes.legend(fontsize=7, ncols=2, loc="lower center")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    plt.close(figure)
