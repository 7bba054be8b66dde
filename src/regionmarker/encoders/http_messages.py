"""What goes over the wire to an OpenAI-compatible server, and what comes back: no network here."""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from regionmarker.errors import InputError, OutsideError
from regionmarker.vectors import AnyArray

KEY_VARIABLE = "OPENAI_API_KEY"
_VERSION = re.compile(r"/v\d+\w*(/|$)")
_MESSAGE = 200  # characters of a server's message that are shown
_RUN = 12  # characters in a row that a message may share with a text by chance
_KEY_RUN = 6
_CHECKED = 1 << 16  # letters of texts that a message is compared with; beyond, it would take seconds
_PAGE = 4000  # bytes of a page that are looked through for its message
_WORDS = frozenset(
    """
    a above allowed an and api are array at bad base64 batch be below body but bytes can cannot characters client
    contain contains context could count data did dimensions does embedding embeddings empty encoding
    encoding_format entity error exceed exceeded exceeds expected expects failed field fields float for format found
    from given got greater had has have however in index input inputs instead integer internal invalid is it item
    items json large larger least length less limit limited list long longer make many max maximum may message min
    minimum missing model models more most must no not null number object of on one only or over parameter payload
    per please prompt provided quota rate received reduce refused request requested requests required resulted s
    server service shorten shorter should size small smaller str string strings support supported supports
    temporarily text texts than that the this to token tokenized tokens too total truncate truncated try type unable
    unexpected unknown unprocessable unsupported up user valid value was were with you your
    """.split()  # noqa: SIM905 - a page of words is read more easily than a list
)
"""What servers say of inputs that they refuse; none of it is a customer's."""


def parse_spec(rest: str) -> tuple[str, str]:
    """Split ``URL#MODEL``.

    Examples
    --------
    >>> parse_spec("https://api.example.com/v1#large")
    ('https://api.example.com/v1', 'large')
    """
    url, _, model = rest.partition("#")
    if not url or not model:
        raise InputError("write openai:URL#MODEL, such as openai:https://api.openai.com/v1#text-embedding-3-small")
    return url, model


def endpoint_of(url: str, path_end: str = "/embeddings", *, key_variable: str = KEY_VARIABLE) -> str:
    """Return the full address of the embeddings endpoint below ``url``.

    A base with a version in its path gets ``/embeddings``, one without gets ``/v1/embeddings``, and an address that
    ends in ``/embeddings`` is taken as it is; another ``path_end`` stands for another endpoint. Errors name
    ``key_variable`` as the place of the API key.

    Examples
    --------
    >>> endpoint_of("http://127.0.0.1:8080")
    'http://127.0.0.1:8080/v1/embeddings'
    >>> endpoint_of("https://api.example.com/v1/")
    'https://api.example.com/v1/embeddings'
    >>> endpoint_of("http://127.0.0.1:7997/embeddings")
    'http://127.0.0.1:7997/embeddings'
    """
    # None of these messages repeats the address: what is wrong with it may be a secret inside it.
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InputError("the URL of the encoder cannot be read: write openai:https://HOST/v1#MODEL") from None
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable():
        raise InputError("the URL of the encoder must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None or parts.query:
        raise InputError(
            f"the URL of the encoder must hold no user, password or query: the API key belongs in {key_variable}"
        )
    path = parts.path.rstrip("/")
    if not path.endswith(path_end):
        path += path_end if _VERSION.search(path) else f"/v1{path_end}"
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def base_of(endpoint: str, path_end: str = "/embeddings") -> str:
    """Return the shortest base that :func:`endpoint_of` makes the same endpoint of.

    Examples
    --------
    >>> base_of("https://api.example.com/v1/embeddings")
    'https://api.example.com/v1'
    >>> base_of("http://127.0.0.1:7997/embeddings")
    'http://127.0.0.1:7997/embeddings'
    """
    base = endpoint.removesuffix(path_end)
    return base if endpoint_of(base, path_end) == endpoint else endpoint


def decode_answer(body: bytes, positions: Sequence[int], source: str) -> list[AnyArray]:
    """Read the vectors of a response in the order of the texts: base64 (little-endian float32) or numbers.

    Examples
    --------
    >>> decode_answer(b'{"data": [{"index": 0, "embedding": [0.6, 0.8]}]}', [0], "server")
    [array([0.6, 0.8])]
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise OutsideError(f"{source} gave an answer that is not JSON ({len(body)} bytes)") from None
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise OutsideError(f"{source} gave an answer without a list of embeddings in it")
    if len(data) != len(positions):
        raise OutsideError(f"{source} was asked {len(positions)} texts and gave {len(data)} vectors")
    vectors: dict[int, AnyArray] = {}
    for item in data:
        index = item.get("index")
        if type(index) is not int or not 0 <= index < len(data) or index in vectors:
            raise OutsideError(f"{source} gave embeddings whose numbers are not 0 to {len(data) - 1}, each once")
        vectors[index] = _decode_vector(item.get("embedding"), positions[index], source)
    return [vectors[index] for index in range(len(data))]


def _decode_vector(embedding: Any, position: int, source: str) -> AnyArray:
    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
        vector = np.asarray(embedding)
        if isinstance(embedding, list) and vector.ndim == 1 and vector.dtype.kind in "fiu":
            return vector
    except (binascii.Error, ValueError, OverflowError):
        pass
    raise OutsideError(f"{source} gave something that is not a vector for text {position}")


def server_message(body: bytes) -> str:
    """Find the message in the body of an error: OpenAI's shape, the flat one of TEI, FastAPI's, or plain text and HTML.

    Examples
    --------
    >>> server_message(b'{"error": {"message": "no such model", "type": "x", "param": null, "code": null}}')
    'no such model'
    >>> server_message(b"<html><h1>502 Bad Gateway</h1></html>")
    '502 Bad Gateway'
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(html.unescape(_visible(body[:_PAGE].decode(errors="replace"))).split())
    for key in ("error", "message", "detail"):
        if isinstance(answer, dict) and answer.get(key):
            answer = answer[key]
    return " ".join((answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)).split())


