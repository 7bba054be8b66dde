"""The Markdown table of a study: one line a suspect, both exact statistics and the paper's p side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LEVEL = 1e-3
HEAD = (
    "suspect",
    "fidelity",
    "keys",
    "decoy-1: U/√R",
    "p ≤ 1e-3",
    "prototype: U/√R",
    "p ≤ 1e-3",
    "paper's p, median",
    "p ≤ 1e-3",
    "paper says copy",
    "decoy-1, targets redrawn: p ≤ 1e-3",
)


def markdown(rows: Sequence[dict[str, Any]], suspects: Sequence[str], innocents: Sequence[str]) -> str:
    """Return the table of all finished rows, in the order of ``suspects``."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for suspect in suspects:
        found = [row for row in rows if row["suspect"] == suspect]
        if found:
            kind = "innocent" if suspect in innocents else "copy"
            lines.append("| " + " | ".join([f"{kind}: {suspect}", *_cells(found)]) + " |")
    return "\n".join(lines) + "\n"


def _cells(found: Sequence[dict[str, Any]]) -> list[str]:
    learnt = [row["fidelity"] for row in found if row["fidelity"] is not None]
    redrawn = [row["redrawn"] for row in found if row["redrawn"] is not None]
    return [
        f"{np.mean(learnt):.3f}" if learnt else "",
        str(len(found)),
        _mean(found, "decoy_u"),
        _count(found, "decoy_p"),
        _mean(found, "prototype_u"),
        _count(found, "prototype_p"),
        f"{np.median([row['paper_p'] for row in found]):.0e}",
        _count(found, "paper_p"),
        f"{sum(row['paper_copy'] for row in found)}",
        f"{np.mean(redrawn):.5f}" if redrawn else "",
    ]


def _mean(found: Sequence[dict[str, Any]], name: str) -> str:
    values = np.array([row[name] for row in found])
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else ""
    return f"{values.mean():.2f}{error}"


def _count(found: Sequence[dict[str, Any]], name: str) -> str:
    return str(sum(row[name] <= LEVEL for row in found))
