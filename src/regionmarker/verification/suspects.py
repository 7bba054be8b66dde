"""Whom to ask.

    https://HOST/v1#MODEL     any OpenAI-compatible server (also http://, and openai:URL#MODEL)
    file:answers.parquet      answers that somebody collected by hand (.parquet, .jsonl or .csv: text, embedding)
    wordllama, ...            any spec that :func:`regionmarker.load_encoder` takes
    a function                list[str] -> (n, D') array; or an object with ``encode``

A suspect is an encoder that nobody trusts: the bytes of each response are digested before they are read, an answer
may have any length and any width, and nothing but texts is sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from regionmarker.encoders import check_answer, load_encoder
from regionmarker.errors import InputError, OutsideError
from regionmarker.vectors import Floats
from regionmarker.verification.answers import Answers

if TYPE_CHECKING:
    from regionmarker.encoders.openai import OpenAIEncoder

API_KEY_VARIABLE = "REGIONMARKER_SUSPECT_API_KEY"
DEFAULT_BATCH = 64

OnResponse = Callable[[list[str], str], None]
"""Called with the texts of a request and the SHA-256 of the response's bytes, before the response is read."""


@runtime_checkable
class Suspect(Protocol):
    """Who answers texts with vectors."""

    @property
    def name(self) -> str:
        """What transcripts, caches and reports call this suspect."""

    @property
    def caches_answers(self) -> bool:
        """Whether answers are kept on disk unless the user says otherwise: those that cost money or time."""

    @property
    def is_named(self) -> bool:
        """Whether the name tells this suspect from others, as keeping its answers needs."""

    @property
    def batch_size(self) -> int:
        """How many texts to ask at a time."""

    def answer(
        self, texts: list[str], positions: Sequence[int], *, width: int | None, on_response: OnResponse
    ) -> Floats:
        """Answer one batch: (n, D') float32. ``positions`` are the texts' numbers, for the messages of errors."""


class FunctionSuspect:
    """A function, or the ``encode`` of an object, that answers texts with an array.

    Examples
    --------
    >>> suspect = FunctionSuspect(lambda texts: np.array([[len(text), 1.0] for text in texts]), name="lengths")
    >>> suspect.answer(["a"], [0], width=None, on_response=lambda texts, digest: print(texts, digest[:8])).shape
    ['a'] 14750ed2
    (1, 2)
    """

    def __init__(
        self, function: Callable[[list[str]], object], *, name: str = "", batch_size: int = DEFAULT_BATCH
    ) -> None:
        self._function = function
        self.is_named = bool(name)
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.caches_answers = False
        self.batch_size = batch_size

    def answer(
        self, texts: list[str], positions: Sequence[int], *, width: int | None, on_response: OnResponse
    ) -> Floats:
        given = self._function(texts)
        on_response(texts, array_digest(given))
        return check_answer(given, positions, source=self.name, width=width)


class EndpointSuspect:
    """An OpenAI-compatible server.

    The client waits out what a server says is passing (429, 5xx, silence). Here it is also asked again, as often, when
    it answers with garbage: not JSON, too few vectors, vectors that are not finite.
    """

    is_named = True
    caches_answers = True

    def __init__(self, encoder: OpenAIEncoder, *, name: str = "", attempts: int = 6, backoff: float = 0.5) -> None:
        self._encoder, self._attempts, self._backoff = encoder, attempts, backoff
        self.name = name or encoder.name

    @property
    def stored_as(self) -> str:
        """What keeps its answers apart from others': one name for all ways to write its address."""
        return self._encoder.name

    @property
    def batch_size(self) -> int:
        """How many texts to ask at a time; shrinks where the server says so."""
        return self._encoder.batch_size or DEFAULT_BATCH

    def answer(
        self, texts: list[str], positions: Sequence[int], *, width: int | None, on_response: OnResponse
    ) -> Floats:
        import stamina

        self._encoder.on_response = lambda asked, body: on_response(asked, sha256(body).hexdigest())
        self._encoder.width = width
        for attempt in stamina.retry_context(
            on=_is_garbage,
            attempts=self._attempts,
            timeout=None,
            wait_initial=self._backoff,
            wait_jitter=self._backoff,
            wait_max=30.0,
        ):
            with attempt:
                return self._encoder.encode(texts, positions=positions)
        raise AssertionError("unreachable")


class FileSuspect:
    """Answers that are in a file already; see :meth:`regionmarker.verification.answers.Answers.from_file`."""

    is_named = True
    caches_answers = False
    batch_size = DEFAULT_BATCH

    def __init__(self, path: Path) -> None:
        if path.is_file() and path.suffix not in (*ANSWER_FORMATS, ".txt"):  # of .txt the reader says what is missing
            kinds = ", ".join(ANSWER_FORMATS)
            raise InputError(f"{path} is not a file of answers: give one of {kinds}, with the columns text, embedding")
        self.answers = Answers.from_file(path)
        self.path = path
        self._as_written = {text.strip(): text for text in self.answers.texts}

    @property
    def name(self) -> str:
        """Who is said to have answered, or else the file."""
        return self.answers.suspect

    def lookup(self, texts: Sequence[str]) -> Answers:
        """Return the answers to ``texts``; those that the file lacks are missing."""
        return Answers(self.name, tuple(texts), self._find(texts), self.answers.exchanges)

    def _find(self, texts: Sequence[str]) -> Floats:
        # Spaces around a text get lost on the way through text files and forms.
        known = set(self.answers.texts)
        return self.answers.lookup(
            [text if text in known else self._as_written.get(text.strip(), text) for text in texts]
        )

    def answer(
        self,
        texts: list[str],
        positions: Sequence[int],
        *,
        width: int | None,  # noqa: ARG002 - the file has one width only
        on_response: OnResponse,
    ) -> Floats:
        found = self._find(texts)
        if np.isnan(found).any():
            place = positions[int(np.argmax(np.isnan(found[:, 0])))]
            raise InputError(f"{self.path} has no answer to text {place}: ask it and add the row")
        on_response(texts, array_digest(found))
        return found


