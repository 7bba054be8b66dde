"""What a hostile upstream answers and a hostile client sends: cases drawn by number, the same in every run."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from studies.gateway.stub import unit_rows

WIDTH = 64
MODEL = "hostile-model"
ROWS = unit_rows(512, WIDTH, seed=3)
COHERE_TYPES = ("float", "int8", "uint8", "binary", "ubinary", "base64")
_FIELDS = {
    "/v1/embeddings": ["input", "model", "user", "dimensions", "encoding_format", "output_dtype", "\0", "unknown"],
    "/v2/embed": [
        "texts",
        "model",
        "input_type",
        "embedding_types",
        "output_dimension",
        "truncate",
        "images",
        "unknown",
    ],
    "/api/embed": ["input", "model", "truncate", "dimensions", "keep_alive", "options", "unknown"],
}
_ODD: list[Any] = [
    None, True, -1, 0, 2**31, 2**63, 10**400, 1e308, 0.5, "", "a", "9" * 5000, [], [[]], {}, {"a": []}, [None] * 9,
]  # fmt: skip


@dataclass(frozen=True)
class Reply:
    """What the upstream does with one request."""

    name: str
    pieces: tuple[bytes, ...]  # written one after the other
    pause: float = 0.0  # seconds before each piece but the first
    hang: bool = False  # whether to say nothing more instead of closing


def good(count: int, *, coded: bool = True) -> dict[str, Any]:
    """Return an answer as it should be, with the first ``count`` rows."""
    vectors = [base64.b64encode(row.tobytes()).decode() if coded else row.tolist() for row in ROWS[:count]]
    data = [{"object": "embedding", "index": i, "embedding": one} for i, one in enumerate(vectors)]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": MODEL, "usage": usage}


def http(body: bytes, status: int = 200, *headers: str, length: int | None = None) -> bytes:
    """Return a whole response."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def draw_reply(number: int, count: int) -> Reply:
    """Draw one fault."""
    dice = random.Random(number)
    answer = good(count, coded=dice.random() < 0.7)
    kinds: list[Callable[[random.Random, dict[str, Any]], Reply]] = [
        _status, _flipped, _cut, _spliced, _odd_value, _odd_value, _odd_vector, _odd_vector, _odd_head, _garbage,
    ]  # fmt: skip
    if number % 100 == 0:
        return Reply("slow", tuple(bytes([byte]) for byte in http(b"{}")), 0.2)
    if number % 100 == 1:
        return Reply("silent", (), hang=True)
    return dice.choice(kinds)(dice, answer)


def _status(dice: random.Random, answer: dict[str, Any]) -> Reply:
    status = dice.choice(
        [201, 204, 301, 302, 304, 400, 401, 403, 404, 408, 409, 413, 418, 422, 424, 429, 500, 502, 503, 504, 599]
    )
    said = dice.choice(["batch size 9 > 1", "encoding_format", "no", "x" * 70_000, "\x1b[31m\0é", "<script>" * 900, ""])
    body = dice.choice(
        [said, json.dumps({"error": {"message": said}}), json.dumps({"detail": [said] * 9}), json.dumps(answer)]
    )
    headers = [f"retry-after: {dice.choice(['0', '1', '9' * 400, '-1', 'soon'])}", "location: http://127.0.0.1:9/"]
    return Reply(f"status {status}", (http(body.encode(), status, *headers),))


def _flipped(dice: random.Random, answer: dict[str, Any]) -> Reply:
    body = bytearray(json.dumps(answer).encode())
    for _ in range(dice.randint(1, 12)):
        body[dice.randrange(len(body))] = dice.randrange(256)
    return Reply("flipped bytes", (http(bytes(body)),))


def _cut(dice: random.Random, answer: dict[str, Any]) -> Reply:
    body = json.dumps(answer).encode()
    part = body[: dice.randrange(len(body))]
    return Reply("cut", (http(part, length=len(body) if dice.random() < 0.5 else None),))


