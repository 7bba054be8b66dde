"""The marking step: clean rows in, the rows to serve out. Nothing reaches a response but through here."""

from __future__ import annotations

import time
from typing import Protocol

import numpy as np

from regionmarker.embeddings import NORM_TOLERANCE
from regionmarker.errors import InputError
from regionmarker.gateway.failures import Failure, bad_request, invalid_answer
from regionmarker.gateway.keyhold import Snapshot
from regionmarker.gateway.tenants import Tenant
from regionmarker.marking.grid import Grid, round_to_grid
from regionmarker.protocols import Floats


class Rollout(Protocol):
    """Decides what is served: a roll-out may serve clean rows to some tenants, and measures what marking does.

    Called for every block of rows on its way through, so it must be quick. The arrays are used again for the next
    block: copy what is to be kept.
    """

    def serve(self, tenant: Tenant, snapshot: Snapshot, clean: Floats, marked: Floats) -> Floats:
        """Return ``marked`` or ``clean``, both (n, D)."""
        ...


class EveryoneMarked:
    """The usual roll-out: what is served is marked.

    Examples
    --------
    >>> clean, marked = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    >>> EveryoneMarked().serve(Tenant(""), None, clean, marked) is marked
    True
    """

    def serve(self, tenant: Tenant, snapshot: Snapshot, clean: Floats, marked: Floats) -> Floats:  # noqa: ARG002
        """Return ``marked``."""
        return marked


class Marking:
    """Marks the rows of one request, block by block.

    Parameters
    ----------
    snapshot
        The key's version that this request is served with.
    tenant
        Whose vectors these are.
    rollout
        What is served in the end.
    dimensions
        Serve so many leading columns; None for all.
    """

    def __init__(self, snapshot: Snapshot, tenant: Tenant, rollout: Rollout, dimensions: int | None = None) -> None:
        self.snapshot = snapshot
        self.tenant = tenant
        self.rollout = rollout
        self.dimensions = None if dimensions == snapshot.width else dimensions
        self.seconds = 0.0
        """Time spent marking so far."""
        self._room = np.empty((0, snapshot.width), dtype=np.float32)

    def serve(self, clean: Floats, first: int = 0) -> Floats:
        """Return the rows to serve, (n, D); ``first`` is the number of the first row, for messages.

        The array is used again for the next block.
        """
        started = time.perf_counter()
        if len(self._room) < len(clean):
            self._room = np.empty_like(clean)
        marked = self._room[: len(clean)]
        try:
            self.snapshot.mark(clean, self.tenant.name, marked)
        except InputError:
            raise _bad_row(clean, first) from None
        served = self.rollout.serve(self.tenant, self.snapshot, clean, marked)
        if self.dimensions is not None:
            served = shortened(served, self.dimensions, self.snapshot.grid)
        self.seconds += time.perf_counter() - started
        return served


def shortened(rows: Floats, dimensions: int, grid: Grid) -> Floats:
    """Return the leading columns, scaled to unit length and rounded to the grid: (n, D) -> (n, dimensions).

    Marked and unmarked rows take the same path, as in marking itself.

    Examples
    --------
    >>> shortened(np.float32([[0.6, 0.0, 0.8]]), 2, Grid.float32)
    array([[1., 0.]], dtype=float32)
    """
    short = rows[:, :dimensions].astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", short, short))
    if not norms.all():
        raise bad_request(f"a vector has nothing but zeros in its first {dimensions} dimensions", "dimensions")
    return round_to_grid(short / norms[:, None], grid)


def _bad_row(rows: Floats, first: int) -> Failure:
    """Say which vector cannot be marked, and why."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    row = int(np.argmax(~(np.abs(norms - 1.0) <= NORM_TOLERANCE)))
    if not np.isfinite(norms[row]):
        return invalid_answer("not_finite", f"the upstream's vector {first + row} holds NaN or infinity")
    return invalid_answer(
        "norm", f"the upstream's vector {first + row} has length {norms[row]:.3g} where 1 is expected"
    )
