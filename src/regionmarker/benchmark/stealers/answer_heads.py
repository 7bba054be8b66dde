"""What stands on a backbone: pooled output p (b, H) in, answers (b, D') out, not yet of unit length.

    PublishedHead     W2 ReLU(W1 p + b1) + b2, drawn at random
    SolvedHead        A z + a + W2 GELU(W1 z + b1) with z the standardised p: A and a solve the ridge regression on the
                      frozen backbone, W2 starts at 0, so that training starts where a linear head ends

Each says itself as a chain of dense layers, which is all that a sentence-transformers folder can hold. A sum of two
branches becomes a chain because z = GELU(z) - GELU(-z).

Needs torch; nothing outside the backbone's own files imports this one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import gelu, relu

from regionmarker.benchmark.network import Network
from regionmarker.measures import row_cosines
from regionmarker.vectors import Floats
from regionmarker.verification.simulated_stealer import PENALTIES, RidgeSolver

_PENALTIES = (*PENALTIES, 3.0)


@dataclass(frozen=True)
class Dense:
    """One dense layer: activation(weight x + bias), the activation a class of ``torch.nn``."""

    weight: Tensor  # (out, in)
    bias: Tensor  # (out,)
    activation: str = "Identity"


class PublishedHead(torch.nn.Module):
    """The head of the published stealers."""

    kind = "published"

    def __init__(self, size: int, width: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(size, hidden), torch.nn.Linear(hidden, width)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """H, D' and the units of the hidden layer."""
        return self.first.in_features, self.second.out_features, self.first.out_features

    def forward(self, pooled: Tensor) -> Tensor:
        answers: Tensor = self.second(relu(self.first(pooled)))
        return answers

    def chain(self) -> list[Dense]:
        return [Dense(self.first.weight, self.first.bias, "ReLU"), Dense(self.second.weight, self.second.bias)]


class SolvedHead(torch.nn.Module):
    """A ridge solution with a hidden layer beside it that has nothing to say yet.

    Parameters
    ----------
    size, width, hidden
        H, D', and the units of the hidden layer; 0 leaves it away.
    """

    kind = "solved"
    centre: Tensor
    scale: Tensor

    def __init__(self, size: int, width: int, hidden: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(size, width)
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))
        self.first = torch.nn.Linear(size, hidden) if hidden else None
        self.second = torch.nn.Linear(hidden, width, bias=False) if hidden else None
        if self.second is not None:
            torch.nn.init.zeros_(self.second.weight)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """H, D' and the units of the hidden layer."""
        return self.linear.in_features, self.linear.out_features, 0 if self.first is None else self.first.out_features

    def forward(self, pooled: Tensor) -> Tensor:
        inputs = (pooled - self.centre) / self.scale
        answers: Tensor = self.linear(inputs)
        if self.first is not None and self.second is not None:
            answers = answers + self.second(gelu(self.first(inputs)))
        return answers

    @torch.no_grad()
    def solve(self, pooled: Floats, targets: Floats, judged: Floats, answers: Floats) -> float:
        """Start at the ridge solution.

        Parameters
        ----------
        pooled, targets
            The frozen backbone's output (n, H), and what is to be learnt (n, D').
        judged, answers
            The same for texts that choose the penalty.

        Returns
        -------
        float
            The mean cosine on these texts.
        """
        centre, spread = pooled.mean(axis=0, dtype=np.float64), pooled.std(axis=0, dtype=np.float64)
        spread = np.maximum(spread, max(1e-3 * float(np.median(spread)), 1e-6))  # a number may never vary
        inputs, asked = (((rows - centre) / spread).astype(np.float32) for rows in (pooled, judged))  # (n, H)
        network = Network.drawn(inputs, targets.shape[1], 0, np.random.default_rng(0))
        scored = [
            (float(row_cosines(solved.answers(asked), answers).mean()), solved)
            for solved in RidgeSolver(network, inputs).solve(targets, _PENALTIES)
        ]
        score, best = max(scored, key=lambda one: one[0])
        said = best.answers(inputs)
        size = 1 / float(np.sqrt(np.square(said).mean()))  # answers are normalised: numbers of size 1 suit Adam's steps
        weight = best.W2 / best.scale  # (H, D')
        bias = best.b2 - best.centre @ weight  # (D',)
        for tensor, value in (
            (self.centre, centre), (self.scale, spread), (self.linear.weight, size * weight.T),
            (self.linear.bias, size * bias),
        ):  # fmt: skip
            tensor.copy_(torch.from_numpy(np.asarray(value, dtype=np.float32)))
        return score

    def chain(self) -> list[Dense]:
        weight = self.linear.weight / self.scale  # (D', H)
        bias = self.linear.bias - weight @ self.centre
        if self.first is None or self.second is None:
            return [Dense(weight, bias)]
        plain = torch.diag(1 / self.scale)  # z = plain p - centre / scale
        first = self.first.weight / self.scale
        wide = torch.cat([plain, -plain, first])  # (2H + h, H)
        shift = torch.cat([-self.centre / self.scale, self.centre / self.scale, self.first.bias - first @ self.centre])
        out = torch.cat([self.linear.weight, -self.linear.weight, self.second.weight], dim=1)
        return [Dense(wide, shift, "GELU"), Dense(out, self.linear.bias)]


Head = PublishedHead | SolvedHead
HEADS: dict[str, type[PublishedHead] | type[SolvedHead]] = {head.kind: head for head in (PublishedHead, SolvedHead)}