def _spliced(dice: random.Random, answer: dict[str, Any]) -> Reply:
    body = json.dumps(answer).encode()
    first, last = sorted(dice.randrange(len(body)) for _ in range(2))
    middle = body[first:last]
    changed = dice.choice(
        [body[:first] + body[last:], body[:last] + middle + body[last:], body[:last] + b'"embedding":[' * 50]
    )
    return Reply("spliced", (http(changed),))


def _odd_value(dice: random.Random, answer: dict[str, Any]) -> Reply:
    place = dice.choice(["usage", "tokens", "model", "data", "index", "embedding", "item", "more"])
    item, odd = dice.choice(answer["data"]), dice.choice(_ODD)
    if place == "tokens":
        answer["usage"] = {"prompt_tokens": odd, "total_tokens": odd}
    elif place in ("index", "embedding"):
        item[place] = odd
    elif place == "item":
        answer["data"][0] = odd
    elif place == "more":
        answer["data"] += [dict(item)] * dice.choice([1, 5000])
    else:
        answer[place] = odd
    return Reply(f"odd {place}", (http(json.dumps(answer).encode()),))


def _odd_vector(dice: random.Random, answer: dict[str, Any]) -> Reply:
    row = ROWS[0].copy()
    hole = row.copy()
    hole[dice.randrange(WIDTH)] = dice.choice([np.nan, np.inf, 3e38, -np.inf])
    odd = dice.choice(
        [
            hole,
            row * 0,
            row * 5,
            row[:-1],
            np.append(row, 0),
            row.astype(">f4"),
            row.astype("<f8"),
            row.astype("<f2"),
            row * 1.005,
        ]
    )
    value = base64.b64encode(odd.tobytes()).decode() if dice.random() < 0.6 else json.loads(json.dumps(odd.tolist()))
    dice.choice(answer["data"])["embedding"] = value
    return Reply("odd vector", (http(json.dumps(answer).encode()),))


def _odd_head(dice: random.Random, answer: dict[str, Any]) -> Reply:
    body = json.dumps(answer).encode()
    chunked = b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n"
    return Reply(
        "odd head",
        (
            dice.choice(
                [
                    http(gzip.compress(b" " * (1 << 22)), 200, "content-encoding: gzip"),
                    http(body, 200, f"x: {'a' * 200_000}"),
                    http(body, 200, *(f"x{n}: a" for n in range(5000))),
                    http(body, length=-5),
                    http(body, length=10**30),
                    http(body, 200, "content-length: 3"),
                    http(body, 200, "transfer-encoding: chunked"),
                    chunked + b"fffffffffffffff\r\n" + body,
                    chunked + b"5\r\n" + body,
                    chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
                    b"HTTP/1.1 100 Continue\r\n\r\n" * 2000 + http(body),
                ]
            ),
        ),
    )


def _garbage(dice: random.Random, answer: dict[str, Any]) -> Reply:
    return Reply(
        "garbage", (dice.choice([b"", b"\0" * 100, dice.randbytes(5000), json.dumps(answer).encode(), b"HTTP/1.1 "]),)
    )


# ---- clients


def question(texts: list[str], **fields: Any) -> bytes:
    """Return the body of a request."""
    return json.dumps({"model": MODEL, "input": texts, "encoding_format": "base64", **fields}).encode()


@dataclass(frozen=True)
class Way:
    """One way to ask for embeddings: a dialect and what it is to answer with."""

    route: str
    body: Callable[[list[str]], bytes]
    rows: Callable[[Any], Iterator[tuple[str, list[Any]]]]  # from an answer: each type with its rows
    shape: list[str]  # the fields of an error


def _openai(answer: Any, output_type: str = "float") -> Iterator[tuple[str, list[Any]]]:
    yield output_type, [item["embedding"] for item in answer["data"]]


