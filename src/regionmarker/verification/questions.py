"""Which texts a suspect is asked.

What is asked is a function of the hyperplanes and of the texts, never of the targets: a suspect who knew all of it
would still not know what counts. The order is a fresh shuffle, and the texts go out as they are.

- The graded mark is everywhere, so every text of the reservoir is a probe, and they are asked in the reservoir's own
  (random) order. No candidate is ever asked.
- The published mark is in a few regions: the whole pool is asked (two samples of it would intersect in the targets),
  and besides it probes from every populated region in equal numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Sealed
from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError
from regionmarker.keys.files import KeyRing
from regionmarker.keys.key import Key
from regionmarker.marks.graded_settings import LEAST_PROBES
from regionmarker.marks.regions import RegionMark, region_numbers
from regionmarker.vectors import AnyArray, Doubles, Integers, as_floats, check_rows
from regionmarker.verification.clean_space import CleanSpace

DEFAULT_BUDGET = 3000
ENOUGH_PROBES = 30  # probes that a region should have for its mean to mean something

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class Cost:
    """What asking costs.

    Attributes
    ----------
    queries
        Texts that are sent.
    characters
        Their length in all.
    tokens
        An estimate: a token for every four bytes of UTF-8, rounded up in each text. That is the usual rule for English;
        the suspect's own tokenizer, which nobody knows, may differ by half.

    Examples
    --------
    >>> Cost.of(["four", "five!"])
    Cost(queries=2, characters=9, tokens=3)
    """

    queries: int
    characters: int
    tokens: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> Cost:
        tokens = sum(-(-len(text.encode()) // _BYTES_PER_TOKEN) for text in texts)
        return cls(len(texts), sum(map(len, texts)), tokens)


@dataclass(frozen=True, repr=False, eq=False)
class Questions(Sealed):
    """The texts to ask, and the secret of what each is asked for; made by :func:`plan_questions`.

    Attributes
    ----------
    texts
        All texts, each once, in the order of asking: the only part that a suspect may see.
    probes
        The probes with their clean embeddings (m, D), in an order that depends on the key alone, so that what is
        computed from them is the same in every run.
    """

    texts: tuple[str, ...]
    probes: TextSet

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def asked(self) -> TextSet:
        """All texts with their clean embeddings, in the key's order."""
        return self.probes

    def cost(self) -> Cost:
        return Cost.of(self.texts)


@dataclass(frozen=True, repr=False, eq=False)
class RegionQuestions(Questions):
    """Questions about the published mark.

    Attributes
    ----------
    probes
        By region and then from the centre outwards.
    pool
        The key's pool, in its own order.
    regions
        The region number of each probe, (m,).
    coordinates
        The signed distance of each probe to each hyperplane, (m, d).
    pool_coordinates
        The same of each pool text, (M, d).
    populated
        The numbers of the populated regions, from which the probes come.
    """

    pool: TextSet
    regions: Integers
    coordinates: Doubles
    pool_coordinates: Doubles
    populated: tuple[int, ...]

    @property
    def asked(self) -> TextSet:
        rows = np.vstack([self.probes.embeddings, self.pool.embeddings])
        return TextSet((*self.probes.texts, *self.pool.texts), rows)

    @cached_property
    def clean(self) -> CleanSpace:
        """The clean half of the decoy test: every suspect that is judged by these questions shares it."""
        return CleanSpace(self.probes.embeddings, self.coordinates, self.pool.embeddings, self.pool_coordinates)

    @cached_property
    def counts(self) -> dict[int, int]:
        return {region: int((self.regions == region).sum()) for region in self.populated}


def least_budget(key: Key) -> int:
    """Return the smallest budget that is accepted: 256 probes, or M + 30 (R + 1) for the published mark."""
    if isinstance(key.mark, RegionMark):
        return len(key.pool) + ENOUGH_PROBES * (len(key.mark.regions) + 1)
    return LEAST_PROBES


def key_of(key: object) -> Key:
    """Return the key of a marker, or the key itself."""
    found = key if isinstance(key, Key) else getattr(key, "key_", None)
    if isinstance(found, Key):
        return found
    if getattr(key, "serving_", None) is not None:
        raise InputError("a serving key has no pool and no probes: ask with the key that it was made from")
    raise InputError(f"give a fitted RegionMarker or its key, not a {type(key).__name__}")


