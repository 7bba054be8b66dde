"""The fused kernel: one read and one write of the matrix, everything between in cache. Importing this needs numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from regionmarker.marking.plan import MarkPlan
from regionmarker.protocols import Floats, Integers

F = TypeVar("F", bound=Callable[..., Any])

STREAM_BYTES = 1 << 22
_DOUBT = 1e-4
_NOTHING_LEFT = 1e-12
_LANES = 16
_EXPONENT = 0x7FF0_0000_0000_0000

_F32, _F64, _I64 = types.float32, types.float64, types.int64
_NO_SLOTS = np.zeros(0, dtype=np.int64)


def _compiled(signature: Any = None, **options: Any) -> Callable[[F], F]:
    def wrap(function: F) -> F:
        try:
            return numba.njit(signature, cache=True, nogil=True, **options)(function)
        except RuntimeError:
            return numba.njit(signature, nogil=True, **options)(function)
    return wrap


def _readonly(dtype: Any, dimensions: int) -> Any:
    return types.Array(dtype, dimensions, "C", readonly=True)


@intrinsic
def _power_below(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], ir.IntType(64))
        return builder.bitcast(builder.and_(bits, ir.IntType(64)(_EXPONENT)), ir.DoubleType())
    return _F64(_F64), generate


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, indices: Any, to: Any) -> Any:
    unpacked = context.make_array(array_type)(context, builder, array)
    address = cgutils.get_item_pointer(context, builder, array_type, unpacked, indices, wraparound=False)
    return builder.bitcast(address, to.as_pointer())


@intrinsic
def _stream(typing_context: Any, y: Any, scale: Any, out: Any, row: Any, column: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        y, scale, out, row, column = arguments
        doubles, floats = ir.VectorType(ir.DoubleType(), _LANES), ir.VectorType(ir.FloatType(), _LANES)
        source = builder.load(_pointer(context, builder, signature.args[0], y, [column], doubles), align=8)
        one = builder.insert_element(ir.Constant(doubles, ir.Undefined), scale, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)
        scales = builder.shuffle_vector(one, ir.Constant(doubles, ir.Undefined), zeros)
        served = builder.fptrunc(builder.fmul(source, scales), floats)
        target = _pointer(context, builder, signature.args[2], out, [row, column], floats)
        store = builder.store(served, target, align=4 * _LANES)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
        return context.get_dummy_value()
    return types.none(y, scale, out, row, column), generate


@intrinsic
def _prefetch(typing_context: Any, rows: Any, row: Any, column: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, row, column = arguments
        address = _pointer(context, builder, signature.args[0], rows, [row, column], ir.IntType(8))
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(prefetch, [address, number(0), number(HINT), number(1)])
        return context.get_dummy_value()
    return types.none(rows, row, column), generate
HINT=3

@intrinsic
def _misalignment(typing_context: Any, out: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.IntType(64)(0)
        address = _pointer(context, builder, signature.args[0], arguments[0], [arguments[1], zero], ir.IntType(8))
        number = builder.ptrtoint(address, ir.IntType(64))
        return builder.and_(number, ir.IntType(64)(4 * _LANES - 1))
    return _I64(out, row), generate


_SUM = {"reassoc", "contract"}


@_compiled(fastmath=_SUM)
def _project(e, H, g):
    a = b = c = d = np.float32(0.0)
    for j in range(e.shape[0]):
        a += e[j] * H[g, j]
        b += e[j] * H[g + 1, j]
        c += e[j] * H[g + 2, j]
        d += e[j] * H[g + 3, j]
    return a, b, c, d


@_compiled(fastmath=_SUM)
def _square(e):
    total = np.float32(0.0)
    for j in range(e.shape[0]):
        total += e[j] * e[j]
    return total


@_compiled(fastmath=_SUM)
def _square_exactly(e):
    total = 0.0
    for j in range(e.shape[0]):
        x = np.float64(e[j])
        total += x * x
    return total


@_compiled(fastmath=_SUM)
def _mix(e, keep, pull, y):
    total = 0.0
    for j in range(e.shape[0]):
        x = keep * np.float64(e[j]) + pull[j]
        y[j] = x
        total += x * x
    return total


@_compiled()
def _round(y, scale, least_power, magic):
    for j in range(y.shape[0]):
        x = y[j] * scale
        m = max(_power_below(x), least_power) * magic
        y[j] = np.copysign((abs(x) + m) - m, x)


@_compiled()
def _put(y, scale, out, start, stop):
    for j in range(start, stop):
        out[j] = np.float32(y[j] * scale)


@_compiled()
def _region(e, H, thresholds, unit):
    number = 0
    for g in range(0, H.shape[0], 4):
        a, b, c, d = _project(e, H, g)
        number |= (a * unit > thresholds[g]) << g
        number |= (b * unit > thresholds[g + 1]) << (g + 1)
        number |= (c * unit > thresholds[g + 2]) << (g + 2)
        number |= (d * unit > thresholds[g + 3]) << (g + 3)
    return number


@_compiled(types.boolean(_readonly(_F32,2), _readonly(_F32,2), _readonly(_F64,1), _readonly(_I64,1), _readonly(_F64,2), _readonly(_F64,1), _readonly(_I64,1),
  types.Array(_F32,2,"C"), _F64,_F64,_F64,_F64,types.boolean,types.boolean))
def _write(rows, H, thresholds, slot_of_region, pulls, keeps, slots, out, least_power, magic, low, high, normalise, stream):
    n, width = rows.shape
    y = np.empty(width + 8, dtype=np.float64)[:width]
    suspicious = False
    for r in range(n):
        e = rows[r]
        square = _square_exactly(e) if normalise else np.float64(_square(e))
        suspicious |= not low < square < high
        unit = 1.0 / np.sqrt(square) if normalise else 1.0
        slot = slots[r] if slots.shape[0] else slot_of_region[_region(e, H, thresholds, unit)]
        total = _mix(e, keeps[slot] * unit, pulls[slot], y)
        if total < _NOTHING_LEFT:
            total = _mix(e, 0.0, pulls[slot], y)
        scale = 1.0 / np.sqrt(total)
        if magic > 0.0:
            _round(y, scale, least_power, magic)
            scale = 1.0
        if stream:
            head = min(width, (64 - _misalignment(out, r)) % 64 // 4)
            tail = width - (width - head) % _LANES
            _put(y, scale, out[r], 0, head)
            for j in range(head, tail, _LANES):
                _prefetch(rows, r + 1, j)
                _stream(y, scale, out, r, j)
            _put(y, scale, out[r], tail, width)
        else:
            _put(y, scale, out[r], 0, width)
    return suspicious


@_compiled(types.boolean(_readonly(_F32,2), _F64, _F64, types.boolean))
def _suspicious(rows, low, high, normalise):
    found = False
    for r in range(rows.shape[0]):
        square = _square_exactly(rows[r]) if normalise else np.float64(_square(rows[r]))
        found |= not low < square < high
    return found


@_compiled(types.void(_readonly(_F32,2), _readonly(_F32,2), _readonly(_F64,1), types.Array(_I64,1,"C"), types.boolean))
def _regions(rows, H, thresholds, found, normalise):
    for r in range(rows.shape[0]):
        unit = 1.0 / np.sqrt(_square_exactly(rows[r])) if normalise else 1.0
        found[r] = _region(rows[r], H, thresholds, unit)


def _limits(plan: MarkPlan, normalise: bool) -> tuple[float, float]:
    if normalise:
        return 0.0, np.inf
    low, high = 1.0 - plan.norm_tolerance, 1.0 + plan.norm_tolerance
    return low * low + _DOUBT, high * high - _DOUBT


class NumbaEngine:
    """The fused kernel, one thread."""

    name = "numba"
    whole = True

    def suspicious(self, plan: MarkPlan, rows: Floats, normalise: bool) -> bool:
        """See Engine."""
        return _suspicious(rows, *_limits(plan, normalise), normalise)

    def regions(self, plan, rows, normalise):
        """See Engine."""
        found = np.empty(len(rows), dtype=np.int64)
        _regions(rows, plan.tables.normals, plan.tables.thresholds, found, normalise)
        return found

    def write(self, plan, rows, slots, out, normalise):
        """See Engine."""
        t = plan.tables
        low, high = _limits(plan, normalise)
        stream = out.nbytes >= STREAM_BYTES and not np.may_share_memory(rows, out)
        return _write(rows, t.normals, t.thresholds, t.slot_of_region, t.pulls, t.keeps, _NO_SLOTS if slots is None else slots, out,
                      t.least_power, t.magic, low, high, normalise, stream)
