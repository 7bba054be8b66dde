"""CSV files, tables and the region-balance figure out of rows.jsonl."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from studies._study import CORPORA as TITLES
from studies._study import markdown
from studies.subspace.summary import summary

Row = dict[str, object]
SPACES = ("4", "8", "16", "32", "64", "full", "raw")
CORPORA = tuple(TITLES)
Columns = dict[str, tuple[Callable[[Row], float], int]]  # heading -> what to take of a row, digits
SHOWN = {"4": "PCA, k = 4", "32": "PCA, k = 32", "full": "no reduction, centred", "raw": "no reduction, uncentred"}
METHODS = ("random", "climb", "gradient", "oracle")


def cell(values: list[float], digits: int) -> str:
    good = [v for v in values if np.isfinite(v)]
    if not good:
        return ""
    return f"{np.mean(good):.{digits}f} ± {np.std(good):.{digits}f}"


def grouped(rows: list[Row], task: str, columns: Columns) -> str:
    """One line per corpus and space, mean ± standard deviation over keys."""
    body = []
    for corpus in (*CORPORA, "all"):
        for space in SPACES:
            of_task = [r for r in rows if r["task"] == task and r["space"] == space]
            chosen = [r for r in of_task if corpus in ("all", r["corpus"])]
            alive = [r for r in chosen if not r.get("failed")]
            if not chosen or (corpus == "all" and len({r["corpus"] for r in of_task}) < 2):
                continue
            count = str(len(alive)) if len(alive) == len(chosen) else f"{len(alive)} of {len(chosen)}"
            cells = [cell([take(r) for r in alive], digits) for take, digits in columns.values()]
            body.append([corpus, space, count, *cells])
    return markdown(["corpus", "k", "keys", *columns], body) if body else "(no rows yet)"


def number(name: str) -> Callable[[Row], float]:
    return lambda row: float(row[name])  # type: ignore[arg-type]


def balance_columns() -> Columns:
    return {
        "entropy": (number("entropy"), 3),
        "min share %": (lambda r: 100 * number("min_share")(r), 2),
        "max share %": (lambda r: 100 * number("max_share")(r), 1),
        "regions >= 1 %": (number("populated"), 1),
        "fewer than 6 (share of keys)": (lambda r: float(number("populated")(r) < 6), 2),
        "paraphrase stays": (number("stays"), 3),
        "stays, cos >= 0.8": (number("stays_near"), 3),
    }


def utility_columns() -> Columns:
    names = {"marked": 3, "cos_marked": 4, "cos_all": 4, "cos_min": 4, "overlap": 3, "overlap_marked": 3}
    return {name: (number(name), digits) for name, digits in names.items()}


def power_columns() -> Columns:
    out: Columns = {}
    for thief in ("public", "strong"):
        out[f"{thief} fidelity"] = (number(f"{thief}_fidelity"), 3)
        out[f"{thief} same region"] = (number(f"{thief}_same_region"), 2)
        out[f"{thief} U/sqrt 3"] = (number(f"{thief}_u"), 2)
        out[f"{thief} share > 3.09"] = (lambda r, t=thief: float(number(f"{t}_u")(r) > 3.09), 2)  # type: ignore[misc]
    return out


def angle_columns() -> Columns:
    """`cell` is scored on residuals without the linear part of the coordinates, fixed for every k and method."""
    out: Columns = {}
    for method in METHODS:
        out[f"{method}: cell"] = (number(f"{method}_cell_v"), 2)
        out[f"{method}: row"] = (number(f"{method}_row_x"), 2)
    out["k-means, no regions"], out["ICA, no regions"] = (number("kmeans"), 2), (number("ica"), 2)
    out["normals found (1 = all)"] = (number("gradient_align"), 2)
    return out


def control_columns() -> Columns:
    names = ("gradient_cell_v", "gradient_row_x", "oracle_cell_v", "oracle_row_x", "kmeans", "ica")
    return {name: (number(name), 2) for name in names}


def write_csv(rows: list[Row], out: Path) -> None:
    for task in sorted({str(r["task"]) for r in rows}):
        chosen = [{k: v for k, v in r.items() if k != "shares"} for r in rows if r["task"] == task]
        fields = list(dict.fromkeys(k for r in chosen for k in r))
        with (out / f"{task}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fields)
            writer.writeheader()
            writer.writerows(chosen)


def figure(rows: list[Row], out: Path) -> None:
    """Mean share of the 16 regions, sorted, with the 10-90 % band over keys."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    balance = [r for r in rows if r["task"] == "balance"]
    grid, axes = plt.subplots(len(CORPORA), len(SHOWN), figsize=(11, 8), sharex=True, sharey=True)
    for line, corpus in zip(axes, CORPORA, strict=True):
        for axis, (space, title) in zip(line, SHOWN.items(), strict=True):
            picked = [r["shares"] for r in balance if (r["corpus"], r["space"]) == (corpus, space)]
            if not picked:
                continue
            shares = 100 * np.array(picked)
            low, high = np.percentile(shares, [10, 90], axis=0)
            axis.bar(np.arange(1, 17), shares.mean(axis=0), color="#4878a8")
            axis.vlines(np.arange(1, 17), low, high, color="black", linewidth=0.8)
            axis.axhline(100 / 16, color="#c44", linewidth=0.8, linestyle="--")
            axis.set_title(f"{TITLES[corpus]}: {title}", fontsize=8)
        line[0].set_ylabel("% of corpus", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("region, by size", fontsize=8)
    grid.tight_layout()
    grid.savefig(out / "region-balance.png", dpi=110)
    plt.close(grid)


def outsiders(rows: list[Row]) -> list[str]:
    """One set of tables for every set of public encoders that was used."""
    parts = []
    for public in sorted({str(r["public"]) for r in rows} - {""}, reverse=True):
        seen = [r for r in rows if r["public"] == public]
        parts += [
            f"## Public encoders: {public}",
            "### Outsiders: AUC against the marked flag",
            grouped(seen, "angles", angle_columns()),
            "### Control: the same outsiders on unmarked vectors",
            grouped(seen, "control", control_columns()),
            "### 8,000 rows, four times the time",
            grouped(seen, "angles_more", angle_columns()),
            "### Power",
            grouped(seen, "power", power_columns()),
            "### Summary",
            *summary(seen, SPACES),
        ]
    return parts


def report(out: Path) -> None:
    rows: list[Row] = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    write_csv(rows, out)
    parts = [
        "# Tables: mean ± standard deviation over keys",
        "## Balance of 16 regions, and paraphrases",
        grouped(rows, "balance", balance_columns()),
        "## Utility",
        grouped(rows, "utility", utility_columns()),
        *outsiders(rows),
    ]
    (out / "tables.md").write_text("\n\n".join(parts) + "\n")
    figure(rows, out)