def keys_of(keys: object) -> tuple[Key, ...]:
    """Return the keys of a ring, oldest first, or the one key of a marker."""
    return keys.keys if isinstance(keys, KeyRing) else (key_of(keys),)


def merged_texts(questions: Sequence[Questions], seed: int | None = None) -> tuple[str, ...]:
    """Return the texts of several keys' questions, each once, in a fresh shuffle: it does not show whose they are."""
    if len(questions) == 1:
        return questions[0].texts
    return _shuffled(tuple(dict.fromkeys(text for one in questions for text in one.texts)), seed)


def plan_questions(
    key: Key, budget: int = DEFAULT_BUDGET, probes: TextSet | None = None, seed: int | None = None
) -> Questions:
    """Choose the texts to ask.

    For the graded mark they are the first texts of the reservoir. For the published mark they are the whole pool and
    equally many probes from every populated region; inside a region the probes farthest from the hyperplanes come
    first: near them, a copy's answer may lie on the other side. What a region cannot give is shared out among the
    others. The set is a function of the key's hyperplanes and texts, and a larger budget only adds to it.

    Parameters
    ----------
    key
        The key, with its reservoir of probes.
    budget
        How many texts to ask at the most; see :func:`least_budget`.
    probes
        Own probes with their clean embeddings (n, D), instead of the reservoir.
    seed
        Fixes the order, for tests; None draws it anew. No result depends on it.

    Examples
    --------
    >>> from regionmarker import RegionMarker
    >>> rows = np.random.default_rng(0).standard_normal((400, 32)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> texts = [f"text {number}" for number in range(400)]
    >>> key = RegionMarker(dimension=2, seed=1, pool=64, reservoir=256).fit(texts, embeddings=rows).key_
    >>> questions = plan_questions(key, budget=184)
    >>> questions
    <RegionQuestions: sealed>
    >>> questions.counts, questions.cost().queries
    ({0: 30, 1: 30, 2: 30, 3: 30}, 184)
    >>> plan_questions(key, budget=100)
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: a budget of 100 queries is too small: ... needs at least 124 (...)
    """
    if budget < least_budget(key):
        parts = (
            f"its {len(key.pool)} pool texts, and {ENOUGH_PROBES} probes for each trigger region and for the rest"
            if isinstance(key.mark, RegionMark)
            else "fewer probes say nothing"
        )
        raise InputError(
            f"a budget of {budget} queries is too small: this key needs at least {least_budget(key)} ({parts})"
        )
    if not isinstance(key.mark, RegionMark):
        return _asked(_fresh_probes(key, probes), slice(budget), seed)
    found = _candidates(key, key.mark, probes)
    quota = share_out(budget - len(key.pool), [len(rows) for rows in found.by_region])
    return found.questions(
        key, key.mark, [rows[:size] for rows, size in zip(found.by_region, quota, strict=True)], seed
    )


def plan_all(key: Key, probes: TextSet | None = None, seed: int | None = None) -> Questions:
    """Return the most that a suspect is asked without a budget of one's own."""
    most = DEFAULT_BUDGET
    if not isinstance(key.mark, RegionMark):
        most = max(len(key.reservoir if probes is None else probes), least_budget(key))
    return plan_questions(key, most, probes, seed)


def regroup(key: Key, texts: Collection[str], probes: TextSet | None = None) -> Questions:
    """Return the questions that ``texts`` were: every probe among them, and the whole pool where it is asked.

    For answers that are there already. Texts that the key does not know are left out.
    """
    known = set(texts)
    if not isinstance(key.mark, RegionMark):
        found = _fresh_probes(key, probes)
        return _asked(found, np.array([text in known for text in found.texts], dtype=bool), seed=None)
    candidates = _candidates(key, key.mark, probes)
    chosen = [
        rows[np.array([candidates.probes.texts[row] in known for row in rows], dtype=bool)]
        for rows in candidates.by_region
    ]
    return candidates.questions(key, key.mark, chosen, seed=None)


def _asked(probes: TextSet, chosen: slice | AnyArray, seed: int | None) -> Questions:
    places = np.arange(len(probes))[chosen]
    asked = TextSet(tuple(probes.texts[place] for place in places), probes.embeddings[places])
    return Questions(_shuffled(asked.texts, seed), asked)


