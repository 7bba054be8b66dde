"""Training a transformer, step by step, such that a killed training goes on to the same result.

Nothing random is carried from step to step: the order of a pass is drawn from (seed, pass), and torch's own numbers,
for dropout, are seeded anew at every step from (seed, step). So the state of a training is its weights, Adam's moments
and a few numbers, in one file that is either whole or not there, and a resumed training cannot tell that it was
resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from regionmarker.benchmark.protocols import Objective
from regionmarker.benchmark.stealers.transformer import Transformer
from regionmarker.errors import InputError
from regionmarker.files import atomic_path
from regionmarker.progress import Progress
from regionmarker.vectors import Floats, Integers

_FORMAT = "regionmarker-training-1"


class Checkpoint:
    """Where a training keeps its state.

    Tensors are stored by safetensors and everything else as JSON: opening a file runs nothing that is in it.

    Parameters
    ----------
    path
        The file.
    digest
        Of everything that decides the training: a state of another training is refused, never gone on with.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> file = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> Checkpoint(file, "abc").save({"w": torch.ones(2)}, {"done": 7})
    >>> tensors, state = Checkpoint(file, "abc").load()
    >>> tensors["w"].tolist(), state
    ([1.0, 1.0], {'done': 7})
    >>> Checkpoint(file, "xyz").load()
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: ... is of another training: delete it, or name another file
    """

    def __init__(self, path: str | Path, digest: str) -> None:
        self.path, self.digest = Path(path), digest

    def save(self, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        from safetensors.torch import save_file

        header = {"format": _FORMAT, "digest": self.digest, "state": json.dumps(dict(state))}
        with atomic_path(self.path) as temporary:
            save_file(dict(tensors), temporary, metadata=header)

    def load(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the tensors and the rest of the state; None where there is none yet."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                header = file.metadata() or {}
                if header.get("format") != _FORMAT:
                    raise InputError(f"{self.path} is not the state of a training: name another file")
                if header.get("digest") != self.digest:
                    raise InputError(f"{self.path} is of another training: delete it, or name another file")
                return {name: file.get_tensor(name) for name in file.keys()}, json.loads(header["state"])  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{self.path} is damaged and cannot be gone on with: delete it") from None

    def remove(self) -> None:
        """Delete the state, and what a killed process may have left beside it."""
        self.path.unlink(missing_ok=True)
        for left in self.path.parent.glob(f".{self.path.name}.*.tmp"):
            left.unlink(missing_ok=True)


TorchLoss: TypeAlias = Callable[[Callable[[], Tensor], Integers], Tensor]
"""The loss of a batch: called with a function that embeds the batch (b, D'), anew at each call and with dropout, and
with the batch's row numbers (b,)."""

_WORSE = 1.25  # times the loss of the best pass so far is no learning any more


@dataclass
class Training:
    """A training under way.

    Attributes
    ----------
    network
        What is trained, in place.
    tokens
        The texts as token numbers, one list per row.
    loss
        Of a batch.
    epochs, batch_size, learning_rate, seed
        AdamW without weight decay; its rate falls linearly to 0.
    parameters
        What is trained besides the network, such as the classifier of a task.
    patience
        Stop after this many passes without a better judgement.
    checkpoint, every
        Where to keep the state, after each pass and after this many steps.
    progress
        Called after each step.
    head_rate
        The learning rate of the head, where it has one of its own.
    warm_up
        Steps in which the rate rises to where it falls from; a quarter of all at the most.
    clip
        What the length of the whole gradient is cut to; 0 for never.
    chunk
        Batches are of texts of like length: this many texts are sorted at a time, then their batches are shuffled. 0
        for batches at random, which pad four tokens of ten.
    """

    network: Transformer
    tokens: Sequence[Sequence[int]]
    loss: TorchLoss
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    parameters: Sequence[Tensor] = ()
    patience: int | None = None
    checkpoint: Checkpoint | None = None
    every: int = 200
    progress: Progress | None = None
    head_rate: float | None = None
    warm_up: int = 0
    clip: float = 0.0
    chunk: int = 0
    history: list[float] = field(default_factory=list)
    """The judge's numbers: of the start, then after each pass."""

    def __post_init__(self) -> None:
        self._named: dict[str, Tensor] = {
            name: tensor for name, tensor in self.network.named_parameters() if tensor.requires_grad
        }
        self._named |= {f"extra.{place}": tensor for place, tensor in enumerate(self.parameters)}
        groups: dict[float, list[Tensor]] = {}
        for name, tensor in self._named.items():
            own = self.head_rate if self.head_rate is not None and name.startswith("head.") else self.learning_rate
            groups.setdefault(own, []).append(tensor)
        self._rates = list(groups)
        self._adam = torch.optim.AdamW([{"params": group} for group in groups.values()], lr=1.0, weight_decay=0.0)
        self._order: tuple[int, list[Integers]] = (-1, [])  # of a pass
        self._a_pass = -(-len(self.tokens) // self.batch_size)  # steps
        self._done = 0
        self._losses: list[float] = []  # of this pass
        self._limit: float | None = None
        self._best: dict[str, Tensor] = {}

    def run(self, judge: Callable[[], float] | None = None) -> None:
        """Train to the end; with a judge, to the weights that it likes best."""
        total = self.epochs * self._a_pass
        with torch.random.fork_rng():
            self._resume()
            if judge is not None and not self.history:
                self._judged(judge())
            while self._done < total and not self._is_stale():
                self._step(total)
                if self._done % self._a_pass == 0:
                    self._end_pass(judge)
                if self._done % self._a_pass == 0 or self._done % self.every == 0:
                    self._save()
                if self.progress is not None:
                    self.progress(self._done, total)
        if judge is not None:
            _assign(self._named, self._best)
        self.network.eval()

    def _step(self, total: int) -> None:
        epoch, place = divmod(self._done, self._a_pass)
        rows = self._batches(epoch)[place]
        batch = [self.tokens[row] for row in rows]
        torch.manual_seed(int(np.random.SeedSequence([self.seed, self._done]).generate_state(1)[0]))
        self.network.train()
        for group, rate in zip(self._adam.param_groups, self._rates, strict=True):
            group["lr"] = rate * self._share(total)
        self._adam.zero_grad()
        loss = self.loss(lambda: self.network(batch), rows)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.clip:
            torch.nn.utils.clip_grad_norm_(list(self._named.values()), self.clip)
        self._adam.step()
        self._done += 1
        self._losses.append(float(loss.detach()))
        if not np.isfinite(self._losses[-1]):
            raise self._diverged(epoch)

    def _share(self, total: int) -> float:
        """Return the share of the full rate that the next step takes."""
        rising = min(self.warm_up, total // 4)
        if self._done < rising:
            return (self._done + 1) / (rising + 1)
        return (total - self._done) / (total - rising)

    def _batches(self, epoch: int) -> list[Integers]:
        """Return the rows of each batch of a pass, drawn from (seed, pass) alone."""
        if self._order[0] != epoch:
            rng = np.random.default_rng([self.seed, epoch])
            order = rng.permutation(len(self.tokens))
            size = self.batch_size
            if self.chunk:
                lengths = np.array([len(numbers) for numbers in self.tokens])
                step = max(self.chunk // size, 1) * size  # so that only the last batch is smaller
                chunks = [order[start : start + step] for start in range(0, len(order), step)]
                order = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in chunks])
            batches = [order[start : start + size] for start in range(0, len(order), size)]
            if self.chunk:
                batches = [batches[place] for place in rng.permutation(len(batches))]
            self._order = epoch, batches
        return self._order[1]

    def _end_pass(self, judge: Callable[[], float] | None) -> None:
        loss = float(np.mean(self._losses))
        if judge is not None:
            if self._limit is not None and loss > _WORSE * self._limit:
                raise self._diverged(self._done // self._a_pass - 1)
            self._limit = loss if self._limit is None else min(loss, self._limit)
            self._judged(judge())
        self._losses = []

    def _diverged(self, epoch: int) -> InputError:
        loss = float(np.mean(self._losses))
        return InputError(
            f"the training diverged in pass {epoch + 1}, its loss is {loss:.3g}: "
            f"make learning_rate={self.learning_rate:g} smaller"
        )

    def _judged(self, score: float) -> None:
        self.history.append(score)
        if score >= max(self.history):
            self._best = {name: tensor.detach().clone() for name, tensor in self._named.items()}

    def _is_stale(self) -> bool:
        if self.patience is None or not self.history:
            return False
        return max(self.history[-self.patience :]) < max(self.history)

    # ---- the state

    def _save(self) -> None:
        if self.checkpoint is None:
            return
        tensors = {f"now.{name}": tensor.detach() for name, tensor in self._named.items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self._best.items()}
        tensors |= {f"fixed.{name}": tensor for name, tensor in self.network.head.named_buffers()}
        for name, tensor in self._named.items():
            if tensor in self._adam.state:  # what the loss does not reach has no moments
                moments = self._adam.state[tensor]
                tensors |= {f"adam.{key}.{name}": moments[key] for key in ("exp_avg", "exp_avg_sq", "step")}
        state = {"done": self._done, "losses": self._losses, "limit": self._limit, "history": self.history}
        self.checkpoint.save(tensors, state)

    def _resume(self) -> None:
        found = self.checkpoint.load() if self.checkpoint is not None else None
        if found is None:
            return
        tensors, state = found
        self._done, self._losses = state["done"], state["losses"]
        self._limit, self.history = state["limit"], state["history"]
        _assign(self._named, {name: tensors[f"now.{name}"] for name in self._named})
        fixed = dict(self.network.head.named_buffers())
        _assign(fixed, {name: tensors[f"fixed.{name}"] for name in fixed})
        device = self.network.device
        self._best = {name: tensors[f"best.{name}"].to(device) for name in self._named if f"best.{name}" in tensors}
        for name, tensor in self._named.items():
            if f"adam.step.{name}" in tensors:
                moments: dict[str, Any] = {"step": tensors[f"adam.step.{name}"]}
                moments |= {key: tensors[f"adam.{key}.{name}"].to(device) for key in ("exp_avg", "exp_avg_sq")}
                self._adam.state[tensor] = moments


@torch.no_grad()
def _assign(named: dict[str, Tensor], values: dict[str, Tensor]) -> None:
    for name, value in values.items():
        named[name].copy_(value)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch use this many threads for a while; the same number gives the same bits."""
    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


def squared_distance(targets: Floats, *, of: str = "numbers") -> TorchLoss:
    """Return the squared distance to targets (n, D'): the mean over all numbers, as published, or over the rows."""
    answers, scale = torch.from_numpy(targets), 1 if of == "numbers" else targets.shape[1]

    def loss(embed: Callable[[], Tensor], rows: Integers) -> Tensor:
        given = embed()
        return torch.nn.functional.mse_loss(given, answers[rows].to(given.device)) * scale

    return loss


def torch_loss(objective: Objective) -> TorchLoss:
    """Turn an objective into a loss that torch can derive: its value is the loss, its derivative the objective's."""

    def loss(embed: Callable[[], Tensor], rows: Integers) -> Tensor:
        views = [embed() for _ in range(objective.views)]
        plain: list[Floats] = [view.detach().cpu().numpy().astype(np.float32) for view in views]
        value, slopes = objective.step(plain, rows)
        parts = [(view * torch.from_numpy(slope).to(view)).sum() for view, slope in zip(views, slopes, strict=True)]
        total: Tensor = torch.stack(parts).sum()
        return total - total.detach() + value

    return loss
