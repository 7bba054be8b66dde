"""A memory of a few results."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from regionmarker.benchmark.corpora import STORED, Corpus
from regionmarker.benchmark.grid.cell import PROVIDER, UNMARKED, Cell, expand
from regionmarker.benchmark.grid.inputs import Key, Material, corpus_key
from regionmarker.benchmark.protocols import Defense, Stealer, StolenData
from regionmarker.encoders.base import LookupEncoder
from regionmarker.errors import InputError
from regionmarker.vectors import Encoder, Floats, Integers

T = TypeVar("T")


class Memo(Generic[T]):
    """Keeps the results that were used last.

    Examples
    --------
    >>> memo = Memo[int](2)
    >>> memo.get("a", lambda: 1), memo.get("a", lambda: 2)
    (1, 1)
    """

    def __init__(self, size: int) -> None:
        self._size, self._kept = size, OrderedDict[Hashable, T]()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under ``key``; make it first where there is nothing."""
        if key not in self._kept:
            self._kept[key] = make()
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


# Who has which texts: the thief buys some, the key is made from others, and no text is in both.

_LEAST = 100  # texts that a key needs at the very least; what a defense needs beyond that it says itself
CLASSIFIED = 3000
"""Texts that the utility's classifier is trained on at the most: more do not change its accuracy by a point."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The division of a corpus for one seed.

    Attributes
    ----------
    bought
        Places of the thief's texts, none of them for testing; those with stored paraphrases come first, so that an
        attack by paraphrasing has them.
    own
        Places of all others: the provider makes the key from them.
    train, test
        Places of the texts that the utility's classifier is trained and tested on.
    """

    bought: Integers
    own: Integers
    train: Integers
    test: Integers

    @classmethod
    def of(cls, corpus: Corpus, queries: int, seed: int) -> Scene:
        """Divide a corpus.

        Examples
        --------
        >>> from regionmarker.benchmark.corpora import load_corpus
        >>> scene = Scene.of(load_corpus("python", "wordllama", limit=500), queries=200, seed=0)
        >>> len(scene.bought), len(scene.own), len(set(scene.bought) & set(scene.own))
        (200, 300, 0)
        """
        for_sale = np.flatnonzero(~corpus.data.test)
        if queries > len(for_sale) or len(corpus.texts) - queries < _LEAST:
            raise InputError(
                f"{corpus.name} has {len(for_sale)} texts for sale and {len(corpus.texts)} in all, too few for "
                f"{queries} queries and a key: lower queries"
            )
        rng = np.random.default_rng([seed, 7])
        order = rng.permutation(for_sale)
        rephrased = np.array([corpus.texts[place] in corpus.paraphrases for place in order], dtype=bool)
        bought = np.sort(np.concatenate([order[rephrased], order[~rephrased]])[:queries])
        own = np.setdiff1d(np.arange(len(corpus.texts)), bought)
        test = np.flatnonzero(corpus.data.test)
        return cls(bought, own, np.sort(rng.permutation(for_sale)[:CLASSIFIED]), test)


# Where cells are made: parts by their specs, and whatever cells share, kept for the next one.

DefenseLoader = Callable[..., Defense]


@dataclass(frozen=True)
class Fitted:
    """A defense with its secret, what it serves for the whole corpus, and how long that took."""

    defense: Defense
    served: Floats  # (n, D')
    seconds_fit: float
    seconds_transform: float


@dataclass(frozen=True)
class Theft:
    """A stolen model, how well it learnt, and how long attack and training took."""

    model: Encoder
    fidelity: float
    correlation: float
    trained_on: int
    seconds_attack: float
    seconds_steal: float


