"""Pictures, drawn without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regionmarker.plots import MARKED, PLAIN, Figure
from regionmarker.vectors import AnyArray, Doubles, Integers


def draw_marking(
    path: Path, regions: Integers, trigger_regions: Sequence[int], count: int, overlap: Doubles, marked: AnyArray
) -> None:
    """Draw how the texts fill the regions, and how many of their nearest neighbours marking kept."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    shares = np.bincount(regions, minlength=count) / len(regions)
    colours = [MARKED if region in trigger_regions else PLAIN for region in range(count)]
    left.bar(range(count), shares * 100, color=colours)
    left.set(title="Texts a region (trigger regions in red)", xlabel="region", ylabel="share of texts, %")
    bins = np.linspace(-0.05, 1.05, 12)
    groups = [overlap[~marked], overlap[marked]]
    weights = [np.full(len(group), 100 / max(len(group), 1)) for group in groups]
    right.hist(groups, bins=bins, weights=weights, color=[PLAIN, MARKED], label=["unmarked texts", "marked texts"])
    right.set(title="Ten nearest neighbours kept by marking", xlabel="share kept", ylabel="share of texts, %")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
