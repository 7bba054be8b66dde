"""A spec string becomes a paraphraser.

    table:FILE.parquet                made beforehand: columns original and text
    table:FILE.parquet@CORPUS         the same with row numbers of a corpus: columns row and text
    apertium:spa,cat                  round trips through these languages, offline
    nllb:MODEL                        English to French and back by an NLLB model
    dipper:MODEL                      the trained paraphraser DIPPER, lex 40 and div 40
    chat:URL#MODEL                    any OpenAI-compatible chat model with the paper's prompt

Another package adds its own by an entry point of the group ``regionmarker.paraphrasers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from regionmarker.errors import InputError
from regionmarker.specs import Registry


@runtime_checkable
class Paraphraser(Protocol):
    """Says the same in other words, or tries to."""

    @property
    def name(self) -> str:
        """The spec that loads it again."""
        ...

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        """Return for each text as many paraphrases as it has, ``most`` at the most; they need not differ."""
        ...


PARAPHRASERS = Registry(
    "paraphraser",
    "regionmarker.paraphrasers",
    {
        "table": "regionmarker.benchmark.attacks.paraphrasers.table:TableParaphraser",
        "apertium": "regionmarker.benchmark.attacks.paraphrasers.apertium:ApertiumParaphraser",
        "nllb": "regionmarker.benchmark.attacks.paraphrasers.neural:NLLBParaphraser",
        "dipper": "regionmarker.benchmark.attacks.paraphrasers.neural:DipperParaphraser",
        "chat": "regionmarker.benchmark.attacks.paraphrasers.chat:ChatParaphraser",
    },
    {"table": ":FILE", "chat": ":URL#MODEL"},
)


def load_paraphraser(spec: str | Paraphraser) -> Paraphraser:
    """Load a paraphraser by its spec; an object that is one already is returned as it is.

    Examples
    --------
    >>> load_paraphraser("apertium:spa").name
    'apertium:spa'
    """
    paraphraser = PARAPHRASERS.load(spec) if isinstance(spec, str) else spec
    if not isinstance(paraphraser, Paraphraser):
        raise InputError(
            "a paraphraser is a spec or an object with a name and paraphrase(texts, most), "
            f"but a {type(paraphraser).__name__} was given"
        )
    return paraphraser
