"""The parts of cells, made by their specs: split, fitted defense, stolen model. What cells share is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regionmarker.benchmark.corpora import Corpus, ProviderEncoder
from regionmarker.benchmark.grid.cell import PROVIDER, Cell, CorpusId, expand
from regionmarker.benchmark.grid.inputs import GridInputs
from regionmarker.benchmark.protocols import Defense, Stealer, StolenData, StolenModel
from regionmarker.encoders.base import LookupEncoder
from regionmarker.errors import InputError
from regionmarker.measures import row_cosines
from regionmarker.vectors import Encoder, Floats, Integers

if TYPE_CHECKING:
    from regionmarker.benchmark.attacks import AttackPlan

_LEAST = 100  # texts that a key needs at the very least; what a defense needs beyond that it says itself
CLASSIFIED = 3000
"""Texts that the utility's classifier is trained on at the most: more do not change its accuracy by a point."""


@dataclass(frozen=True, eq=False)
class Split:
    """Who has which texts: the stealer buys some, the key is made from others, and no text is in both.

    Attributes
    ----------
    bought
        Places of the stealer's texts, none of them for testing; those with stored paraphrases come first, so that an
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
    def of(cls, corpus: Corpus, queries: int, seed: int) -> Split:
        """Divide a corpus.

        Examples
        --------
        >>> from regionmarker.benchmark.corpora import load_corpus
        >>> split = Split.of(load_corpus("python", "wordllama", limit=500), queries=200, seed=0)
        >>> len(split.bought), len(split.own), len(set(split.bought) & set(split.own))
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


@dataclass(frozen=True)
class Fitted:
    """A defense with its secret, what it serves for the whole corpus, and how long that took."""

    defense: Defense
    served: Floats  # (n, D')
    seconds_fit: float
    seconds_transform: float


@dataclass(frozen=True)
class Trained:
    """What a stealer has made of the stolen data, before anything is done to the model itself."""

    model: StolenModel
    texts: int
    attack_cosine: float
    seconds_attack: float
    seconds_steal: float


@dataclass(frozen=True)
class Theft:
    """A stolen model, how well it learnt, and how long attack and training took."""

    model: Encoder
    fidelity: float
    centred_fidelity: float
    clean_fidelity: float
    attack_cosine: float
    correlation: float
    trained_on: int
    seconds_attack: float
    seconds_steal: float