def _visible(page: str) -> str:
    """Take the tags out of a page, and what stands in scripts and styles; in one pass, whatever the page is."""
    shown, hidden, place = [], "", 0
    for tag in re.finditer(r"<(/?\w*)[^<>]*>", page):
        if not hidden:
            shown.append(page[place : tag.start()])
        name = tag[1].lower()
        if name in ("script", "style") and not hidden:
            hidden = f"/{name}"
        elif name == hidden:
            hidden = ""
        place = tag.end()
    return " ".join([*shown, "" if hidden else page[place:]])


def redact(message: str, key: str, texts: Sequence[str]) -> str:
    """Shorten a server's message, without the API key and the texts that servers like to repeat in it.

    Where there is much of them, what the message shares with the texts cannot be found in reasonable time; then only
    words that servers use stay.

    Examples
    --------
    >>> redact("wrong key sk-12345678 for 'my secret sentence'", "sk-12345678", ["my secret sentence"])
    "wrong key [...] for '[...]'"
    """
    message = message[: _MESSAGE + 100]
    hidden = np.zeros(len(message), dtype=bool)
    _hide_runs(message, key, _KEY_RUN, hidden)
    if sum(map(len, texts)) > _CHECKED:
        _hide_unlisted(message, hidden)
    else:
        plain = [" ".join(text.split()) for text in texts]
        escaped = [json.dumps(text)[1:-1] for text in plain]
        _hide_runs(message, "\0".join([*plain, *escaped]), _RUN, hidden)
        for short in {text for text in plain if 3 <= len(text) < _RUN and text in message}:
            for match in re.finditer(rf"(?<!\w){re.escape(short)}(?!\w)", message):
                hidden[match.start() : match.end()] = True
    shown = "".join("\0" if hide else letter for letter, hide in zip(message, hidden, strict=True))
    return re.sub("\0+", "[...]", shown)[:_MESSAGE]


def _hide_runs(message: str, secret: str, run: int, hidden: AnyArray) -> None:
    """Hide what ``message`` shares with ``secret`` over ``run`` letters or more; servers shorten what they repeat."""
    run = min(run, len(secret))
    for start in range(len(message) - run + 1 if run else 0):
        if message[start : start + run] in secret:
            hidden[start : start + run] = True


def _hide_unlisted(message: str, hidden: AnyArray) -> None:
    """Hide all words but those that servers use, and short numbers: the texts are too long to be compared with it."""
    for match in re.finditer(r"\w+", message):
        word = match[0]
        if word.lower() not in _WORDS and not re.fullmatch(r"[0-9]{1,6}", word):
            hidden[match.start() : match.end()] = True


def seconds_to_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return what ``retry-after-ms`` or ``Retry-After`` (seconds, or a date) ask for.

    Examples
    --------
    >>> seconds_to_wait({"retry-after": "2"}), seconds_to_wait({"retry-after-ms": "250"}), seconds_to_wait({})
    (2.0, 0.25, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,12}(\.\d*)?", value):
            return float(value) * unit
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    return max(0.0, date.timestamp() - (time.time() if now is None else now))