def _fresh_probes(key: Key, probes: TextSet | None) -> TextSet:
    """Return the texts that may be asked about a graded mark, each once and no candidate among them.

    Own probes may come in any order, so they are ordered by their digests.
    """
    if probes is None:
        return key.reservoir
    given, candidates = checked_probes(key, probes), set(key.pool.texts)
    row_of = {text: row for row, text in enumerate(given.texts) if text not in candidates}
    order = sorted(row_of, key=lambda text: sha256(text.encode()).digest())
    if len(order) < LEAST_PROBES:
        few = f"{len(order)} of the own probes can be asked, but at least {LEAST_PROBES} are needed: add texts"
        raise InputError(few)
    return TextSet(tuple(order), given.embeddings[[row_of[text] for text in order]])


def share_out(budget: int, holdings: Sequence[int]) -> list[int]:
    """Divide ``budget`` as evenly as the ``holdings`` allow; what is left over goes to the first that can take it.

    Examples
    --------
    >>> share_out(10, [9, 1, 9])
    [5, 1, 4]
    >>> share_out(100, [9, 1, 9])
    [9, 1, 9]
    """
    budget = min(budget, sum(holdings))
    level = 0
    # The highest common level that the budget pays for.
    while sum(min(held, level + 1) for held in holdings) <= budget and level < max(holdings, default=0):
        level += 1
    shares = [min(held, level) for held in holdings]
    for place, held in enumerate(holdings):
        if sum(shares) < budget and held > shares[place]:
            shares[place] += 1
    return shares


@dataclass(frozen=True, repr=False, eq=False)
class _Candidates(Sealed):
    """All probes that may be asked: their rows by populated region, from the centre of the region outwards."""

    probes: TextSet
    coordinates: Doubles
    populated: tuple[int, ...]
    by_region: list[Integers]

    def questions(self, key: Key, mark: RegionMark, chosen: list[Integers], seed: int | None) -> RegionQuestions:
        for region, rows in zip(self.populated, chosen, strict=True):
            if region in mark.regions and not len(rows):
                raise InputError(
                    "a trigger region of this key has no probe at all: ask with a larger budget, give probes of your"
                    " own, or make keys with a larger reservoir"
                )
        order = np.concatenate(chosen)
        coordinates = self.coordinates[order]
        probes = TextSet(tuple(self.probes.texts[row] for row in order), self.probes.embeddings[order])
        return RegionQuestions(
            texts=_shuffled((*key.pool.texts, *probes.texts), seed),
            pool=key.pool,
            probes=probes,
            regions=region_numbers(coordinates),
            coordinates=coordinates,
            pool_coordinates=mark.signed_distances(key.pool.embeddings),
            populated=self.populated,
        )


def _candidates(key: Key, mark: RegionMark, probes: TextSet | None) -> _Candidates:
    given = key.reservoir if probes is None else checked_probes(key, probes)
    coordinates = mark.signed_distances(given.embeddings)  # (n, d)
    regions, margins = region_numbers(coordinates), np.abs(coordinates).min(axis=1)
    seen = set(key.pool.texts)
    fresh = np.zeros(len(given), dtype=bool)  # in the pool or a second time: not asked again
    for row, text in enumerate(given.texts):
        fresh[row] = text not in seen
        seen.add(text)
    # Equal margins are ordered by text, not by place: own probes may come in any order.
    rank = np.array(sorted(range(len(given)), key=lambda row: (-margins[row], given.texts[row])), dtype=np.int64)
    populated = mark.populated
    by_region = [rank[fresh[rank] & (regions[rank] == region)] for region in populated]
    return _Candidates(given, coordinates, populated, by_region)


def checked_probes(key: Key, probes: TextSet) -> TextSet:
    """Return own probes as texts and vectors of the key's width, or refuse what is neither."""
    texts = tuple(check_texts(probes.texts))
    embeddings = as_floats(probes.embeddings, width=key.width, what="the embeddings of the probes")
    if len(texts) != len(embeddings):
        raise InputError(f"there are {len(texts)} probes but {len(embeddings)} embeddings: give one row per text")
    check_rows(embeddings)
    return TextSet(texts, embeddings)


def _shuffled(texts: tuple[str, ...], seed: int | None) -> tuple[str, ...]:
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    return tuple(texts[place] for place in rng.permutation(len(texts)))
