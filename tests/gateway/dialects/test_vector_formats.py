"""Vectors are quantised after marking, as services do, and written as numbers or as base64."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from regionmarker.gateway.dialects.vector_formats import VECTOR_FORMATS, encoder_of, quantised, split_formats


@pytest.fixture
def rows():
    drawn = np.random.default_rng(3).standard_normal((50, 256)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_signs_are_packed_eight_to_a_byte_first_one_highest(rows):
    packed = quantised(rows, "ubinary")
    np.testing.assert_array_equal(np.unpackbits(packed, axis=1), rows > 0)
    signed = quantised(rows, "binary")
    assert signed.dtype == np.int8
    np.testing.assert_array_equal(signed.astype(int), packed.astype(int) - 128)


def test_int8_keeps_angles_and_uint8_is_int8_and_128(rows):
    small = quantised(rows, "int8").astype(np.float64)
    cosines = (small * rows).sum(axis=1) / np.linalg.norm(small, axis=1)
    assert cosines.min() > 0.999
    np.testing.assert_array_equal(quantised(rows, "uint8").astype(int), small + 128)


def test_int8_is_cut_and_does_not_wrap():
    lone = np.zeros((2, 256), dtype=np.float32)
    lone[0, 0], lone[1, 0] = 1.0, -1.0
    assert quantised(lone, "int8")[:, 0].tolist() == [127, -128]
    assert quantised(lone, "uint8")[:, 0].tolist() == [255, 0]


@pytest.mark.parametrize("output_type", ["int8", "uint8", "binary", "ubinary"])
def test_base64_holds_the_same_bytes_as_the_numbers(rows, output_type):
    numbers, coded = (VECTOR_FORMATS[output_type, flag].encode(rows) for flag in (False, True))
    kind = np.int8 if output_type in ("int8", "binary") else np.uint8
    for number, code in zip(numbers, coded, strict=True):
        np.testing.assert_array_equal(np.frombuffer(base64.b64decode(code), kind), json.loads(number))


def test_several_formats_at_once_come_apart_again(rows):
    formats = [VECTOR_FORMATS["float", False], VECTOR_FORMATS["float", True], VECTOR_FORMATS["binary", False]]
    together = [split_formats(vector) for vector in encoder_of(formats)(rows)]
    assert [list(forms) for forms in zip(*together, strict=True)] == [
        [bytes(vector) for vector in one.encode(rows)] for one in formats
    ]