class CellParts:
    """Makes the parts of cells; one per process, because it keeps the last of each."""

    def __init__(self, inputs: GridInputs) -> None:
        self.inputs = inputs
        self._split = lru_cache(8)(self._divide)
        self._fitted = lru_cache(16)(self._fit)
        self._theft = lru_cache(2)(self._steal)  # they are large
        self._trained = lru_cache(2)(self._train)
        self._known_encoder = lru_cache(16)(self._with_features)
        self._plain_encoder = lru_cache(16)(lambda spec: cached_encoder(spec, inputs))
        self.measured: dict[tuple[str, Cell], dict[str, float]] = {}
        """What was measured of parts: a few numbers under the name of the measure and what matters of the cell."""

    # ---- what cells share

    def corpus(self, cell: Cell) -> Corpus:
        return self.inputs.corpus(cell)

    def split(self, cell: Cell) -> Split:
        return self._split(cell.split)

    def _divide(self, cell: Cell) -> Split:
        return Split.of(self.corpus(cell), cell.queries, cell.seed)

    def fitted(self, cell: Cell) -> Fitted:
        """Return the cell's defense, its secret made from the provider's own texts."""
        return self._fitted(cell.served)

    def _fit(self, cell: Cell) -> Fitted:
        from regionmarker.benchmark.defenses import load_defense

        corpus, own = self.corpus(cell), self.split(cell).own
        texts = [corpus.texts[place] for place in own]
        started = time.perf_counter()
        defense = load_defense(self._spec(cell.defense), seed=cell.seed, counts=self._counts(texts))
        defense = defense.fit(texts, corpus.clean[own])
        defense.transform(corpus.clean[:2], list(corpus.texts[:2]))  # compiles what is compiled; not timed as marking
        fitted = time.perf_counter()
        served = defense.transform(corpus.clean, list(corpus.texts))
        served.setflags(write=False)
        spent = time.perf_counter() - fitted
        return Fitted(defense, served, fitted - started, spent / len(served))

    def theft(self, cell: Cell) -> Theft:
        """Return the copy that the cell's stealer makes of what is served to it, attacks and all."""
        return self._theft(cell.theft)

    def _steal(self, cell: Cell) -> Theft:
        trained = self._trained(cell.trained)
        learnt, started = trained.model.fidelity, time.perf_counter()
        suspect = self._plan(cell).modify(trained.model)
        spent = trained.seconds_steal + time.perf_counter() - started
        return Theft(
            model=suspect,
            fidelity=learnt.cosine,
            centred_fidelity=learnt.centred,
            clean_fidelity=learnt.to_clean,
            attack_cosine=trained.attack_cosine,
            correlation=learnt.correlation,
            trained_on=trained.texts,
            seconds_attack=trained.seconds_attack,
            seconds_steal=spent,
        )

    def _plan(self, cell: Cell) -> AttackPlan:
        from regionmarker.benchmark.attacks import plan_attacks

        return plan_attacks([self._spec(attack) for attack in cell.attacks], self.corpus(cell), self.inputs.folder)

    def _train(self, cell: Cell) -> Trained:
        corpus, split, clean = self.corpus(cell), self.split(cell), self.clean(cell)
        plan = self._plan(cell)
        public = self.encoder(cell, cell.public) if cell.public else None
        served = corpus.clean if cell.unmarked else self.fitted(cell).served

        def service(texts: Sequence[str], /, *, account: str = "") -> Floats:
            rows = clean.encode(texts)
            return rows if cell.unmarked else self.fitted(cell).defense.transform(rows, list(texts), account=account)

        texts = tuple(corpus.texts[place] for place in split.bought)
        started = time.perf_counter()
        bought = StolenData(texts, served[split.bought], service, public, clean)
        stolen = plan.apply(bought)
        attacked = time.perf_counter()
        truth = clean.encode(stolen.texts) if clean.knows(stolen.texts) else None
        model = self._stealer(cell).steal(list(stolen.texts), stolen.vectors, clean=truth)
        return Trained(
            model, len(stolen), _likeness(bought, stolen), attacked - started, time.perf_counter() - attacked
        )

    # ---- parts by their specs

    def suspect(self, cell: Cell) -> Encoder:
        """Return an innocent that nobody trained on served vectors: the unmarked provider, or any encoder."""
        return self.clean(cell) if cell.suspect == PROVIDER else self.encoder(cell, cell.suspect)

    def clean(self, cell: Cell) -> LookupEncoder:
        """Return the unmarked provider; texts that nobody stored need the provider itself, if the grid names it."""
        corpus, spec = self.corpus(cell), self._spec(cell.provider)
        specs = [spec] if corpus.stored is None else [self.inputs.encoders.get(part) for part in corpus.stored.parts]

        def load() -> Encoder:
            encoders = [self._plain_encoder(str(spec)) for spec in specs]
            return encoders[0] if corpus.stored is None else ProviderEncoder(corpus.stored, encoders)

        return LookupEncoder(cell.provider, corpus.all_texts, corpus.all_clean, load if all(specs) else None)

    def encoder(self, cell: Cell, spec: str) -> Encoder:
        """Return an encoder by its spec; what it says of the corpus is known already, where somebody embedded it."""
        return self._known_encoder(cell.corpus_id, self._spec(spec))

    def _with_features(self, corpus_id: CorpusId, spec: str) -> Encoder:
        features = self.inputs.features.get((corpus_id, spec))
        if features is None:
            return self._plain_encoder(spec)
        return LookupEncoder(spec, self.inputs.corpora[corpus_id].texts, features, lambda: self._plain_encoder(spec))

    def _stealer(self, cell: Cell) -> Stealer:
        from regionmarker.benchmark.stealers import features_encoder, keeps_trainings, load_stealer, needs_teacher

        spec = self._spec(cell.stealer)
        options: dict[str, Any] = {"seed": cell.seed}
        if (encoder := features_encoder(spec)) is not None:  # what it says of the corpus is at hand
            spec, options["features"] = spec.replace(f":{encoder}", "", 1), self.encoder(cell, encoder)
        if needs_teacher(spec):
            options["teacher"] = self._teacher(cell)
        if keeps_trainings(spec) and self.inputs.cache is not None:
            options |= self._kept(cell)
        return load_stealer(spec, **options)

    def _kept(self, cell: Cell) -> dict[str, Any]:
        """Return what a long training is given: where to keep its state and the copy, and a log of how far it is."""
        from regionmarker.benchmark.grid.training_log import TrainingLog

        folder = (self.inputs.cache or Path()) / "trainings"
        states, copies = folder / "states", folder / "copies"
        states.mkdir(parents=True, exist_ok=True)
        log = TrainingLog(folder / "log.txt", f"{cell.corpus}, {cell.defense}, {cell.attack}, seed {cell.seed}")
        return {"checkpoint": states, "copies": copies, "progress": log.progress, "say": log.say}

    def _teacher(self, cell: Cell) -> LookupEncoder:
        """Return the provider as it serves, for copies that are noise on its answers."""
        texts = self.corpus(cell).all_texts
        rows = self.clean(cell).encode(texts)
        served = rows if cell.unmarked else self.fitted(cell).defense.transform(rows, list(texts))
        return LookupEncoder("served", texts, served)

    def _spec(self, spec: str) -> str:
        return expand(spec, self.inputs.encoders)

    def _counts(self, texts: Sequence[str]) -> Any:
        from regionmarker.benchmark.defenses.words import WIKITEXT_LINES, TokenCounts

        if self.inputs.counts is None:
            return TokenCounts.from_texts(texts)
        return TokenCounts(json.loads(self.inputs.counts), WIKITEXT_LINES)


def _likeness(bought: StolenData, stolen: StolenData) -> float:
    """Return the mean cosine of what is trained on to what was served for the same texts; NaN for another width."""
    if bought.vectors.shape[1] != stolen.vectors.shape[1]:
        return np.nan
    places = {text: place for place, text in enumerate(bought.texts)}
    return float(row_cosines(bought.vectors[[places[text] for text in stolen.texts]], stolen.vectors).mean())


def cached_encoder(spec: str, inputs: GridInputs) -> Encoder:
    """Load an encoder that keeps what it embeds in the output folder, where that can be reached."""
    from regionmarker.encoders import load_encoder

    if inputs.cache is None or spec == "wordllama":  # quicker than reading its vectors
        return load_encoder(spec)
    return load_encoder(spec, cache=inputs.cache / "embeddings.sqlite")