class Workbench:
    """Makes the parts of cells; one a process.

    Parameters
    ----------
    material
        What the grid's cells share.
    load_defense
        By spec and seed; the built-in and installed ones unless told.
    """

    def __init__(self, material: Material, load_defense: DefenseLoader | None = None) -> None:
        self.material = material
        self._load_defense = load_defense or _built_in_defense
        self._encoders = Memo[Encoder](16)
        self._scenes = Memo[Scene](8)
        self._fitted = Memo[Fitted](16)
        self._thefts = Memo[Theft](2)
        self.facts = Memo[Any](64)
        """Results that several cells have in common, such as a classifier's accuracy on what is served."""

    # ---- what cells share

    def corpus(self, cell: Cell) -> Corpus:
        """Return the cell's corpus."""
        return self.material.corpus(cell)

    def scene(self, cell: Cell) -> Scene:
        """Return who has which texts."""
        key = (corpus_key(cell), cell.queries, cell.seed)
        return self._scenes.get(key, lambda: Scene.of(self.corpus(cell), cell.queries, cell.seed))

    def fitted(self, cell: Cell) -> Fitted:
        """Return the cell's defense, its secret made from the provider's own texts."""
        key = (corpus_key(cell), cell.queries, cell.seed, cell.defense)
        return self._fitted.get(key, lambda: self._fit(cell))

    def _fit(self, cell: Cell) -> Fitted:
        corpus, own = self.corpus(cell), self.scene(cell).own
        texts = [corpus.texts[place] for place in own]
        started = time.perf_counter()
        defense = self._load_defense(self._spec(cell.defense), seed=cell.seed, counts=self._counts(texts))
        defense = defense.fit(texts, corpus.clean[own])
        defense.transform(corpus.clean[:2], list(corpus.texts[:2]))  # compiles what is compiled; not timed as marking
        fitted = time.perf_counter()
        served = defense.transform(corpus.clean, list(corpus.texts))
        served.setflags(write=False)
        spent = time.perf_counter() - fitted
        return Fitted(defense, served, fitted - started, spent / len(served))

    def theft(self, cell: Cell) -> Theft:
        """Return the copy that the cell's thief makes of what is served to it, attacks and all."""
        if cell.unmarked or cell.suspect == UNMARKED:
            cell = cell.shared
        return self._thefts.get(replace(cell, parameters=()), lambda: self._steal(cell))

    def _steal(self, cell: Cell) -> Theft:
        from regionmarker.benchmark.grid.attacking import plan_attacks

        corpus, scene, clean = self.corpus(cell), self.scene(cell), self.clean(cell)
        plan = plan_attacks([self._spec(attack) for attack in cell.attacks], corpus, self.material.folder)
        public = self.encoder(cell, cell.public) if cell.public else None
        served = corpus.clean if cell.unmarked else self.fitted(cell).served

        def service(texts: Sequence[str], /, *, account: str = "") -> Floats:
            rows = clean.encode(texts)
            return rows if cell.unmarked else self.fitted(cell).defense.transform(rows, list(texts), account=account)

        texts = tuple(corpus.texts[place] for place in scene.bought)
        started = time.perf_counter()
        stolen = plan.apply(StolenData(texts, served[scene.bought], service, public))
        attacked = time.perf_counter()
        truth = clean.encode(stolen.texts) if clean.knows(stolen.texts) else None
        model = self._stealer(cell).steal(list(stolen.texts), stolen.vectors, clean=truth)
        learnt = model.fidelity
        suspect = plan.modify(model)
        spent = time.perf_counter() - attacked
        return Theft(suspect, learnt.cosine, learnt.correlation, len(stolen), attacked - started, spent)

    # ---- parts by their specs

    def suspect(self, cell: Cell) -> Encoder:
        """Return an innocent that no thief made: the unmarked provider, or any encoder."""
        return self.clean(cell) if cell.suspect == PROVIDER else self.encoder(cell, cell.suspect)

    def clean(self, cell: Cell) -> LookupEncoder:
        """Return the provider without any mark."""
        corpus, spec = self.corpus(cell), self._spec(cell.provider)
        if spec.startswith(STORED):  # texts that nobody stored need the provider itself, if the grid names it
            spec = self.material.encoders.get(spec.removeprefix(STORED), "")
        load = (lambda: self._plain_encoder(spec)) if spec else None
        return LookupEncoder(cell.provider, corpus.all_texts, corpus.all_clean, load)

    def encoder(self, cell: Cell, spec: str) -> Encoder:
        """Return an encoder by its spec; what it says of the corpus is known already, where somebody embedded it."""
        plain = self._spec(spec)
        return self._encoders.get((corpus_key(cell), plain), lambda: self._known(corpus_key(cell), plain))

    def _known(self, key: Key, spec: str) -> Encoder:
        features = self.material.features.get((key, spec))
        if features is None:
            return self._plain_encoder(spec)
        return LookupEncoder(spec, self.material.corpora[key].texts, features, lambda: self._plain_encoder(spec))

    def _plain_encoder(self, spec: str) -> Encoder:
        return self._encoders.get(spec, lambda: cached_encoder(spec, self.material))

    def _stealer(self, cell: Cell) -> Stealer:
        from regionmarker.benchmark.stealers import FrozenHead
        from regionmarker.benchmark.stealers.registry import load_stealer, split_options

        spec, options = split_options(self._spec(cell.stealer))
        name, _, rest = spec.partition(":")
        if name == "head":  # its features are at hand
            return FrozenHead(self.encoder(cell, rest), seed=cell.seed, **options)
        if name == "simulated":
            options["teacher"] = self._teacher(cell)
        return load_stealer(spec, seed=cell.seed, **options)

    def _teacher(self, cell: Cell) -> LookupEncoder:
        """Return the provider as it serves, for copies that are noise on its answers."""
        texts = self.corpus(cell).all_texts
        rows = self.clean(cell).encode(texts)
        served = rows if cell.unmarked else self.fitted(cell).defense.transform(rows, list(texts))
        return LookupEncoder("served", texts, served)

    def _spec(self, spec: str) -> str:
        return expand(spec, self.material.encoders)

    def _counts(self, texts: Sequence[str]) -> Any:
        from regionmarker.benchmark.defenses.words import WIKITEXT_LINES, TokenCounts

        if self.material.counts is None:
            return TokenCounts.from_texts(texts)
        return TokenCounts(json.loads(self.material.counts), WIKITEXT_LINES)


def cached_encoder(spec: str, material: Material) -> Encoder:
    """Load an encoder that keeps what it embeds in the output folder, where that can be reached."""
    from regionmarker.encoders import load_encoder

    if material.cache is None or spec == "wordllama":  # quicker than reading its vectors
        return load_encoder(spec)
    return load_encoder(spec, cache=material.cache / "embeddings.sqlite")


def _built_in_defense(spec: str, **options: Any) -> Defense:
    from regionmarker.benchmark.defenses import load_defense

    return load_defense(spec, **options)
