"""Reading an upstream's answer while it arrives gives what reading it whole would give."""

from __future__ import annotations

import base64
import itertools
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.upstreams.answer_reader import BLOCK, AnswerReader

WIDTH = 5
WIDTHS = (WIDTH, 6)  # rows of a width that three divides are decoded together
STEADY = settings(derandomize=True, deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def rows_of(count: int, width: int = WIDTH) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, width)).astype(np.float32)


def body_of(rows: np.ndarray, *, coded: bool, spaced: bool = True, order=None, **fields) -> bytes:
    embeddings = [base64.b64encode(row.tobytes()).decode() if coded else row.tolist() for row in rows]
    items = [{"object": "embedding", "embedding": one, "index": i} for i, one in enumerate(embeddings)]
    data = [items[i] for i in (order if order is not None else range(len(items)))]
    answer = {"data": data, "usage": {"prompt_tokens": 3, "total_tokens": 3}, "model": "m", **fields}
    return json.dumps(answer, indent=1 if spaced else None, separators=None if spaced else (",", ":")).encode()


def read(body: bytes, count: int, cuts=(), width: int = WIDTH) -> np.ndarray:
    blocks = []

    def take(rows, first):
        blocks.append((first, len(rows)))
        return [row.tobytes() for row in rows]

    reader = AnswerReader(count, width, take)
    places = [0, *sorted(cuts), len(body)]
    for start, end in itertools.pairwise(places):
        reader.feed(body[start:end])
    vectors = reader.finish()
    assert sum(size for _, size in blocks) == count
    assert [first for first, _ in blocks] == list(np.cumsum([0, *(size for _, size in blocks)])[:-1])
    return np.stack([np.frombuffer(vector, np.float32) for vector in vectors])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize("spaced", [True, False])
def test_every_place_to_cut_the_body(coded, spaced, width):
    rows = rows_of(2, width)
    body = body_of(rows, coded=coded, spaced=spaced)
    for cut in range(len(body) + 1):
        np.testing.assert_array_equal(read(body, 2, [cut], width), rows)


def test_space_may_stand_before_the_colon():
    rows = rows_of(2)
    body = body_of(rows, coded=True).replace(b'"embedding":', b'"embedding" \n :\t')
    for cut in range(len(body) + 1):
        np.testing.assert_array_equal(read(body, 2, [cut]), rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_slash_may_be_escaped(width):
    rows = rows_of(80, width)
    body = body_of(rows, coded=True)
    assert b"/" in body
    np.testing.assert_array_equal(read(body.replace(b"/", b"\\/"), 80, width=width), rows)


@STEADY
@given(st.data())
def test_any_cuts_any_order_any_count(data):
    count, width = data.draw(st.integers(1, 2 * BLOCK + 3)), data.draw(st.sampled_from(WIDTHS))
    rows = rows_of(count, width)
    order = data.draw(st.permutations(range(count)))
    body = body_of(rows, coded=data.draw(st.booleans()), spaced=data.draw(st.booleans()), order=order)
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=20))
    np.testing.assert_array_equal(read(body, count, cuts, width), rows)


