"""What asking would cost, before anything is asked: texts, tokens, requests, time, money.

Nothing is sent. What is kept from earlier asking is not paid for again and does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from regionmarker.encoders.cache import CachedEncoder, text_digest
from regionmarker.encoders.vector_store import open_store
from regionmarker.vectors import Encoder
from regionmarker.verification.asking import answers_path, open_answer_store, stored_name
from regionmarker.verification.questions import Cost
from regionmarker.verification.suspects import DEFAULT_BATCH, FileSuspect, load_suspect

_GUESS = 1.0  # seconds for a request, where nothing is known
_LONGEST_PAUSE = 60.0  # seconds between two responses; a longer one was not the server's


@dataclass(frozen=True)
class Quote:
    """What asking would cost.

    Attributes
    ----------
    queries
        Texts to ask in all.
    kept
        How many of them have an answer already.
    characters, tokens, requests, seconds
        Of those that would be sent; tokens are an estimate, see :class:`~regionmarker.verification.questions.Cost`.
    measured
        Whether the time follows from earlier requests to the same server; otherwise it is a guess of a second for each.

    Examples
    --------
    >>> Quote(3000, 1000, 400_000, 100_000, 32, 32.0, measured=False).price(0.13)
    0.013
    """

    queries: int
    kept: int
    characters: int
    tokens: int
    requests: int
    seconds: float
    measured: bool

    @property
    def sent(self) -> int:
        return self.queries - self.kept

    def price(self, per_million: float) -> float:
        """Return what the tokens cost, in the money that the price of a million is in."""
        return round(self.tokens * per_million / 1e6, 6)


def quote(
    suspect: object, texts: Sequence[str], *, cache: str | Path | bool | None = None, fresh: bool = False
) -> Quote:
    """Say what it would cost to ask a suspect these texts.

    Parameters
    ----------
    suspect
        Whatever :func:`~regionmarker.verification.suspects.load_suspect` takes.
    texts
        The questions.
    cache, fresh
        As :func:`~regionmarker.verification.asking.ask` takes them.

    Examples
    --------
    >>> found = quote(lambda texts: None, ["four", "five!"])
    >>> found.queries, found.tokens, found.requests
    (2, 3, 1)
    """
    asked, found = tuple(dict.fromkeys(texts)), load_suspect(suspect)
    if isinstance(found, FileSuspect):
        return _quote(asked, (), DEFAULT_BATCH, [])
    path = answers_path(found, cache)
    if path is None or not Path(path).exists():  # a look makes no file
        return _quote(asked, asked, found.batch_size, [])
    with open_answer_store(path, stored_name(found)) as store:
        known = set() if fresh else set(store.vectors.get([text_digest(text) for text in asked]))
        pauses = store.pauses()
    return _quote(asked, [text for text in asked if text_digest(text) not in known], found.batch_size, pauses)


def quote_encoding(encoder: Encoder, texts: Sequence[str]) -> Quote:
    """Say what it would cost to embed these texts.

    Examples
    --------
    >>> class Mine:
    ...     name, batch_size = "mine", 100
    >>> quote_encoding(Mine(), ["four"] * 250).requests
    3
    """
    asked, known = list(texts), set()
    if isinstance(encoder, CachedEncoder):
        asked = list(dict.fromkeys(texts))
        if encoder.path.exists():
            with open_store(encoder.path, encoder.stored_as) as store:
                known = set(store.get([text_digest(text) for text in asked]))
        encoder = encoder.encoder
    sent = [text for text in asked if text_digest(text) not in known]
    return _quote(asked, sent, getattr(encoder, "batch_size", None) or DEFAULT_BATCH, [])


def _quote(asked: Sequence[str], sent: Sequence[str], batch_size: int, pauses: Sequence[float]) -> Quote:
    cost, requests = Cost.of(sent), -(-len(sent) // batch_size)
    usual = [pause for pause in pauses if 0 <= pause < _LONGEST_PAUSE]
    seconds = requests * (median(usual) if usual else _GUESS)
    return Quote(
        len(asked), len(asked) - len(sent), cost.characters, cost.tokens, requests, round(seconds, 1), bool(usual)
    )
