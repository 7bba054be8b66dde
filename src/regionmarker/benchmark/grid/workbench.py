"""Where cells are made: parts by their specs, and whatever cells share, kept for the next one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regionmarker.benchmark.corpora import STORED, Corpus
from regionmarker.benchmark.grid.cell import PROVIDER, UNMARKED, Cell, expand
from regionmarker.benchmark.grid.lookup import LookupEncoder
from regionmarker.benchmark.grid.material import Key, Material, corpus_key
from regionmarker.benchmark.grid.memo import Memo
from regionmarker.benchmark.grid.scene import Scene
from regionmarker.benchmark.loot import Loot
from regionmarker.benchmark.protocols import Defense, Stealer
from regionmarker.protocols import Encoder, Floats

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
        loot = plan.apply(Loot(texts, served[scene.bought], service, public))
        attacked = time.perf_counter()
        truth = clean.encode(loot.texts) if clean.knows(loot.texts) else None
        model = self._stealer(cell).steal(list(loot.texts), loot.vectors, clean=truth)
        learnt = model.fidelity
        suspect = plan.modify(model)
        spent = time.perf_counter() - attacked
        return Theft(suspect, learnt.cosine, learnt.correlation, len(loot), attacked - started, spent)

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
