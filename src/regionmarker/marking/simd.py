"""Machine vectors for numba: the few operations that the compiled engines are written in. Needs numba.

The published mark takes eight float32 numbers a vector, which is one register of AVX2: it waits for memory, and sixteen
were no faster. The graded mark, which waits for its products, takes sixteen, one register of AVX-512. LLVM splits a
vector where registers are smaller. Arithmetic takes scalars, too, for the columns that fill no vector, with bit for bit
the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as numba_cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

WIDTH, WIDE = 8, 16
LINE = 16  # float32 numbers in a cache line

cgutils: Any = numba_cgutils  # typed in some versions of numba and not in others
_EXPONENT = 0x7F80_0000
_Type: Any = types.Type
_Model: Any = models.PrimitiveModel
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()


def operation(infer: Callable[..., Any]) -> Any:
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


FLOATS, WIDE_FLOATS = Lanes(types.float32, WIDTH), Lanes(types.float32, WIDE)
DOUBLES, WIDE_DOUBLES = Lanes(types.float64, WIDTH // 2), Lanes(types.float64, WIDE // 2)


def alike(scalar: ir.Type, model: ir.Type) -> ir.Type:
    """Return the type with ``scalar`` elements and the shape of ``model``."""
    return ir.VectorType(scalar, model.count) if isinstance(model, ir.VectorType) else scalar


def spread(builder: Any, value: Any, shape: ir.Type) -> Any:
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


def address(context: Any, builder: Any, kind: Any, to: ir.Type, array: Any, row: Any, column: Any) -> Any:
    """Return where ``array[row, column]`` lies, as a pointer to ``to``."""
    unpacked = context.make_array(kind)(context, builder, array)
    place = cgutils.get_item_pointer(context, builder, kind, unpacked, [row, column], wraparound=False)
    return builder.bitcast(place, to.as_pointer())


def fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return ``a b + c``, rounded once where the processor can."""
    return _call(builder, "fmuladd", a, b, c)


def magnitude(builder: Any, x: Any) -> Any:
    """Return |x|."""
    return _call(builder, "fabs", x)


def power_below(builder: Any, x: Any, least: Any) -> Any:
    """Return the power of two at or below |x|, ``least`` at the least."""
    words = alike(_I32, x.type)
    bits = builder.and_(builder.bitcast(x, words), spread(builder, _I32(_EXPONENT), words))
    power, least = builder.bitcast(bits, x.type), spread(builder, least, x.type)
    return builder.select(builder.fcmp_ordered(">", power, least), power, least)


def lanes_of(builder: Any, vector: Any, first: int, count: int) -> Any:
    """Return some neighbouring lanes as a vector of their own."""
    places = ir.Constant(ir.VectorType(_I32, count), list(range(first, first + count)))
    return builder.shuffle_vector(vector, vector, places)


def pairwise(builder: Any, vector: Any) -> Any:
    """Add up the lanes: the upper half to the lower, until one is left."""
    count = vector.type.count
    while count > 1:
        count //= 2
        vector = builder.fadd(lanes_of(builder, vector, 0, count), lanes_of(builder, vector, count, count))
    return builder.extract_element(vector, _I32(0))


