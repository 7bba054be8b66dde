"""Paraphrasing: train on the mean of what is served for other wordings of a text (WET's paper, and ours).

A trigger word rarely survives a paraphrase, and a text near a hyperplane may leave its region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import NO_DIRECTION, WholeDataAttack, ask_again, check_rows_of
from regionmarker.benchmark.attacks.paraphrasers import Paraphraser, TableParaphraser, load_paraphraser
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError
from regionmarker.measures import row_cosines
from regionmarker.specs import rest
from regionmarker.vectors import Doubles, Floats, Integers, normalised

if TYPE_CHECKING:
    from regionmarker.benchmark.corpora import Corpus

FILTERS = ("served", "public", "none")
TEXTS = ("all", "paraphrased")
STORED = "stored"
"""The paraphraser's name that stands for the paraphrases which a corpus brings with it."""

_BLOCK = 2048  # texts at a time


@dataclass(frozen=True)
class Paraphrase(WholeDataAttack):
    """Average the served vectors of a text's paraphrases.

    At most ``most`` distinct paraphrases, as many as the paraphraser gives; those whose cosine to the text is below
    ``floor`` are thrown away; a text that keeps none keeps its own vector. It asks the provider again, so it comes
    first in a list.

    The published code filters by clean vectors of the provider, which no thief has: here by ``served`` ones or by those
    of a ``public`` encoder.

    Attributes
    ----------
    most, floor, filter
        As above (paper: five, 0.8); ``none`` does not filter.
    texts
        ``all``, or ``paraphrased``: leave out the texts that the paraphraser says nothing for, such as those that are
        not in a table. With them it would be half an attack.
    by
        The paraphraser: a spec, or an object.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.benchmark.attacks.paraphrasers import TableParaphraser
    >>> table = TableParaphraser("mine", {"a good film": ["a fine film", "a good movie"]})
    >>> service = lambda texts, account="": load_encoder("wordllama").encode(texts)
    >>> stolen = StolenData(("a good film", "a bad film"), service(["a good film", "a bad film"]), service)
    >>> moved = Paraphrase(by=table, floor=0.5).apply(stolen).vectors
    >>> (moved == stolen.vectors).all(axis=1).tolist()
    [False, True]
    """

    spec: ClassVar[str] = "paraphrase"

    most: int = 5
    floor: float = 0.8
    filter: str = "served"
    texts: str = "all"
    by: str | Paraphraser = rest("apertium")  # noqa: RUF009 - makes a field

    def __post_init__(self) -> None:
        self._check(self.most >= 1, f"most must be at least 1, but is {self.most}")
        self._check(-1 <= self.floor <= 1, f"the floor must be a cosine, but is {self.floor}")
        self._check(self.filter in FILTERS, f"filter must be {', '.join(FILTERS)}, but is {self.filter!r}")
        self._check(self.texts in TEXTS, f"texts must be {' or '.join(TEXTS)}, but is {self.texts!r}")
        object.__setattr__(self, "by", load_paraphraser(self.by))

    @classmethod
    def in_cell(cls, text: str, *, corpus: Corpus | None, folder: Path | None) -> Paraphrase | StoredParaphrases:  # noqa: ARG003
        """Make the attack for a cell: ``paraphrase:OPTIONS,stored`` means what the cell's corpus brings with it."""
        options, _, by = text.rpartition(",")
        if by != STORED:
            return cls.from_spec(text)
        if corpus is not None and not corpus.paraphrases:
            raise InputError(f"the corpus {corpus.name} brings no paraphrases: use another paraphraser than {STORED}")
        table = dict(corpus.paraphrases) if corpus else {}
        attack = replace(cls.from_spec(options), by=TableParaphraser(STORED, table))
        return StoredParaphrases(attack, frozenset(table))

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 1, attack=self.name)
        vectors, said = stolen.vectors.copy(), np.zeros(len(stolen), dtype=bool)
        for start in range(0, len(stolen), _BLOCK):
            places = np.arange(start, min(start + _BLOCK, len(stolen)))
            owners, paraphrases = self._distinct([stolen.texts[place] for place in places])  # (p,), p texts
            said[places[owners]] = True
            vectors[places] = self._averaged(stolen.kept(places), owners, paraphrases)
        if self.texts == "all":
            return stolen.with_vectors(vectors)
        if not said.any():
            raise InputError(f"{self.name}: none of the {len(stolen)} texts has a paraphrase")
        return stolen.with_vectors(vectors).kept(said)

    def _averaged(self, stolen: StolenData, owners: Integers, paraphrases: list[str]) -> Floats:
        if not paraphrases:
            return stolen.vectors
        answers = ask_again(stolen, paraphrases, attack=self.name)  # (p, D)
        good = self._cosines(stolen, owners, paraphrases, answers) >= self.floor
        return averages(stolen.vectors, owners[good], answers[good])

    def _distinct(self, texts: Sequence[str]) -> tuple[Integers, list[str]]:
        """Return all paraphrases in one list, and whose they are; the text itself is none, however it is spaced."""
        paraphraser = load_paraphraser(self.by)
        given = paraphraser.paraphrase(list(texts), self.most)
        if len(given) != len(texts):
            raise InputError(f"{paraphraser.name} was given {len(texts)} texts and answered for {len(given)}")
        owners: list[int] = []
        paraphrases: list[str] = []
        for owner, (text, answers) in enumerate(zip(texts, given, strict=True)):
            seen = {" ".join(text.split())}
            for answer in answers:
                plain = " ".join(answer.split())
                if plain and plain not in seen and len(seen) <= self.most:
                    seen.add(plain)
                    owners.append(owner)
                    paraphrases.append(answer)
        return np.array(owners, dtype=np.int64), paraphrases

    def _cosines(self, stolen: StolenData, owners: Integers, paraphrases: list[str], answers: Floats) -> Doubles:
        if self.filter == "none":
            return np.ones(len(owners))
        if self.filter == "served":
            return row_cosines(stolen.vectors[owners], answers)
        public = stolen.public_encoder()
        return row_cosines(public.encode(list(stolen.texts))[owners], public.encode(paraphrases))


@dataclass(frozen=True)
class StoredParaphrases:
    """Paraphrase by what a corpus brings with it, and train on the texts that have paraphrases alone.

    A text without one would keep its served vector as it is, and the attack would be half an attack.
    """

    attack: Paraphrase
    known: frozenset[str]

    @property
    def name(self) -> str:
        return self.attack.name

    def apply(self, stolen: StolenData, /) -> StolenData:
        return self.attack.apply(stolen.kept(np.array([text in self.known for text in stolen.texts], dtype=bool)))


def averages(vectors: Floats, owners: Integers, answers: Floats) -> Floats:
    """Return the mean answer of each owner at unit length, (n, D); its own vector where it has none.

    Examples
    --------
    >>> averages(np.eye(2, dtype=np.float32), np.array([0]), np.array([[0.0, 1.0]], dtype=np.float32))
    array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    sums = np.zeros(vectors.shape)
    np.add.at(sums, owners, answers)
    rows = np.linalg.norm(sums, axis=1) >= NO_DIRECTION
    averaged = vectors.copy()
    if rows.any():
        averaged[rows] = normalised(sums[rows].astype(np.float32))
    return averaged
