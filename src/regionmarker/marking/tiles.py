"""Two blocks of products for compiled code, unrolled as far as the registers of this processor reach. Needs numba.

A tile is a handful of rows times a handful of table rows: each number that is loaded takes part in several products,
and each product has a running sum of its own in a register. How large tiles are depends on the processor, what they
compute does not: a sum always has sixteen lanes, which are added pairwise at its end, and carriers are added one after
the other. So a row's numbers depend neither on the processor (where it can multiply and add with one rounding) nor on
the rows beside it.
"""

from __future__ import annotations

from typing import Any

import numba as typed_numba
from llvmlite import binding, ir
from numba import types

from regionmarker.marking import simd
from regionmarker.marking.simd import WIDE, cgutils, fused, operation, spread

numba: Any = typed_numba  # typed in some versions and not in others
_BYTE, _I64, _FLOAT = ir.IntType(8), ir.IntType(64), ir.FloatType()
_VECTOR, _DOUBLES = ir.VectorType(_FLOAT, WIDE), ir.VectorType(ir.DoubleType(), WIDE // 2)


def shape() -> tuple[int, int, int]:
    """Return the tiles that fill the registers: rows and hyperplanes of one, columns of the other for six rows.

    AVX-512 has thirty-two registers of sixteen numbers; elsewhere a sum takes two or four registers.
    """
    features = numba.config.CPU_FEATURES
    wide = "+avx512f" in features if features else binding.get_host_cpu_features().get("avx512f", False)
    return (6, 4, 2 * WIDE) if wide else (3, 2, WIDE)


class _Matrix:
    """A C-ordered array inside compiled code."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.start = builder, array.data
        self.rows, self.columns = (builder.extract_value(array.shape, axis) for axis in (0, 1))

    def at(self, row: Any, column: Any, kind: ir.Type) -> Any:
        """Return where ``array[row, column]`` lies, as a pointer to ``kind``."""
        number = self.builder.add(self.builder.mul(row, self.columns), column)
        return self.builder.bitcast(self.builder.gep(self.start, [number]), kind.as_pointer())

    def load(self, row: Any, column: Any, kind: ir.Type) -> Any:
        """Return what lies there; arrays are aligned to their numbers and no better."""
        return self.builder.load(self.at(row, column, kind), align=8 if kind is _DOUBLES else 4)


def _sums(builder: Any, count: int) -> list[Any]:
    """Return room for running sums, which the compiler keeps in registers."""
    room = [cgutils.alloca_once(builder, _VECTOR) for _ in range(count)]
    for one in room:
        builder.store(ir.Constant(_VECTOR, None), one)
    return room


def _after(builder: Any, first: Any, count: int) -> list[Any]:
    """Return first, first + 1, ..."""
    return [builder.add(first, _I64(more)) for more in range(count)]


def project(rows: int, planes: int) -> Any:
    """Make the tile that adds up E[r + i] . H[g + k] over whole vectors, and writes it to u[g + k, c + i]."""

    @operation
    def tile(_: Any, E: Any, _r: Any, H: Any, _g: Any, u: Any, _c: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            arrays = [_Matrix(context, builder, signature.args[place], values[place]) for place in (0, 2, 4)]
            of_rows, of_planes = _after(builder, values[1], rows), _after(builder, values[3], planes)
            of_results = _after(builder, values[5], rows)
            sums = _sums(builder, rows * planes)
            whole = builder.and_(arrays[0].columns, _I64(-WIDE))
            with cgutils.for_range_slice(builder, _I64(0), whole, _I64(WIDE), _I64) as (j, _count):
                x = [arrays[0].load(row, j, _VECTOR) for row in of_rows]
                for k, plane in enumerate(of_planes):
                    h = arrays[1].load(plane, j, _VECTOR)
                    for i in range(rows):
                        one = sums[k * rows + i]
                        builder.store(fused(builder, x[i], h, builder.load(one)), one)
            for k, plane in enumerate(of_planes):
                for i, result in enumerate(of_results):
                    total = simd.pairwise(builder, builder.load(sums[k * rows + i]))
                    builder.store(total, arrays[2].at(plane, result, _FLOAT))
            return context.get_dummy_value()

        return types.none(E, types.intp, H, types.intp, u, types.intp), generate

    return tile


def mix(rows: int, vectors: int) -> Any:
    """Make the tile that writes y = unit e + sum_k a_k d_k of the first few rows, and a few vectors of their columns.

    e is X[r + i, j:] and y goes to y[i, j:]; what belongs to it stands in units[0, i] and a[k, i]. y y, in float64, is
    added to the eight sums of squares[i]. The carriers' parts of the same columns lie side by side in ``d``, from
    d[block, part] on. E[ahead + i, j:] is asked for.
    """

    @operation
    def tile(
        _: Any, X: Any, _r: Any, E: Any, _ahead: Any, _j: Any, d: Any, _block: Any, _part: Any, units: Any, a: Any,
        y: Any, squares: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            arrays = (0, 2, 5, 8, 9, 10, 11)
            X, E, d, units, a, y, squares = (
                _Matrix(context, builder, signature.args[place], values[place]) for place in arrays
            )
            r, ahead, j, block, part = (value for place, value in enumerate(values) if place not in arrays)
            columns = [builder.add(j, _I64(v * WIDE)) for v in range(vectors)]
            parts = [builder.add(part, _I64(v * WIDE)) for v in range(vectors)]
            sums = _sums(builder, rows * vectors)
            for i, (row, later) in enumerate(zip(_after(builder, r, rows), _after(builder, ahead, rows), strict=True)):
                unit = spread(builder, units.load(_I64(0), _I64(i), _FLOAT), _VECTOR)
                for v, column in enumerate(columns):
                    builder.store(builder.fmul(unit, X.load(row, column, _VECTOR)), sums[i * vectors + v])
                    simd.ask_for(builder, E.at(later, column, _BYTE))
            with cgutils.for_range_slice(builder, _I64(0), a.rows, _I64(1), _I64) as (k, _count):
                directions = [d.load(builder.add(block, k), place, _VECTOR) for place in parts]
                for i in range(rows):
                    amount = spread(builder, a.load(k, _I64(i), _FLOAT), _VECTOR)
                    for v, direction in enumerate(directions):
                        one = sums[i * vectors + v]
                        builder.store(fused(builder, amount, direction, builder.load(one)), one)
            for i in range(rows):
                square = squares.load(_I64(i), _I64(0), _DOUBLES)
                for v, column in enumerate(columns):
                    mixed = builder.load(sums[i * vectors + v])
                    builder.store(mixed, y.at(_I64(i), column, _VECTOR), align=4)
                    for lane in (0, WIDE // 2):
                        half = builder.fpext(simd.lanes_of(builder, mixed, lane, WIDE // 2), _DOUBLES)
                        square = fused(builder, half, half, square)
                builder.store(square, squares.at(_I64(i), _I64(0), _DOUBLES), align=8)
            return context.get_dummy_value()

        i = types.intp
        return types.none(X, i, E, i, i, d, i, i, units, a, y, squares), generate

    return tile