ANSWER_FORMATS = (".parquet", ".jsonl", ".csv")


def load_suspect(suspect: object, *, name: str = "", batch_size: int = DEFAULT_BATCH, **options: Any) -> Suspect:
    """Make a suspect of a spec, a function or an object with ``encode``.

    Parameters
    ----------
    suspect
        ``"https://HOST/v1#MODEL"``, ``"file:answers.parquet"``, an encoder spec, a callable list[str] -> (n, D') array,
        an object with ``encode``, or a suspect.
    name
        What to call a function or an object; needed to keep its answers on disk.
    batch_size
        Texts per request.
    **options
        Passed to the client of a server, such as ``timeout``, ``attempts`` and ``backoff``, or to an encoder.

    Notes
    -----
    A server gets the API key in ``REGIONMARKER_SUSPECT_API_KEY``, and none where that is not set: a key that is good
    elsewhere is not for a suspect's eyes.

    Examples
    --------
    >>> load_suspect("https://api.example.com/v1#large").name
    'https://api.example.com/v1#large'
    >>> load_suspect("https://api.example.com/v1")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: the suspect's address must name a model: write https://HOST/v1#MODEL
    """
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, but is {batch_size}")
    if isinstance(suspect, str):
        if name:
            raise InputError("name= is for functions and objects: a suspect that is given by its spec has that name")
        return _from_spec(suspect, batch_size, options)
    if options:
        raise InputError(f"a suspect that is an object takes no options, but {', '.join(sorted(options))} was given")
    if isinstance(suspect, Suspect):
        return suspect
    if hasattr(suspect, "on_response"):
        return EndpointSuspect(suspect)  # type: ignore[arg-type]  # an OpenAIEncoder, whose module is slow to import
    function = getattr(suspect, "encode", suspect)
    if isinstance(suspect, type) or not callable(function):
        raise InputError(
            "a suspect is a spec, a function list[str] -> array or an object with encode, but "
            f"{suspect.__name__ if isinstance(suspect, type) else type(suspect).__name__} was given"
        )
    own = getattr(suspect, "name", None)
    return FunctionSuspect(function, name=name or (own if isinstance(own, str) else ""), batch_size=batch_size)


def array_digest(answer: object) -> str:
    """Return the SHA-256 of an array's type, shape and bytes: what stands for a response that never was bytes."""
    try:
        array = np.asarray(answer)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.hasobject:
        return sha256(repr(answer).encode(errors="replace")).hexdigest()  # no array, and so no answer: see check_answer
    return sha256(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes()).hexdigest()


def _from_spec(spec: str, batch_size: int, options: dict[str, Any]) -> Suspect:
    head, _, rest = spec.partition(":")
    if head == "file":
        if options:
            raise InputError(f"a file of answers takes no options, but {', '.join(sorted(options))} was given")
        return FileSuspect(Path(rest))
    if head in ("http", "https", "openai"):
        return _endpoint(rest if head == "openai" else spec, batch_size, options)
    if Path(spec).suffix in ANSWER_FORMATS:  # no encoder is called so
        raise InputError(f"{spec} is no suspect: did you mean --suspect file:{spec}, a file of answers?")
    encoder = load_encoder(spec, **options)
    return FunctionSuspect(encoder.encode, name=encoder.name, batch_size=batch_size)


def _endpoint(address: str, batch_size: int, options: dict[str, Any]) -> EndpointSuspect:
    from regionmarker.encoders.openai import OpenAIEncoder

    url, _, model = address.partition("#")
    if not model:
        raise InputError("the suspect's address must name a model: write https://HOST/v1#MODEL")
    # Never OPENAI_API_KEY: the investigator's own key is not for the accused's server.
    key = os.environ.get(API_KEY_VARIABLE, "")
    usual = {"api_key": key, "batch_size": batch_size, "key_variable": API_KEY_VARIABLE, "called": address}
    encoder = OpenAIEncoder(url, model, **{**usual, **options})
    again = {name: options[name] for name in ("attempts", "backoff") if name in options}
    return EndpointSuspect(encoder, name=address, **again)  # as it was typed: reports are about an address


def _is_garbage(error: Exception) -> bool:
    """Tell a wrong answer, which another attempt may mend, from a refusal, which the client has judged already."""
    from regionmarker.encoders.http_client import EndpointError

    return isinstance(error, OutsideError) and not isinstance(error, EndpointError)