@STEADY
@given(st.data())
def test_a_damaged_answer_is_refused_or_is_another_good_answer(data):
    """No crash, and never a vector that the bytes do not hold."""
    width = data.draw(st.sampled_from(WIDTHS))
    body = bytearray(body_of(rows_of(3, width), coded=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(bytes(body), 3, width=width)
    except ApiError as failure:
        assert failure.code == "upstream_invalid_response"  # noqa: PT017
        return
    items = json.loads(body.decode(errors="replace"), strict=False)["data"]
    for item in items:
        one = item["embedding"]
        row = np.frombuffer(base64.b64decode(one), "<f4") if isinstance(one, str) else np.float32(one)
        np.testing.assert_array_equal(found[item["index"]], row)


@pytest.mark.parametrize(
    "extra",
    [
        {"note": 'a "embedding": [1, 2] inside a text'},
        {"usage": {"prompt_tokens": 1, "total_tokens": 1, "details": {"kind": "embedding"}}},
        {"object": "embedding"},
    ],
)
def test_the_word_embedding_elsewhere_does_no_harm(extra):
    rows = rows_of(2)
    np.testing.assert_array_equal(read(body_of(rows, coded=True, **extra), 2), rows)


@pytest.mark.parametrize("extra", [{"more": {"embedding": [1.0] * WIDTH}}, {"embedding": "AAAA"}])
def test_a_vector_outside_the_data_is_refused(extra):
    with pytest.raises(ApiError):
        read(body_of(rows_of(2), coded=True, **extra), 2)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("letter", "kind"), [(b"!", "base64"), (b"=", "base64"), (b"", "width")])
def test_the_one_bad_vector_of_many_is_named(letter, kind, width):
    rows = rows_of(9, width)
    bad = base64.b64encode(rows[7].tobytes())
    changed = bad[:4] + letter + bad[5:] if letter else base64.b64encode(rows[7, :-1].tobytes())
    with pytest.raises(ApiError, match="vector 7 ") as caught:
        read(body_of(rows, coded=True).replace(bad, changed), 9, width=width)
    assert caught.value.kind == kind


@pytest.mark.parametrize("cuts", [(), range(0, 200, 7)])
def test_a_long_and_a_short_vector_do_not_make_up_for_each_other(cuts):
    """At a width of 3 k + 2 a text of the usual length may hold a byte more or less than a vector."""
    rows = rows_of(2)
    raw, size = rows.tobytes(), 4 * WIDTH
    texts = [base64.b64encode(raw[: size + 1]), base64.b64encode(raw[size + 1 :])]
    assert len(texts[0]) == len(texts[1]) == len(base64.b64encode(rows[0].tobytes()))
    body = body_of(rows, coded=True)
    for row, text in zip(rows, texts, strict=True):
        body = body.replace(base64.b64encode(row.tobytes()), text)
    with pytest.raises(ApiError, match=r"vector 0 has width 5\.25"):
        read(body, 2, cuts)


@pytest.mark.parametrize("beginning", [b'"embedding" ', b'"embedding":', b'"embedding": "', b'"embedding": ['])
def test_what_never_ends_is_refused_before_it_is_long(beginning):
    reader = AnswerReader(2048, WIDTH, lambda rows, first: [b""] * len(rows))
    reader.feed(b'{"data":[{' + beginning)
    reader.feed(b" " * 400)
    with pytest.raises(ApiError, match="vector 0 is longer than"):
        reader.feed(b" " * 1000)


def test_a_row_cannot_be_used_twice():
    body = body_of(rows_of(2), coded=False).replace(b'"embedding": [', b'"embedding": 0, "other": [', 1)
    with pytest.raises(ApiError):
        read(body, 2)


def test_blocks_are_marked_as_they_come():
    """The first block is out before the last byte is in."""
    rows, seen = rows_of(3 * BLOCK), []
    body = body_of(rows, coded=True)
    reader = AnswerReader(len(rows), WIDTH, lambda block, first: seen.append(first) or [b""] * len(block))
    reader.feed(body[: len(body) // 2])
    assert seen == [0]


def test_what_is_not_a_vector_is_not_parsed_without_bounds():
    """A hundred megabytes of items without vectors would be parsed at once, in seconds in which nobody is served."""
    reader = AnswerReader(2048, 1536, lambda rows, first: [row.tobytes() for row in rows])
    reader.feed(b'{"data":[')

    def feed() -> None:
        for _ in range(200):
            reader.feed(b'{"embedding":0,"index":0},' * 4000)

    with pytest.raises(ApiError, match="bytes beside its vectors") as failure:
        feed()
    assert failure.value.kind == "too_large"
    assert reader._size < 4 << 20
