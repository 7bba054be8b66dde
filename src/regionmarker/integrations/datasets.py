"""Hugging Face's datasets: a function for ``Dataset.map``, which marks a column of embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.marking.marker import RegionMarker
from regionmarker.vectors import Floats, as_matrix


class MarkColumn(Sealed):
    """Mark a column of embeddings: give it to ``map`` with ``batched=True``.

    It works in one process: marking is faster than reading, and a key does not travel to workers (``num_proc``).
    ``map`` keeps its result in a cache file under a name of its own making; with ``new_fingerprint`` the same key,
    tenant and column find the same file again.

    Parameters
    ----------
    marker : RegionMarker
        A marker with a key or a serving key.
    column : str
        The column of embeddings; they are replaced.
    tenant : str
        Whose vectors these are.
    tenant_column : str, optional
        The column that says so row by row, instead.

    Examples
    --------
    >>> texts = [f"text {number}" for number in range(600)]
    >>> rows = np.random.default_rng(0).standard_normal((600, 64)).astype(np.float32)
    >>> marker = RegionMarker(seed=1, normalise=True).fit(texts, embeddings=rows)
    >>> mark = MarkColumn(marker, tenant="acme")
    >>> mark({"text": texts[:2], "embedding": rows[:2].tolist()})["embedding"].shape
    (2, 64)
    """

    _instead = "call map without num_proc; marking is faster than reading"

    def __init__(
        self, marker: RegionMarker, column: str = "embedding", *, tenant: str = "", tenant_column: str | None = None
    ) -> None:
        if tenant and tenant_column is not None:
            raise InputError("give either tenant or tenant_column, not both")
        self._marker, self._column, self._tenant, self._tenant_column = marker, column, tenant, tenant_column

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Floats]:
        rows = self._taken(batch, self._column)
        if len(rows) and np.ndim(rows[0]) == 0:
            raise InputError(f"column {self._column!r} came one row at a time: call map with batched=True")
        vectors = as_matrix(rows, what=f"column {self._column!r}")
        if self._tenant_column is None:
            return {self._column: self._marker.transform(vectors, self._tenant)}
        names = self._taken(batch, self._tenant_column)
        marked = np.empty(vectors.shape, dtype=np.float32)
        for name in dict.fromkeys(names):
            chosen = [row for row, tenant in enumerate(names) if tenant == name]
            marked[chosen] = self._marker.transform(vectors[chosen], name)
        return {self._column: marked}

    def fingerprint(self, dataset: Any) -> str:
        """Return a name for the result of ``map`` over this dataset, for its ``new_fingerprint``."""
        parts = (dataset._fingerprint, self._marker.serving_.id, self._column, self._tenant, self._tenant_column or "")
        return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()[:16]

    @staticmethod
    def _taken(batch: Mapping[str, Any], column: str) -> Sequence[Any]:
        if column not in batch:
            raise InputError(f"there is no column {column!r}: the dataset has {', '.join(sorted(batch))}")
        taken: Sequence[Any] = batch[column]
        return taken