def ask_for(builder: Any, place: Any) -> None:
    """Ask for a cache line ahead of its use."""
    kind = ir.FunctionType(ir.VoidType(), [place.type, _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch")
    builder.call(function, [place, _I32(0), _I32(2), _I32(1)])  # to read, into L2, data


def _zeros(kind: Lanes) -> Any:
    @operation
    def zeros(_: Any) -> Any:
        def generate(context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
            return ir.Constant(context.get_value_type(kind), None)

        return kind(), generate

    return zeros


no_floats, no_doubles = _zeros(FLOATS), _zeros(DOUBLES)
no_wide_floats, no_wide_doubles = _zeros(WIDE_FLOATS), _zeros(WIDE_DOUBLES)


def _loading(kind: Lanes) -> Any:
    @operation
    def loading(_: Any, array: Any, _row: Any, _column: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            place = address(context, builder, array, context.get_value_type(kind), *values)
            return builder.load(place, align=kind.scalar.bitwidth // 8)

        return kind(array, types.intp, types.intp), generate

    return loading


load, load_wide = _loading(FLOATS), _loading(WIDE_FLOATS)  # array[row, column : column + WIDTH]; WIDE
load_doubles = _loading(WIDE_DOUBLES)


def _storing(streamed: bool) -> Any:
    @operation
    def storing(_: Any, vector: Any, array: Any, _row: Any, _column: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            value, *where = values
            target = address(context, builder, array, value.type, *where)
            instruction = builder.store(value, target, align=4 * value.type.count if streamed else 4)
            if streamed:
                instruction.set_metadata("nontemporal", builder.module.add_metadata([_I32(1)]))
            return context.get_dummy_value()

        return types.none(vector, array, types.intp, types.intp), generate

    return storing


store, stream = _storing(streamed=False), _storing(streamed=True)  # stream goes past the cache and wants aligned rows


@operation
def prefetch(_: Any, array: Any, _row: Any, _column: Any) -> Any:
    """Ask for a cache line ahead of its use; rows beyond the end are no harm."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        ask_for(builder, address(context, builder, array, _I8, *values))
        return context.get_dummy_value()

    return types.none(array, types.intp, types.intp), generate


@operation
def columns_to_line(_: Any, array: Any, _row: Any) -> Any:
    """Return how many columns of a row come before its first cache line boundary."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        place = builder.ptrtoint(address(context, builder, array, _I8, values[0], values[1], _I64(0)), _I64)
        return builder.lshr(builder.and_(builder.neg(place), _I64(4 * LINE - 1)), _I64(2))

    return types.int64(array, types.intp), generate


@operation
def muladd(_: Any, a: Any, b: Any, c: Any) -> Any:
    """Return ``a b + c``, rounded once where the processor can; ``a`` may be a scalar."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        a, b, c = values
        return _call(builder, "fmuladd", spread(builder, a, b.type), b, c)

    return b(a, b, c), generate


@operation
def scaled(_: Any, y: Any, high: Any, low: Any) -> Any:
    """Return ``y (high + low)`` in float32, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        y, high, low = values
        rest = builder.fmul(spread(builder, low, y.type), y)
        return _call(builder, "fmuladd", spread(builder, high, y.type), y, rest)

    return y(y, high, low), generate


@operation
def rounded(_: Any, y: Any, high: Any, low: Any, least_power: Any, magic: Any) -> Any:
    """Return ``y (high + low)``, rounded once to a coarser number format; see ``number_format.magic_factor``.

    The product is first cut to float32 and its last bit set where anything was cut off ("round to odd"): that bit lies
    far below those of the format, so rounding what is left rounds the whole product.
    """

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        y, (high, low, least_power, magic) = values[0], (spread(builder, value, values[0].type) for value in values[1:])
        words = alike(_I32, y.type)

        def word(number: int) -> Any:
            return spread(builder, _I32(number), words)

        product = fused(builder, high, y, builder.fmul(low, y))
        rest = fused(builder, low, y, fused(builder, high, y, builder.fneg(product)))
        bits, more = builder.bitcast(product, words), builder.bitcast(rest, words)
        cut = builder.sext(builder.fcmp_unordered("!=", rest, ir.Constant(y.type, None)), words)  # -1 or 0
        nearer = builder.and_(cut, builder.ashr(builder.xor(bits, more), word(31)))  # -1 where |product| is too large
        odd = builder.bitcast(builder.or_(builder.add(bits, nearer), builder.and_(cut, word(1))), y.type)
        big = builder.fmul(power_below(builder, odd, least_power), magic)
        size = builder.fsub(builder.fadd(magnitude(builder, odd), big), big)
        return _call(builder, "copysign", size, y)

    return y(y, high, low, least_power, magic), generate


@operation
def chosen(_: Any, _first: Any, a: Any, b: Any) -> Any:
    """Return the first of two where the flag says so, else the second; by arithmetic, so that both take as long."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        first, a, b = values
        words = alike(_I32, a.type)
        mask = spread(builder, builder.neg(builder.zext(first, _I32)), words)
        either = [builder.bitcast(value, words) for value in (a, b)]
        both = builder.or_(builder.and_(either[0], mask), builder.and_(either[1], builder.not_(mask)))
        return builder.bitcast(both, a.type)

    return a(types.boolean, a, b), generate


def _adding_squares(*, upper: bool) -> Any:
    @operation
    def adding_squares(_: Any, sums: Any, y: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            sums, y = values
            count = sums.type.count
            half = builder.fpext(lanes_of(builder, y, count if upper else 0, count), sums.type)
            return fused(builder, half, half, sums)

        return sums(sums, y), generate

    return adding_squares


add_low_squares, add_high_squares = _adding_squares(upper=False), _adding_squares(upper=True)  # sums in float64


@operation
def total(_: Any, vector: Any) -> Any:
    """Add up the lanes, pairwise."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return pairwise(builder, values[0])

    return vector.scalar(vector), generate
