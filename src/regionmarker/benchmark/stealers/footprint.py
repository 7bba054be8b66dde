"""How much memory a training will take, told before it starts: being killed after an hour is a poor way to learn it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regionmarker.errors import InputError

_NUMBER = 4  # bytes of a float32
_GB = 1e9
_MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class Footprint:
    """What a training with AdamW holds at the same time, in bytes.

    Attributes
    ----------
    weights
        Of the model, trained or not.
    training
        A gradient, Adam's two moments and the best state so far, of every weight that is trained.
    activations
        Of the longest batch, kept for the way back.

    Examples
    --------
    >>> print(Footprint(weights=2_000_000_000, training=7_200_000_000, activations=400_000_000))
    9.6 GB: weights 2.0, gradients, moments and best state 7.2, a batch 0.4
    """

    weights: int
    training: int
    activations: int

    @classmethod
    def of(cls, network: Any, batch_size: int, longest: int) -> Footprint:
        """Estimate it for a transformer, batches and the tokens of the longest text.

        A layer keeps about 17 numbers for each number of its input, and for each head and pair of tokens 2.5 more
        (Korthikanti et al. 2022), down to the lowest layer that is trained.
        """
        config = network.body.config
        weights = sum(tensor.numel() for tensor in network.parameters())
        trained = sum(tensor.numel() for tensor in network.parameters() if tensor.requires_grad)
        tokens, width = batch_size * longest, int(config.hidden_size)
        layer = 17 * tokens * width + 2.5 * int(config.num_attention_heads) * tokens * longest
        layers = network.tuned_layers()
        return cls(_NUMBER * weights, 4 * _NUMBER * trained, int(_NUMBER * layer * layers))

    @property
    def total(self) -> int:
        return self.weights + self.training + self.activations

    def __str__(self) -> str:
        return (
            f"{self.total / _GB:.1f} GB: weights {self.weights / _GB:.1f}, gradients, moments and best state "
            f"{self.training / _GB:.1f}, a batch {self.activations / _GB:.1f}"
        )

    def check(self, name: str, free: int | None = None) -> None:
        """Refuse a training that does not fit into what is free; the weights are loaded already.

        Examples
        --------
        >>> Footprint(10**9, 4 * 10**9, 10**9).check("large", free=10**9)
        Traceback (most recent call last):
        ...
        regionmarker.errors.InputError: tuning large takes 5.0 GB more, but 1.0 GB are free: give freeze_words=true, ...
        """
        free = free_memory() if free is None else free
        wanted = self.training + self.activations
        if free is not None and wanted > free:
            raise InputError(
                f"tuning {name} takes {wanted / _GB:.1f} GB more, but {free / _GB:.1f} GB are free: "
                "give freeze_words=true, freeze_layers=N, a smaller batch_size or a smaller max_length"
            )


def free_memory(source: Path = _MEMINFO) -> int | None:
    """Return the bytes that a process can still get without swapping; None where the system does not say."""
    try:
        lines = source.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None
