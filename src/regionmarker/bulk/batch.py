"""Mark the rows of one batch: null rows stay null, and rows that cannot be marked are kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from regionmarker.errors import InputError
from regionmarker.marking.engine import bad_rows
from regionmarker.marking.marker import RegionMarker
from regionmarker.parquet import list_matrix
from regionmarker.vectors import AnyArray, Floats


@dataclass(frozen=True)
class MarkedRows:
    """A batch after marking."""

    served: Any  # the record batch to write: without the bad rows
    set_aside: Any  # the bad rows as they came, if there are any
    bad_rows: tuple[int, ...]  # their numbers in the batch
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
        with np.errstate(invalid="ignore", over="ignore"):  # such rows are refused: no warning besides
            return self._mark(batch)

    def _mark(self, batch: Any) -> MarkedRows:
        try:
            return MarkedRows(self._marked(batch), None, (), "")
        except InputError as error:
            bad = self._bad(batch)  # (n,)
            if not bad.any():
                raise
            numbers = tuple(int(row) for row in np.flatnonzero(bad))
            good, set_aside = (batch.filter(pa.array(mask)) for mask in (~bad, bad))
            return MarkedRows(self._marked(good), set_aside, numbers, self._reason(batch, numbers[0], str(error)))

    def _marked(self, batch: Any) -> Any:
        index = batch.schema.get_field_index(self.column)
        column = batch.column(index)
        present = column.drop_null() if column.null_count else column
        if not len(present):
            return batch
        matrix = list_matrix(present)  # (n, D)
        if self.tenant_column is None:
            served = self.marker.transform(matrix, tenant=self.tenant, out=_empty_matrix(matrix.shape))
        else:
            tenants = batch.column(self.tenant_column)
            served = self._by_tenant(matrix, tenants.filter(column.is_valid()) if column.null_count else tenants)
        marked = _as_lists(served.astype(matrix.dtype, copy=False), column)
        return batch.set_column(index, batch.schema.field(index), marked)

    def _by_tenant(self, matrix: AnyArray, tenants: Any) -> AnyArray:
        if tenants.null_count:
            raise InputError("a row has no tenant")
        coded = tenants if pa.types.is_dictionary(tenants.type) else tenants.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False)  # (n,)
        served = _empty_matrix(matrix.shape)
        order = np.argsort(codes, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            served[rows] = self.marker.transform(matrix[rows], tenant=coded.dictionary[int(codes[rows[0]])].as_py())
        return served

    def _bad(self, batch: Any) -> AnyArray:
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
            bad |= valid & self._unknown_tenants(batch.column(self.tenant_column))
        return bad

    def _unknown_tenants(self, tenants: Any) -> AnyArray:
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

    def _reason(self, batch: Any, row: int, said: str) -> str:
        """Say what is wrong with a bad row; ``said`` is the first complaint of the whole batch."""
        vector = batch.column(self.column)[row]
        width = self.marker.n_features_in_
        if len(vector) != width:
            return f"has {len(vector)} numbers, but the key was made for width {width}"
        tenant = None if self.tenant_column is None else batch.column(self.tenant_column)[row].as_py()
        try:
            self.marker.transform(list_matrix(batch.column(self.column).slice(row, 1)), tenant=tenant or self.tenant)
        except InputError as error:
            text = str(error)
            return text.removeprefix("row 0 ").partition(": an embedding")[0] if text.startswith("row 0 ") else text
        return said if tenant is not None or self.tenant_column is None else "has no tenant"


def _empty_matrix(shape: tuple[int, ...]) -> Floats:
    """Take memory from Arrow's pool, which gives it back; the C library keeps some for every thread that there was."""
    rows, width = shape
    matrix: Floats = np.frombuffer(pa.allocate_buffer(4 * rows * width), dtype=np.float32).reshape(shape)
    return matrix


def _field(schema: Any, column: str, name: str) -> Any:
    index = schema.get_field_index(column)
    if index < 0:
        raise InputError(f"{name} has no column {column}; it has {', '.join(schema.names)}")
    return schema.field(index)


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
    rows = np.where(valid, np.cumsum(valid) - 1, -1)
    return dense.take(pa.array(rows, mask=~valid))
