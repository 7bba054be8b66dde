"""Ask a suspect, and keep every answer as it arrives.

Answers go to a SQLite file batch by batch, under the suspect's name and the text's SHA-256. So a run that is killed or
turned away loses the batch it was in, and the next run asks for the rest; the order of asking, which is drawn anew,
does not matter. The transcript lies in the same file and is written first: what it holds is every response that was
received, also the garbage, also a batch that was lost.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.encoders import check_texts, default_cache_path
from regionmarker.encoders.cache import MemoryStore, fill, text_digest
from regionmarker.encoders.vector_store import VectorStore, open_store
from regionmarker.errors import InputError, OutsideError
from regionmarker.keys.key import Key
from regionmarker.progress import Bar, bar
from regionmarker.vectors import Floats
from regionmarker.verification.answers import Answers, Exchange
from regionmarker.verification.examination import check_enough, laid_out
from regionmarker.verification.questions import (
    DEFAULT_BUDGET,
    Cost,
    Questions,
    keys_of,
    merged_texts,
    plan_all,
    plan_questions,
)
from regionmarker.verification.suspects import DEFAULT_BATCH, FileSuspect, Suspect, load_suspect

_SCHEMA = """
CREATE TABLE IF NOT EXISTS exchanges (
    id INTEGER PRIMARY KEY, suspect TEXT NOT NULL, time TEXT NOT NULL, asked BLOB NOT NULL, response TEXT NOT NULL
)
"""
_DIGEST_BYTES = 32
_BUSY = 60.0  # seconds to wait for another process that writes

Clock = Callable[[], datetime]


def ask(
    key: object,
    suspect: object,
    budget: int | None = None,
    *,
    probes: TextSet | None = None,
    cache: str | Path | bool | None = None,
    progress: bool = False,
    batch_size: int = DEFAULT_BATCH,
    seed: int | None = None,
    fresh: bool = False,
) -> Answers:
    """Ask a suspect the key's questions.

    Parameters
    ----------
    key
        A fitted marker, its key, or a :class:`~regionmarker.keys.files.KeyRing`: all its keys' questions are asked.
    suspect
        Whatever :func:`~regionmarker.verification.suspects.load_suspect` takes: a spec, a function, an object.
    budget
        How many texts to ask at the most, for each key. None asks 3,000 and, where the key's mark is graded and the
        suspect's axes do not match the clean ones, all the probes that there are: such a suspect shows less per text.
    probes
        Own probes with clean embeddings, instead of the key's reservoir.
    cache
        The SQLite file that keeps the answers; True for :func:`default_answers_path`, False for none. None keeps the
        answers of servers, which cost money, and not those of functions and local encoders.
    progress
        Draw a progress bar with the queries and the estimated tokens so far on stderr.
    batch_size
        Texts per request.
    seed
        Fixes the order of asking, for tests.
    fresh
        Ask again what is kept already; the new answers take the place of the kept ones from the first that comes.

    Returns
    -------
    Answers
        To be given to ``verify`` and ``trace``.

    Examples
    --------
    >>> from regionmarker import RegionMarker
    >>> rows = np.random.default_rng(0).standard_normal((400, 32)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> texts = [f"text {number}" for number in range(400)]
    >>> marker = RegionMarker(dimension=2, seed=1, pool=64, reservoir=256).fit(texts, embeddings=rows)
    >>> ask(marker, lambda asked: np.array([[len(text), 1.0] for text in asked]), budget=184)
    <Answers of <lambda>: 184 texts, width 2>
    """
    found, keys = load_suspect(suspect, batch_size=batch_size), keys_of(key)
    questions = [plan_questions(one, DEFAULT_BUDGET if budget is None else budget, probes, seed) for one in keys]
    answers = ask_texts(found, merged_texts(questions, seed), cache=cache, progress=progress, fresh=fresh)
    for one, asked in zip(keys, questions, strict=True):
        check_enough(one, asked, answers)
    if budget is None:
        more = further_questions(keys, questions, answers, probes, seed)
        if more:
            answers = answers.joined(ask_texts(found, more, cache=cache, progress=progress, fresh=fresh))
    return answers


def further_questions(
    keys: Sequence[Key],
    questions: Sequence[Questions],
    answers: Answers,
    probes: TextSet | None = None,
    seed: int | None = None,
) -> tuple[str, ...]:
    """Return what is asked besides: the rest of the probes of every key whose examination finds the axes unknown.

    The rule reads answers, clean vectors and hyperplanes. It comes before any target is looked up, and anyone who has
    the opened key can follow it again.
    """
    further = [
        plan_all(key, probes, seed)
        for key, asked in zip(keys, questions, strict=True)
        if laid_out(key, asked, answers.lookup).axes == "unknown"
    ]
    known = set(answers.texts)
    return tuple(text for text in (merged_texts(further, seed) if further else ()) if text not in known)


def ask_texts(
    suspect: object,
    texts: Sequence[str],
    *,
    cache: str | Path | bool | None = None,
    progress: bool = False,
    fresh: bool = False,
    now: Clock = lambda: datetime.now(UTC),
) -> Answers:
    """Ask a suspect ``texts``, each once and in this order, but for those whose answers are kept already."""
    asked = tuple(dict.fromkeys(check_texts(texts)))
    suspect = load_suspect(suspect)
    if isinstance(suspect, FileSuspect):
        return suspect.lookup(asked)
    path = answers_path(suspect, cache)
    shown = bar(f"asking {suspect.name}", len(asked), shown=progress)
    with open_answer_store(path, stored_name(suspect)) as store, shown as counted:
        reused = 0 if fresh else store.count(asked)
        if fresh:
            store.replace(asked)
        try:
            vectors = _ask_missing(suspect, store, asked, counted, now)
        except OutsideError as error:
            if path is None:
                raise
            kept = store.count(asked)
            raise OutsideError(
                f"{error}; {kept} of {len(asked)} answers are kept in {path}: ask again later to go on from there"
            ) from error
        exchanges = store.exchanges({text_digest(text) for text in asked})
    rows = np.stack(vectors) if asked else np.empty((0, 1), dtype=np.float32)
    return Answers(suspect.name, asked, rows, exchanges, reused)


def default_answers_path() -> Path:
    """Return where answers are kept unless the user says otherwise: beside the cache of embeddings.

    Examples
    --------
    >>> default_answers_path().name
    'answers.sqlite'
    """
    return default_cache_path().with_name("answers.sqlite")


def stored_name(suspect: Suspect) -> str:
    """Return the name under which a suspect's answers are kept: of a server, however its address was written."""
    return str(getattr(suspect, "stored_as", suspect.name))


def answers_path(suspect: Suspect, cache: str | Path | bool | None) -> Path | None:
    """Return the file that keeps a suspect's answers, None where they are not kept."""
    if cache is False or (cache is None and not suspect.caches_answers):
        return None
    if not suspect.is_named:
        raise InputError("keeping answers needs a name that tells this suspect from others: load_suspect(f, name=...)")
    return default_answers_path() if cache is None or cache is True else Path(cache)


def _ask_missing(
    suspect: Suspect, store: AnswerStore, texts: tuple[str, ...], counted: Bar, now: Clock
) -> list[Floats]:
    """Return the answers to all texts in order, asking for those that are not there."""

    def on_response(asked: list[str], response: str) -> None:
        time = now().astimezone(UTC).isoformat(timespec="milliseconds")
        store.record(time, b"".join(map(text_digest, asked)), response)

    tokens = 0

    def advance(rows: Sequence[int]) -> None:
        nonlocal tokens
        tokens += Cost.of([texts[row] for row in rows]).tokens
        counted.advance(len(rows))
        counted.note(f"about {tokens} tokens")

    return fill(
        store.vectors,
        texts,
        lambda some, rows: suspect.answer(some, rows, width=store.vectors.width, on_response=on_response),
        lambda: suspect.batch_size,
        advance,
    )


class _Replacing:
    """Kept answers that count no longer: the first new one that arrives removes them."""

    def __init__(self, store: VectorStore, texts: Sequence[str]) -> None:
        self._store, self._old = store, [text_digest(text) for text in texts]

    @property
    def width(self) -> int | None:
        return None if self._old else self._store.width

    def get(self, digests: Sequence[bytes]) -> dict[bytes, Floats]:
        return {} if self._old else self._store.get(digests)

    def put(self, digests: Sequence[bytes], rows: Floats) -> None:
        if self._old:
            self._store.remove(self._old)
            self._old = []
        self._store.put(digests, rows)


class AnswerStore:
    """Keeps answers as an encoder's cache keeps vectors, and the transcript in a table beside them."""

    def __init__(self, vectors: VectorStore | MemoryStore, connection: sqlite3.Connection, suspect: str) -> None:
        connection.execute(_SCHEMA)
        self.vectors: VectorStore | MemoryStore | _Replacing = vectors
        self._connection, self._suspect = connection, suspect

    def count(self, texts: Sequence[str]) -> int:
        """Return how many of these texts have an answer here."""
        return len(self.vectors.get([text_digest(text) for text in texts]))

    def replace(self, texts: Sequence[str]) -> None:
        """Let new answers to these texts take the place of the kept ones."""
        if isinstance(self.vectors, VectorStore):
            self.vectors = _Replacing(self.vectors, texts)

    def pauses(self) -> list[float]:
        """Return the seconds between one response and the next, the latest hundred."""
        query = "SELECT time FROM exchanges WHERE suspect = ? ORDER BY id DESC LIMIT 101"
        times = [datetime.fromisoformat(time) for (time,) in self._connection.execute(query, (self._suspect,))]
        return [(after - before).total_seconds() for after, before in pairwise(times)]

    def record(self, time: str, asked: bytes, response: str) -> None:
        row = (self._suspect, time, asked, response)
        self._connection.execute("INSERT INTO exchanges (suspect, time, asked, response) VALUES (?, ?, ?, ?)", row)

    def exchanges(self, digests: set[bytes]) -> tuple[Exchange, ...]:
        """Return the exchanges in which one of these texts was asked, numbered."""
        query = "SELECT time, asked, response FROM exchanges WHERE suspect = ? ORDER BY id"
        kept: list[Exchange] = []
        for time, joined, response in self._connection.execute(query, (self._suspect,)):
            asked = [joined[start : start + _DIGEST_BYTES] for start in range(0, len(joined), _DIGEST_BYTES)]
            if not digests.isdisjoint(asked):
                kept.append(Exchange(len(kept) + 1, time, tuple(digest.hex() for digest in asked), response))
        return tuple(kept)


@contextlib.contextmanager
def open_answer_store(path: Path | None, suspect: str) -> Iterator[AnswerStore]:
    """Open the file that keeps a suspect's answers; without one they are kept in memory."""
    # The prefix keeps a file that also caches the same model as an encoder from answering for the suspect.
    opened = contextlib.nullcontext(MemoryStore()) if path is None else open_store(path, f"suspect {suspect}")
    with (
        opened as vectors,
        contextlib.closing(sqlite3.connect(path or ":memory:", timeout=_BUSY, isolation_level=None)) as connection,
    ):
        yield AnswerStore(vectors, connection, suspect)
