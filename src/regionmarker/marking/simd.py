"""Machine vectors for numba: the few operations that the fused kernel is written in. Needs numba.

Eight float32 numbers a vector, which is one register of AVX2; LLVM splits it where registers are smaller. AVX-512 would
do twice as much per instruction, but conversions to float64 do not profit and the clock falls: measured, no gain.
Arithmetic takes scalars, too, for the columns that fill no vector, with bit for bit the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as numba_cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

WIDTH = 8
LINE = 16  # float32 numbers in a cache line

cgutils: Any = numba_cgutils  # typed in some versions of numba and not in others
_EXPONENT = 0x7FF0_0000_0000_0000
_Type: Any = types.Type
_Model: Any = models.PrimitiveModel
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()


def _operation(infer: Callable[..., Any]) -> Any:
    """Make a function for compiled code: ``infer`` maps argument types to a signature and a generator of LLVM code."""
    return intrinsic(infer)


class Lanes(_Type):  # type: ignore[misc]
    """A machine vector as a numba type."""

    def __init__(self, scalar: Any, count: int) -> None:
        self.scalar, self.count = scalar, count
        super().__init__(name=f"{scalar}x{count}")


@register_model(Lanes)
class _LanesModel(_Model):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.VectorType(manager.lookup(lanes.scalar).get_value_type(), lanes.count))


FLOATS = Lanes(types.float32, WIDTH)
DOUBLES = Lanes(types.float64, WIDTH // 2)


def _alike(scalar: ir.Type, model: ir.Type) -> ir.Type:
    """Return the type with ``scalar`` elements and the shape of ``model``."""
    return ir.VectorType(scalar, model.count) if isinstance(model, ir.VectorType) else scalar


def _spread(builder: Any, value: Any, shape: ir.Type) -> Any:
    """Repeat a scalar in all lanes of ``shape``; leave it as it is where that is a scalar, or it has lanes already."""
    if value.type == shape or not isinstance(shape, ir.VectorType):
        return value
    first = builder.insert_element(ir.Constant(shape, ir.Undefined), value, _I32(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_I32, shape.count), [0] * shape.count))


def _call(builder: Any, name: str, *values: Any) -> Any:
    """Call one of LLVM's own functions on values of one type."""
    kind = values[0].type
    lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
    element = kind.element if lanes else kind
    suffix = f"{lanes}{'f32' if element == _FLOAT else 'f64'}"
    function_type = ir.FunctionType(kind, [kind] * len(values))
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.{suffix}"), values)


def _address(context: Any, builder: Any, kind: Any, to: ir.Type, array: Any, row: Any, column: Any) -> Any:
    unpacked = context.make_array(kind)(context, builder, array)
    address = cgutils.get_item_pointer(context, builder, kind, unpacked, [row, column], wraparound=False)
    return builder.bitcast(address, to.as_pointer())


def _zeros(kind: Lanes) -> Any:
    @_operation
    def zeros(_: Any) -> Any:
        def generate(context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
            return ir.Constant(context.get_value_type(kind), None)

        return kind(), generate

    return zeros


no_floats, no_doubles = _zeros(FLOATS), _zeros(DOUBLES)


@_operation
def load(_: Any, array: Any, _row: Any, _column: Any) -> Any:
    """Return ``array[row, column : column + WIDTH]``."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.load(_address(context, builder, array, context.get_value_type(FLOATS), *values), align=4)

    return FLOATS(array, types.intp, types.intp), generate


def _storing(streamed: bool) -> Any:
    @_operation
    def storing(_: Any, vector: Any, array: Any, _row: Any, _column: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            value, *where = values
            target = _address(context, builder, array, value.type, *where)
            instruction = builder.store(value, target, align=4 * WIDTH if streamed else 4)
            if streamed:
                instruction.set_metadata("nontemporal", builder.module.add_metadata([_I32(1)]))
            return context.get_dummy_value()

        return types.none(vector, array, types.intp, types.intp), generate

    return storing


store, stream = _storing(streamed=False), _storing(streamed=True)  # stream goes past the cache and wants aligned rows


@_operation
def prefetch(_: Any, array: Any, _row: Any, _column: Any) -> Any:
    """Ask for a cache line ahead of its use; rows beyond the end are no harm."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address = _address(context, builder, array, _I8, *values)
        kind = ir.FunctionType(ir.VoidType(), [address.type, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch")
        builder.call(function, [address, _I32(0), _I32(2), _I32(1)])  # to read, into L2, data
        return context.get_dummy_value()

    return types.none(array, types.intp, types.intp), generate


@_operation
def columns_to_line(_: Any, array: Any, _row: Any) -> Any:
    """Return how many columns of a row come before its first cache line boundary."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address = builder.ptrtoint(_address(context, builder, array, _I8, values[0], values[1], _I64(0)), _I64)
        return builder.lshr(builder.and_(builder.neg(address), _I64(4 * LINE - 1)), _I64(2))

    return types.int64(array, types.intp), generate


@_operation
def muladd(_: Any, a: Any, b: Any, c: Any) -> Any:
    """Return ``a b + c``, rounded once where the processor can; ``a`` may be a scalar."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        a, b, c = values
        return _call(builder, "fmuladd", _spread(builder, a, b.type), b, c)

    return b(a, b, c), generate


@_operation
def scaled(_: Any, y: Any, high: Any, low: Any) -> Any:
    """Return ``y (high + low)`` in float32, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        y, high, low = values
        rest = builder.fmul(_spread(builder, low, y.type), y)
        return _call(builder, "fmuladd", _spread(builder, high, y.type), y, rest)

    return y(y, high, low), generate


@_operation
def rounded(_: Any, y: Any, scale: Any, least_power: Any, magic: Any) -> Any:
    """Return ``y scale``, rounded once from float64 to a coarser number format; see ``magic_factor``."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        doubles, words = _alike(_DOUBLE, values[0].type), _alike(_I64, values[0].type)
        scale, least_power, magic = (_spread(builder, value, doubles) for value in values[1:])
        x = builder.fmul(builder.fpext(values[0], doubles), scale)
        exponent = builder.and_(builder.bitcast(x, words), _spread(builder, _I64(_EXPONENT), words))
        power = builder.bitcast(exponent, doubles)
        power = builder.select(builder.fcmp_ordered(">", power, least_power), power, least_power)
        big = builder.fmul(power, magic)
        size = builder.fsub(builder.fadd(_call(builder, "fabs", x), big), big)
        return builder.fptrunc(_call(builder, "copysign", size, x), values[0].type)

    return y(y, scale, least_power, magic), generate


def _adding_squares(first_lane: int) -> Any:
    @_operation
    def adding_squares(_: Any, sums: Any, y: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            sums, y = values
            lanes = ir.Constant(ir.VectorType(_I32, WIDTH // 2), list(range(first_lane, first_lane + WIDTH // 2)))
            half = builder.fpext(builder.shuffle_vector(y, y, lanes), sums.type)
            return _call(builder, "fmuladd", half, half, sums)

        return sums(sums, y), generate

    return adding_squares


add_low_squares, add_high_squares = _adding_squares(0), _adding_squares(WIDTH // 2)  # float64 sums of half a vector


@_operation
def total(_: Any, vector: Any) -> Any:
    """Add up the lanes, pairwise."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        parts = [builder.extract_element(values[0], _I32(lane)) for lane in range(vector.count)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    return vector.scalar(vector), generate
