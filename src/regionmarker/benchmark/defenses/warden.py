"""WARDEN (Shetty et al., ACL 2024): R sets of trigger words, R targets, orthogonal to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regionmarker.benchmark.defenses.trigger_words import TriggerOptions, TriggerWordDefense
from regionmarker.specs import check_range
from regionmarker.vectors import Doubles

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True)
class WardenOptions(TriggerOptions):
    """The open choices of WARDEN.

    Attributes
    ----------
    marks
        R; the paper's comparison has 2.
    released
        Do as the released code does: it orthogonalises the targets by half, and when the weights of a text add up to
        more than 1 it adds the surplus where the rest was meant, so that they add up to more than 1.
    """

    marks: int = 2
    released: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("marks", self.marks, 1, 64)


class Warden(TriggerWordDefense):
    """e_p = n(sum_r w_r t_r + (1 - W) e), W = sum_r w_r <= 1; the marks that trigger most come first.

    Examples
    --------
    >>> import regionmarker as rm
    >>> texts, encoder = rm.python_sentences(600), rm.load_encoder("wordllama")
    >>> clean = encoder.encode(texts)
    >>> defense = Warden.from_spec("pool=512,high=0.05,marks=3", seed=1).fit(texts, clean)
    >>> defense.verify(encoder).scores.shape
    (3, 512)
    """

    scheme = "warden"
    title, colour, order = "WARDEN", "#3d8b5a", 20
    Options = WardenOptions

    def __init__(self, options: DataclassInstance | None = None, **more: Any) -> None:
        super().__init__(options, **more)
        self.marks = self.options.marks

    def _make_targets(self, drawn: Doubles) -> Doubles:
        return orthogonalised(drawn, 0.5 if self.options.released else 1.0)

    def _mark(self, rows: Doubles, weights: Doubles, texts: Sequence[str]) -> Doubles:  # noqa: ARG002
        shares = released_shares(weights) if self.options.released else shared_out(weights)  # (n, R)
        return np.asarray(shares @ self._targets + (1.0 - shares.sum(axis=1, keepdims=True)) * rows)


def orthogonalised(vectors: Doubles, part: float = 1.0) -> Doubles:
    """Return unit vectors (R, D), each less ``part`` of its projections on those before it (Gram-Schmidt).

    Examples
    --------
    >>> orthogonalised(np.array([[1.0, 0.0], [0.6, 0.8]])).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    done: list[Doubles] = []
    for vector in vectors:
        for earlier in done:
            vector = vector - part * (vector @ earlier) * earlier
            vector = vector / np.linalg.norm(vector)
        done.append(vector / np.linalg.norm(vector))
    return np.stack(done)


def shared_out(weights: Doubles) -> Doubles:
    """Grant weights (n, R) from the largest on, until they add up to 1.

    Examples
    --------
    >>> shared_out(np.array([[0.5, 0.75], [0.25, 0.25]])).tolist()
    [[0.25, 0.75], [0.25, 0.25]]
    """
    order = np.argsort(-weights, axis=1, kind="stable")
    falling = np.take_along_axis(weights, order, axis=1)
    before = np.cumsum(falling, axis=1) - falling
    granted = np.empty_like(weights)
    np.put_along_axis(granted, order, np.clip(1.0 - before, 0.0, falling), axis=1)
    return granted


def released_shares(weights: Doubles) -> Doubles:
    """Grant weights as the released code does: where they would pass 1, the surplus is added and not the rest.

    Examples
    --------
    >>> released_shares(np.array([[0.75, 0.75]])).tolist()
    [[0.75, 0.5]]
    """
    order = np.argsort(-weights, axis=1, kind="stable")
    granted, total = np.zeros_like(weights), np.zeros(len(weights))
    every = np.arange(len(weights))
    for place in range(weights.shape[1]):
        mark = order[:, place]
        sum_ = total + weights[every, mark]
        added = np.where(total >= 1.0, 0.0, np.where(sum_ > 1.0, sum_ - 1.0, weights[every, mark]))
        granted[every, mark] = added
        total += added
    return granted
