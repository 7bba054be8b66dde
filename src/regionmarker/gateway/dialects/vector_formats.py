"""How a served vector is written: in which numbers, and as a JSON list or as base64.

What is not ``float`` is quantised here, from the marked vector: an upstream is never asked for it, because a mark
cannot be added to what has been rounded away. ``binary`` and ``ubinary`` are the signs, eight to a byte, the first one
highest, as Cohere, Mistral and Voyage have them; a ``binary`` byte is the ``ubinary`` one less 128. No service says how
it scales ``int8``. Here the scale depends on the width alone, so that dot products of any two answers can be compared:
a vector of unit length has entries of about 1 / sqrt(D), and eight times that is the largest number that is not cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import orjson
import pybase64

from regionmarker.vectors import AnyArray, Floats

EncodedVector = bytes | memoryview
"""One vector as it is sent, without the quotes around it."""
Encode = Callable[[Floats], list[EncodedVector]]

OutputType = Literal["float", "int8", "uint8", "binary", "ubinary"]
OUTPUT_TYPES: tuple[str, ...] = get_args(OutputType)

_WIDEST = 8.0  # times 1 / sqrt(D): beyond it an entry is cut
_BITS = 8


class VectorFormat(NamedTuple):
    """How vectors are written."""

    encode: Encode
    quote: bytes  # what stands around each
    multiple_of: int = 1  # what the number of dimensions has to be


def quantised(rows: Floats, output_type: str) -> AnyArray:
    """Return rows (n, D) of unit length as ``int8``, ``uint8``, ``binary`` or ``ubinary``; the last two (n, D / 8).

    Examples
    --------
    >>> row = np.float32([[0.6, -0.8, 0, 0, 0, 0, 0, 0.001]])
    >>> quantised(row, "int8").tolist(), quantised(row, "uint8").tolist()
    ([[76, -102, 0, 0, 0, 0, 0, 0]], [[204, 26, 128, 128, 128, 128, 128, 128]])
    >>> quantised(row, "ubinary").tolist(), quantised(row, "binary").tolist()
    ([[129]], [[1]])
    """
    if output_type in ("binary", "ubinary"):
        packed: AnyArray = np.packbits(rows > 0, axis=1)
        return packed if output_type == "ubinary" else (packed ^ 0x80).view(np.int8)  # less 128
    largest = min(1.0, _WIDEST / float(np.sqrt(rows.shape[1])))
    steps: AnyArray = np.clip(np.rint(rows * np.float32(127.0 / largest)), -128, 127).astype(np.int8)
    return steps if output_type == "int8" else steps.view(np.uint8) ^ 0x80  # more by 128


def as_base64(rows: Floats) -> list[EncodedVector]:
    """Return each row (n, D) in base64.

    Examples
    --------
    >>> as_base64(np.float32([[1.0, 0.0]]))
    [b'AACAPwAAAAA=']
    """
    rows = np.ascontiguousarray(rows, dtype="<f4")
    if rows.shape[1] % 3:
        return [pybase64.b64encode(row.data) for row in rows]
    coded = memoryview(pybase64.b64encode(rows.data))  # three numbers are sixteen letters: no padding between rows
    size = rows.shape[1] // 3 * 16
    return [coded[start : start + size] for start in range(0, len(coded), size)]


def as_numbers(rows: AnyArray) -> list[EncodedVector]:
    """Return each row (n, D) as a JSON list of the shortest numbers that read back as the same.

    Examples
    --------
    >>> as_numbers(np.float32([[0.1, 1.0]]))
    [b'[0.1,1.0]']
    """
    return [orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) for row in np.ascontiguousarray(rows)]


def _quantised_format(output_type: str, base64: bool) -> VectorFormat:
    def encode(rows: Floats) -> list[EncodedVector]:
        small = quantised(rows, output_type)
        return [pybase64.b64encode(row.data) for row in small] if base64 else as_numbers(small)

    return VectorFormat(encode, b'"' if base64 else b"", _BITS if output_type.endswith("binary") else 1)


VECTOR_FORMATS = {
    ("float", False): VectorFormat(as_numbers, b""),
    ("float", True): VectorFormat(as_base64, b'"'),
    **{
        (output_type, base64): _quantised_format(output_type, base64)
        for output_type in OUTPUT_TYPES[1:]
        for base64 in (False, True)
    },
}
"""By type, and whether it is base64: of little-endian float32, or of the bytes of the other types."""

_BETWEEN = b"\n"  # neither a JSON list nor base64 holds one


def encoder_of(formats: Sequence[VectorFormat]) -> Encode:
    """Return what writes rows in one format, or in several at once; :func:`split_formats` takes them apart.

    Examples
    --------
    >>> encode = encoder_of([VECTOR_FORMATS["float", False], VECTOR_FORMATS["int8", False]])
    >>> [[bytes(form) for form in split_formats(vector)] for vector in encode(np.float32([[1.0, 0.0]]))]
    [[b'[1.0,0.0]', b'[127,0]']]
    """
    if len(formats) == 1:
        return formats[0].encode
    return lambda rows: [_BETWEEN.join(forms) for forms in zip(*(one.encode(rows) for one in formats), strict=True)]


def split_formats(vector: EncodedVector) -> list[memoryview]:
    """Return the forms of a vector that was written in several formats, uncopied: answers may be large."""
    whole = bytes(vector)  # itself, where it is bytes
    view, forms, start = memoryview(whole), [], 0
    while (end := whole.find(_BETWEEN, start)) >= 0:
        forms.append(view[start:end])
        start = end + 1
    return [*forms, view[start:]]