_ERROR = ["error"]
WAYS = (
    Way("/v1/embeddings", question, _openai, _ERROR),
    *(
        Way(
            "/v1/embeddings",
            partial(question, output_dtype=kind, encoding_format=coding),
            partial(_openai, output_type=kind),
            _ERROR,
        )
        for kind in ("int8", "uint8", "binary", "ubinary")
        for coding in ("float", "base64")
    ),
    Way(
        "/v2/embed",
        lambda texts: json.dumps({"model": MODEL, "texts": texts, "embedding_types": list(COHERE_TYPES)}).encode(),
        lambda answer: iter(answer["embeddings"].items()),
        ["message"],
    ),
    Way(
        "/api/embed",
        lambda texts: json.dumps({"model": MODEL, "input": texts}).encode(),
        lambda answer: iter([("float", answer["embeddings"])]),
        _ERROR,
    ),
)
"""Every dialect, and every type of answer."""


def post(
    body: bytes, *headers: str, length: int | str | None = None, route: str = "/v1/embeddings", method: str = "POST"
) -> bytes:
    """Return a whole request."""
    lines = [
        f"{method} {route} HTTP/1.1",
        "host: h",
        *headers,
        f"content-length: {len(body) if length is None else length}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def draw_request(number: int) -> bytes:
    """Draw the bytes of one hostile client."""
    dice = random.Random(10_000 + number)
    way = WAYS[number % len(WAYS)]
    whole = post(way.body(["a text", "another"]), route=way.route)
    kind = dice.randrange(10)
    if kind == 0:
        broken = bytearray(whole)
        for _ in range(dice.randint(1, 8)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        return bytes(broken)
    if kind == 1:
        return whole[: dice.randrange(len(whole))] + dice.choice([b"", b"\r\n\r\n", b"\0"])
    if kind == 2:
        return dice.choice(
            [dice.randbytes(2000), b"\r\n" * 1000, b"\x16\x03\x01" + dice.randbytes(200), b"GET / HTTP/0.9\r\n\r\n"]
        )
    if kind == 3:
        length = dice.choice(["0" * 9000 + "5", "-1", "1e3", "9" * 30, "+5", "0x10", "5, 5", " ", "99999999"])
        return post(way.body(["a"]), length=length, route=way.route)
    if kind == 4:
        many = [f"x-{n}: {'a' * dice.randint(0, 400)}" for n in range(dice.choice([50, 150, 3000]))]
        return post(way.body(["a"]), *many, route=way.route)
    if kind == 5:
        sizes = dice.choice([b"zz", b"-1", b"5;" + b"a" * 90_000, b"ffffffffffffffffff", b"%x" % 10])
        return (
            f"POST {way.route} HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n".encode()
            + sizes
            + b"\r\n"
            + b"{" * 10
        )
    if kind == 6:
        path = dice.choice(
            ["/", "*", "/%00", "/v1/models/" + "a" * 5000, "//", "/..%2f", "http://[", "/console", "/\xff", "/metrics"]
        )
        method = dice.choice(["GET", "POST", "PUT", "OPTIONS", "CONNECT", "TRACE", "HEAD", "BREW", "DELETE"])
        return f"{method} {path} HTTP/1.1\r\nhost: h\r\n\r\n".encode("latin-1")
    if kind == 7:
        return whole * dice.choice([2, 5, 40])
    if kind == 8:
        return post(
            json.dumps({**json.loads(way.body(["a"])), dice.choice(_FIELDS[way.route]): dice.choice(_ODD)}).encode(),
            route=way.route,
        )
    heads = [
        "upgrade: websocket\r\nconnection: upgrade", "expect: 100-continue", "content-type: text/plain",
        "content-encoding: gzip", "authorization: Bearer " + "a" * 9000, "authorization: Basic \xff\xfe",
        "x-forwarded-for: " + "1.1.1.1," * 900, "transfer-encoding: chunked", "connection: close",
        "traceparent: " + "\x01" * 40,
    ]  # fmt: skip
    return whole.replace(b"host: h", dice.choice(heads).encode("latin-1"))
