"""Mark the rows of one batch: null rows stay null, rows that cannot be marked are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from regionmarker.corpus import list_matrix
from regionmarker.errors import InputError
from regionmarker.marking.engine import bad_rows
from regionmarker.marking.marker import RegionMarker
from regionmarker.vectors import AnyArray, Floats


@dataclass(frozen=True)
class MarkedRows:
    """A batch after marking."""

    served: Any  # the record batch to write: without the bad rows
    aside: Any  # the bad rows as they came, if there are any
    places: tuple[int, ...]  # the bad rows' places in the batch
    reason: str  # what is wrong with the first of them


@dataclass(frozen=True)
class RowMarker:
    """Marks batches of one shard.

    Attributes
    ----------
    marker
        Holds the key.
    column
        The column of vectors.
    tenant
        Whose vectors these are.
    tenant_column
        The column that says so for each row, if there is one.
    """

    marker: RegionMarker
    column: str
    tenant: str = ""
    tenant_column: str | None = None

    def check(self, schema: Any, name: str) -> None:
        """Refuse a shard whose columns cannot be marked."""
        kind = _field(schema, self.column, name).type
        if not (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)):
            raise InputError(f"{name}: column {self.column} is {kind}, not a list of floats")
        if not pa.types.is_floating(kind.value_type):
            raise InputError(f"{name}: column {self.column} holds {kind.value_type}, not floats")
        width = self.marker.n_features_in_
        if pa.types.is_fixed_size_list(kind) and kind.list_size != width:
            raise InputError(
                f"{name}: column {self.column} has width {kind.list_size}, but the key was made for width {width}"
            )
        if self.tenant_column is not None:
            names = _field(schema, self.tenant_column, name).type
            names = names.value_type if pa.types.is_dictionary(names) else names
            if not (pa.types.is_string(names) or pa.types.is_large_string(names) or pa.types.is_string_view(names)):
                raise InputError(f"{name}: column {self.tenant_column} is {names}, not strings")

    def mark(self, batch: Any) -> MarkedRows:
        """Mark a batch; rows that cannot be marked are left out of what is served."""
        try:
            return MarkedRows(self._marked(batch), None, (), "")
        except InputError as error:
            bad = self._bad(batch)  # (n,)
            if not bad.any():
                raise
            places = tuple(int(place) for place in np.flatnonzero(bad))
            good, aside = (batch.filter(pa.array(mask)) for mask in (~bad, bad))
            return MarkedRows(self._marked(good), aside, places, self._reason(batch, places[0], str(error)))

    def _marked(self, batch: Any) -> Any:
        place = batch.schema.get_field_index(self.column)
        column = batch.column(place)
        present = column.drop_null() if column.null_count else column
        if not len(present):
            return batch
        matrix = list_matrix(present)  # (n, D)
        if self.tenant_column is None:
            served = self.marker.transform(matrix, tenant=self.tenant, out=_room(matrix.shape))
        else:
            tenants = batch.column(self.tenant_column)
            served = self._by_tenant(matrix, tenants.filter(column.is_valid()) if column.null_count else tenants)
        marked = _as_lists(served.astype(matrix.dtype, copy=False), column)
        return batch.set_column(place, batch.schema.field(place), marked)

    def _by_tenant(self, matrix: AnyArray, tenants: Any) -> AnyArray:
        if tenants.null_count:
            raise InputError("a row has no tenant")
        coded = tenants if pa.types.is_dictionary(tenants.type) else tenants.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False)  # (n,)
        served = _room(matrix.shape)
        order = np.argsort(codes, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            served[rows] = self.marker.transform(matrix[rows], tenant=coded.dictionary[int(codes[rows[0]])].as_py())
        return served

    def _bad(self, batch: Any) -> AnyArray:
        """Say which rows cannot be marked, (n,)."""
        column, width = batch.column(self.column), self.marker.n_features_in_
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        bad = np.zeros(len(batch), dtype=bool)
        if not pa.types.is_fixed_size_list(column.type):
            lengths = column.value_lengths().fill_null(width).to_numpy(zero_copy_only=False)
            bad |= lengths != width
        whole = valid & ~bad
        matrix = np.asarray(column.filter(pa.array(whole)).flatten().to_numpy(zero_copy_only=False)).reshape(-1, width)
        bad[whole] = bad_rows(matrix, normalise=self.marker.normalise)
        if self.tenant_column is not None:
            bad |= valid & self._nameless(batch.column(self.tenant_column))
        return bad

    def _nameless(self, tenants: Any) -> AnyArray:
        """Say which rows have no tenant, or one that the key cannot mark for, (n,)."""
        names = tenants.to_pylist()
        known = {name: self._is_known(name) for name in set(names)}
        return np.array([not known[name] for name in names], dtype=bool)

    def _is_known(self, name: str | None) -> bool:
        if name is None:
            return False
        try:
            self.marker.transform(np.empty((0, self.marker.n_features_in_), dtype=np.float32), tenant=name)
        except InputError:
            return False
        return True

    def _reason(self, batch: Any, place: int, said: str) -> str:
        """Say what is wrong with the bad row at ``place``; ``said`` is the first complaint of the whole batch."""
        vector = batch.column(self.column)[place]
        width = self.marker.n_features_in_
        if len(vector) != width:
            return f"has {len(vector)} numbers, but the key was made for width {width}"
        tenant = None if self.tenant_column is None else batch.column(self.tenant_column)[place].as_py()
        try:
            self.marker.transform(list_matrix(batch.column(self.column).slice(place, 1)), tenant=tenant or self.tenant)
        except InputError as error:
            text = str(error)
            return text.removeprefix("row 0 ").partition(": an embedding")[0] if text.startswith("row 0 ") else text
        return said if tenant is not None or self.tenant_column is None else "has no tenant"


def _room(shape: tuple[int, ...]) -> Floats:
    """Take memory from Arrow's pool, which gives it back; the C library keeps some for every thread that there was."""
    rows, width = shape
    room: Floats = np.frombuffer(pa.allocate_buffer(4 * rows * width), dtype=np.float32).reshape(shape)
    return room


def _field(schema: Any, column: str, name: str) -> Any:
    place = schema.get_field_index(column)
    if place < 0:
        raise InputError(f"{name} has no column {column}; it has {', '.join(schema.names)}")
    return schema.field(place)


def _as_lists(served: AnyArray, column: Any) -> Any:
    """Lay the vectors (n, D) out as the column was: its type, and null where it was null."""
    values, kind = pa.array(served.reshape(-1)), column.type
    if pa.types.is_fixed_size_list(kind):
        dense = pa.FixedSizeListArray.from_arrays(values, type=kind)
    else:
        large = pa.types.is_large_list(kind)
        offsets = np.arange(len(served) + 1, dtype=np.int64 if large else np.int32) * served.shape[1]
        maker = pa.LargeListArray if large else pa.ListArray
        dense = maker.from_arrays(pa.array(offsets, pa.int64() if large else pa.int32()), values, type=kind)
    if not column.null_count:
        return dense
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    places = np.where(valid, np.cumsum(valid) - 1, -1)
    return dense.take(pa.array(places, mask=~valid))
