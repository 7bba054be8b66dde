"""The table and the figure of the detection study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.files import atomic_path
from studies._study import markdown
from studies.detection.trial import ATTACKS

LEVEL = 1e-3
LOOSE = 0.05
HEAD = ("student", "fidelity", "keys", *ATTACKS, "innocents at 1e-3", "innocents at 0.05")
Rows = Sequence[dict[str, Any]]


def write_curve(rows: Rows, students: Sequence[str], folder: Path) -> None:
    """Write `detection.md`, one line per student, and `detection.png`, the share that is caught over fidelity."""
    groups = {name: [row for row in rows if row["student"] == name] for name in students}
    groups = {name: found for name, found in groups.items() if found}
    table = markdown(HEAD, [[name, *_cells(found)] for name, found in groups.items()])
    with atomic_path(folder / "detection.md") as temporary:
        temporary.write_text(table + "\n")
    _draw({name: found for name, found in groups.items() if "R =" not in name}, folder / "detection.png")


def _cells(found: Rows) -> list[str]:
    caught = [str(_count(found, attack)) for attack in ATTACKS]
    innocent = np.array([p for row in found for name, p in row["p"].items() if name not in ATTACKS])
    rates = [f"{(innocent <= level).sum()} of {len(innocent)}" for level in (LEVEL, LOOSE)]
    return [f"{np.mean([row['fidelity'] for row in found]):.3f}", str(len(found)), *caught, *rates]


def _count(found: Rows, attack: str) -> int:
    return sum(row["p"][attack] <= LEVEL for row in found)


def _draw(groups: dict[str, Rows], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    points = sorted((float(np.mean([row["fidelity"] for row in found])), found) for found in groups.values())
    for attack, marker in zip(ATTACKS, "osv^D", strict=True):
        shares = [_count(found, attack) / len(found) for _, found in points]
        axes.plot([fidelity for fidelity, _ in points], shares, marker=marker, label=attack, alpha=0.8)
    axes.set(xlabel="fidelity of the copy", ylabel="share of keys with p ≤ 1e-3", ylim=(-0.03, 1.03))
    axes.grid(alpha=0.3)
    axes.legend(title="attack", loc="lower right")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    plt.close(figure)
