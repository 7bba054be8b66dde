"""Compression before training: the dimensionality-reduction attack of SemMark's paper (arXiv 2512.16439)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.whole import LootAttack, check_rows_of, with_directions
from regionmarker.benchmark.loot import Loot
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Doubles


@dataclass(frozen=True)
class Compress(LootAttack):
    """Keep the leading principal components of the served vectors.

    Attributes
    ----------
    keep
        How many components; a number below 1 is a share of the width.
    restore
        Train on the vectors that the components stand for, (n, D), not on the components themselves, (n, keep).

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    >>> loot = Loot(tuple("abcde" * 10), rows)
    >>> Compress(2).apply(loot).vectors.shape, Compress(2, restore=True).apply(loot).vectors.shape
    ((50, 2), (50, 8))
    """

    spec: ClassVar[str] = "compress"

    keep: float = 0.25
    restore: bool = False

    def __post_init__(self) -> None:
        whole = self.keep >= 1 and self.keep == int(self.keep)
        self._check(whole or 0 < self.keep < 1, f"keep a whole number of components or a share of 1, not {self.keep}")

    def apply(self, loot: Loot, /) -> Loot:
        """Fit the components on the loot and train on them."""
        check_rows_of(loot, 2, attack=self.name)
        width = loot.vectors.shape[1]
        keep = int(self.keep) if self.keep >= 1 else max(1, round(self.keep * width))
        if keep > min(width, len(loot) - 1):
            raise InputError(
                f"{self.name} needs vectors of at least {keep} dimensions and more than {keep} of them, "
                f"but there are {len(loot)} of width {width}"
            )
        rows = loot.vectors.astype(np.float64)
        centre = rows.mean(axis=0)
        axes = principal_axes(rows - centre, keep)[0]  # (k, D)
        parts = (rows - centre) @ axes.T  # (n, k)
        return with_directions(loot, parts @ axes + centre if self.restore else parts, attack=self.name)


def principal_axes(centred: AnyArray, count: int) -> tuple[Doubles, Doubles]:
    """Return the leading directions (k, D) of centred rows (n, D), and the deviations along them (k,).

    The sign of an axis is free; here its largest coordinate is positive, so that nothing but the rows decides.

    Examples
    --------
    >>> axes, deviations = principal_axes(np.array([[-2.0, 0.0], [2.0, 0.0]]), 1)
    >>> axes.tolist(), deviations.tolist()
    ([[1.0, 0.0]], [2.0])
    """
    exact = centred.astype(np.float64)
    values, vectors = np.linalg.eigh(exact.T @ exact / max(len(exact), 1))
    axes = np.ascontiguousarray(vectors[:, ::-1][:, :count].T)
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return axes * signs[:, None], np.sqrt(np.maximum(values[::-1][:count], 0))
