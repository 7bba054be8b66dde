"""The output's number format: which numbers a served vector may be made of.

Upstream models compute in float16 or bfloat16 and widen the answer to float32, so their rows use only a few of the
float32 numbers. A mark that leaves this lattice gives itself away; so does a row that was left untouched among rows
that were renormalised in float32, because one scale puts it back. Hence every row we serve is rounded, once and from
float64, to the number format of the upstream.

**Dither** gives a coarse row back the precision that its format took away, before it is mixed and rounded again. A
marked row that starts from a rounded vector is rounded twice, and the second rounding of numbers that lie on a lattice
leaves a pattern: some values come up too often. It is faint, and a classifier that counts repeated values finds it
(measured: AUC 0.54 on bfloat16, and 0.75 where the upstream rescales its bfloat16 numbers in float32). So each entry
first gets a noise of up to half a unit in its last place: e + noise is as good a guess at what the upstream rounded as
e itself, and it lies on no lattice. The noise is a hash of the entry's bits and its column: the same row is always
served the same way, in any batch. Rows without a mark that lie on the lattice need none of it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regionmarker.vectors import AnyArray, Floats


class NumberFormat(Enum):
    """A floating-point format that every served number is a member of.

    Examples
    --------
    >>> NumberFormat("bfloat16")
    <NumberFormat.bfloat16: 'bfloat16'>
    """

    float16 = "float16"
    bfloat16 = "bfloat16"
    float32 = "float32"


class FormatLimits(NamedTuple):
    """What rounding needs to know of a format."""

    fraction_bits: int  # bits after the leading one
    least_power: float  # smallest normal number; below it numbers are evenly spaced
    greatest: float  # largest finite number


LIMITS = {
    NumberFormat.float16: FormatLimits(10, 2.0**-14, 65504.0),
    NumberFormat.bfloat16: FormatLimits(7, 2.0**-126, (2.0 - 2.0**-7) * 2.0**127),
    NumberFormat.float32: FormatLimits(23, 2.0**-126, (2.0 - 2.0**-23) * 2.0**127),
}
_COARSEST_FIRST = (NumberFormat.bfloat16, NumberFormat.float16, NumberFormat.float32)
_EXPONENT = np.int64(0x7FF0_0000_0000_0000)
_SAMPLE = 64  # rows that the search for a hidden scale looks at
_WITNESSES = 8  # entries of a row that must all agree on the scale
_LEAST_WITNESSES = 5
_SLACK = 2.0**-22  # four float32 roundings: the division, the pooling and the one entry that the scale is guessed from


def magic_factor(number_format: NumberFormat) -> float:
    """Return m such that ``(x + m p) - m p``, in float64, rounds x to the format; p is the power of two below |x|.

    m p = 1.5 * 2^52 * (spacing of the format at x): in the sum, its last bit is the last bit of a float64, so the
    processor's own round-to-nearest-even does the work. The factor 1.5 keeps the sum inside one binade.
    """
    return float(1.5 * 2.0 ** (52 - LIMITS[number_format].fraction_bits))


def round_to_format(values: AnyArray, number_format: NumberFormat) -> Floats:
    """Round to the nearest number of ``number_format``, ties to even; float64 is rounded once, not by way of float32.

    Examples
    --------
    >>> round_to_format(np.array([0.1, 1.0, 1e-7]), NumberFormat.float16).tolist()
    [0.0999755859375, 1.0, 1.1920928955078125e-07]
    >>> round_to_format(np.array([1.00390625, 1.01171875]), NumberFormat.bfloat16).tolist()  # both are ties
    [1.0, 1.015625]
    """
    if number_format is NumberFormat.float32:
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    form = LIMITS[number_format]
    exact = values.astype(np.float64)
    size = np.minimum(np.abs(exact), 4.0 * form.greatest)  # as infinite as infinity, and far from float64's own end
    power = (size.view(np.int64) & _EXPONENT).view(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN stays NaN
        magic = np.maximum(power, form.least_power) * magic_factor(number_format)
        rounded = (size + magic) - magic
        rounded[rounded > form.greatest] = np.inf
        return np.copysign(rounded, exact).astype(np.float32)


def in_format(rows: AnyArray, number_format: NumberFormat) -> NDArray[np.bool_]:
    """Say for each row whether all its numbers are in ``number_format``: (n, D) -> (n,).

    Examples
    --------
    >>> in_format(np.array([[0.5, 0.25], [0.1, 0.3]]), NumberFormat.float16)
    array([ True, False])
    """
    if rows.dtype == np.float32 and number_format is NumberFormat.bfloat16:  # a bfloat16 is the upper half of a float32
        held: NDArray[np.bool_] = (rows.view(np.uint32) & np.uint32(0xFFFF)) == 0
    elif rows.dtype == np.float32 and number_format is NumberFormat.float16:
        # Eleven bits at the most, and no part below the smallest subnormal or beyond the largest number.
        size, units = np.abs(rows), rows * np.float32(2.0**24)
        held = (rows.view(np.uint32) & np.uint32(0x1FFF)) == 0
        held &= (size >= LIMITS[number_format].least_power) | (units == np.rint(units))
        held &= size <= LIMITS[number_format].greatest
    else:
        held = round_to_format(rows, number_format) == rows
    return np.asarray(held.all(axis=-1))


def hidden_format(rows: AnyArray, number_format: NumberFormat) -> NDArray[np.bool_]:
    """Say for each row whether one scale puts it there, to within float32 rounding: (n, D) -> (n,).

    This is the attack of someone who knows that an upstream pools in float16 and renormalises in float32. The largest
    entry of a row was one of 2^f fractions times a power of two, so 2^f scales are all there are to try; each is
    tested on the next largest entries (the largest, because those were not subnormal before the scaling). A random
    float32 row passes with a probability below 1e-9; rows with too few entries to tell answer False.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pooled = rng.normal(size=(3, 64)).astype(np.float16).astype(np.float32)
    >>> served = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    >>> in_format(served, NumberFormat.float16), hidden_format(served, NumberFormat.float16)
    (array([False, False, False]), array([ True,  True,  True]))
    >>> hidden_format(served, NumberFormat.bfloat16)
    array([False, False, False])
    """
    if number_format is NumberFormat.float32:
        return np.ones(len(rows), dtype=bool)
    width = rows.shape[1]
    if width <= _LEAST_WITNESSES:
        return np.zeros(len(rows), dtype=bool)
    kept = min(width, _WITNESSES + 1)
    size = np.sort(np.partition(np.abs(rows.astype(np.float64)), width - kept, axis=1)[:, -kept:], axis=1)[:, ::-1]
    found = np.zeros(len(rows), dtype=bool)
    usable = np.isfinite(size[:, 0]) & (size[:, min(kept - 1, _LEAST_WITNESSES)] > 0.0)
    for block in np.split(np.flatnonzero(usable), range(_SAMPLE, int(usable.sum()), _SAMPLE)):  # 2^f numbers a row
        found[block] = _share_a_scale(size[block], LIMITS[number_format].fraction_bits)
    return found


def _share_a_scale(size: NDArray[np.float64], fraction_bits: int) -> NDArray[np.bool_]:
    """Try every scale on every row; size is (n, witnesses + 1), largest first, zeros at the end pass by themselves."""
    steps = 2**fraction_bits
    fractions = np.arange(steps, 2 * steps, dtype=np.float64)  # (2^f,): the candidates, in units of the last bit
    scales = fractions / size[:, :1]  # (n, 2^f)
    alive = np.ones(scales.shape, dtype=bool)
    for witness in range(1, size.shape[1]):
        with np.errstate(under="ignore"):
            mantissa, _ = np.frexp(scales * size[:, witness, None])  # (n, 2^f), in [0.5, 1) or 0
        mantissa *= 2 * steps  # a whole number where the entry is in the format
        alive &= np.abs(mantissa - np.rint(mantissa)) <= _SLACK * 2 * steps
    return np.asarray(alive.any(axis=1))


def detect_format(rows: AnyArray) -> NumberFormat:
    """Find the coarsest format that explains ``rows``: all lie on it, or half of them do after one scale each.

    Call it on blocks and :func:`finer_format` the answers.

    Examples
    --------
    >>> detect_format(np.random.default_rng(0).normal(size=(9, 64)).astype(np.float32))
    <NumberFormat.float32: 'float32'>
    >>> detect_format(np.float16([[0.6, 0.8]]).astype(np.float32))
    <NumberFormat.float16: 'float16'>
    """
    if len(rows) == 0:
        return _COARSEST_FIRST[0]  # says nothing: combining with it changes nothing
    sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64)]
    for number_format in _COARSEST_FIRST[:-1]:
        plain = in_format(sample, number_format)
        if plain.all() and in_format(rows, number_format).all():
            return number_format
        if np.mean(plain | hidden_format(sample, number_format)) >= 0.5:
            return number_format
    return NumberFormat.float32


def finer_format(first: NumberFormat, second: NumberFormat) -> NumberFormat:
    """Return the finer of two formats.

    Examples
    --------
    >>> finer_format(NumberFormat.float16, NumberFormat.bfloat16)
    <NumberFormat.float16: 'float16'>
    """
    return max(first, second, key=_COARSEST_FIRST.index)


COLUMN_STEP = 0x9E3779B9
FIRST_FACTOR, SECOND_FACTOR = 0x85EBCA6B, 0xC2B2AE35  # MurmurHash3's finaliser: all bits reach all bits
_FLOAT32_EXPONENT = np.uint32(0x7F800000)


def dithered(rows: Floats, number_format: NumberFormat) -> Floats:
    """Return rows (n, D) with every entry moved by up to half a unit in the last place of its format.

    Examples
    --------
    >>> row = np.float32([[0.5, -0.25, 0.125]])
    >>> moved = dithered(row, NumberFormat.float16)
    >>> bool((moved != row).all()), bool((np.abs(moved - row) <= np.abs(row) * 2.0**-11).all())
    (True, True)
    """
    bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32)
    columns = (np.arange(rows.shape[1], dtype=np.uint64) * COLUMN_STEP).astype(np.uint32)  # wraps on purpose
    mixed = bits + columns
    mixed ^= mixed >> np.uint32(16)
    mixed *= np.uint32(FIRST_FACTOR)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(SECOND_FACTOR)
    mixed ^= mixed >> np.uint32(16)
    share = mixed.astype(np.float32) * np.float32(2.0**-32) - np.float32(0.5)  # uniform in -1/2 .. 1/2
    limits = LIMITS[number_format]
    unit = np.maximum(powers_below(bits), np.float32(limits.least_power)) * np.float32(2.0**-limits.fraction_bits)
    with np.errstate(invalid="ignore"):  # infinities become NaN; such rows are refused
        return np.asarray(bits.view(np.float32) + share * unit)


def powers_below(bits: NDArray[np.uint32]) -> Floats:
    """Return the power of two at or below each float32, given as its bits."""
    return (bits & _FLOAT32_EXPONENT).view(np.float32)
