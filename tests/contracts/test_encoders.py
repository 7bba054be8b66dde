"""What every encoder promises, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.encoders import CachedEncoder, load_encoder
from regionmarker.encoders.base import UNIT_TOLERANCE
from regionmarker.errors import InputError
from regionmarker.vectors import Encoder

pytestmark = pytest.mark.usefixtures("no_key_of_the_developer")

TEXTS = [
    "a cat sat on the mat",
    "Der Zug fährt um halb acht ab.",
    "東京は今日も雨です",
    "👩‍👩‍👧 family, café, naïve, e\u0301",
    "a cat sat on the mat",
    "1 + 1 = 2",
    "  spaces around  ",
    "line one\nline two\ttab",
    "x",
    "a much longer text " * 40,
    "مرحبا بالعالم",
    'quotes " and \\ backslashes \x00 and a NUL',
]

Make = Callable[[int | None], Encoder]


@pytest.fixture(params=["wordllama", "object", "openai", "cached wordllama", "cached openai", "sentence-transformers"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make the encoder, with a batch size or with its own."""
    kind = request.param

    def wordllama(size: int | None) -> Any:
        return load_encoder("wordllama", **({"batch_size": size} if size else {}))

    def from_object(size: int | None) -> Any:
        mine = request.getfixturevalue("hashes")
        mine.batch_size = size
        return load_encoder(mine)

    def openai(size: int | None) -> Any:
        return request.getfixturevalue("remote")(**({"batch_size": size} if size else {}))

    def sentence_transformers(size: int | None) -> Any:
        return load_encoder(
            f"sentence-transformers:{request.getfixturevalue('minilm')}", **({"batch_size": size} if size else {})
        )

    if kind == "sentence-transformers":
        request.getfixturevalue("minilm")
        request.getfixturevalue("quiet_torch")
    kinds = {
        "wordllama": wordllama,
        "object": from_object,
        "openai": openai,
        "sentence-transformers": sentence_transformers,
        "cached wordllama": lambda size: CachedEncoder(wordllama(size), tmp_path / f"{size}.sqlite"),
        "cached openai": lambda size: CachedEncoder(openai(size), tmp_path / f"{size}.sqlite"),
    }
    return kinds[kind]


@pytest.fixture
def same(request: pytest.FixtureRequest) -> Callable[[Any, Any], bool]:
    """Bit for bit, but for torch, which pads to the longest text of a batch and sums in float32."""
    if request.node.callspec.params["make"] == "sentence-transformers":
        return lambda left, right: left.shape == right.shape and bool(np.allclose(left, right, atol=2e-6))
    return lambda left, right: np.array_equal(left.view(np.uint32), right.view(np.uint32))


def test_is_an_encoder_with_a_name(make: Make) -> None:
    encoder = make(None)
    assert isinstance(encoder, Encoder)
    assert encoder.name
    assert encoder.name in repr(encoder)


def test_gives_finite_float32_rows_of_unit_length(make: Make) -> None:
    rows = make(None).encode(TEXTS)
    assert rows.dtype == np.float32
    assert rows.ndim == 2
    assert len(rows) == len(TEXTS)
    assert rows.flags.c_contiguous
    assert rows.flags.writeable
    assert np.isfinite(rows).all()
    assert np.abs(np.linalg.norm(rows.astype(np.float64), axis=1) - 1).max() < UNIT_TOLERANCE


def test_keeps_the_order(make: Make, same: Any) -> None:
    encoder = make(None)
    forwards, backwards = encoder.encode(TEXTS), encoder.encode(TEXTS[::-1])
    assert same(forwards, backwards[::-1].copy())


def test_the_batch_size_does_not_matter(make: Make, same: Any) -> None:
    whole = make(None).encode(TEXTS)
    for size in (1, 5):
        assert same(make(size).encode(TEXTS), whole)


def test_one_text_alone_gets_the_row_that_it_gets_in_company(make: Make, same: Any) -> None:
    encoder = make(None)
    whole = encoder.encode(TEXTS)
    for row in (0, 2, 9):
        assert same(encoder.encode([TEXTS[row]]), whole[row : row + 1])


def test_the_same_text_gets_the_same_row(make: Make) -> None:
    rows = make(None).encode(TEXTS)
    assert np.array_equal(rows[0], rows[4])
    assert len({row.tobytes() for row in rows}) == len(TEXTS) - 1


def test_asking_again_gives_the_same_bits(make: Make) -> None:
    encoder = make(None)
    assert encoder.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()


def test_no_texts_give_no_rows_of_the_right_width(make: Make) -> None:
    encoder = make(None)
    width = encoder.encode(["a text"]).shape[1]
    assert encoder.encode([]).shape == (0, width)
    assert encoder.encode([]).dtype == np.float32


def test_takes_any_sequence(make: Make) -> None:
    encoder = make(None)
    expected = encoder.encode(["one", "two"])
    assert np.array_equal(encoder.encode(("one", "two")), expected)
    assert np.array_equal(encoder.encode(np.array(["one", "two"])), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("empty", ["", " ", "\n\t ", "\u3000"])
def test_an_empty_text_is_refused_by_its_position(make: Make, empty: str) -> None:
    with pytest.raises(InputError, match=r"^text 2 is empty"):
        make(1).encode(["one", "two", empty])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "one string was given"),
        (["one", None], "text 1 must be a string, but is of type NoneType"),
        (["one", b"two"], "text 1 must be a string, but is of type bytes"),
        (["half \ud83d"], "text 0 holds half a surrogate pair"),
        (7, "but a int was given"),
    ],
)
def test_what_is_no_text_is_refused(make: Make, texts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(None).encode(texts)
