"""Fine-tuning after the theft: train the stolen model on clean text of another corpus, and hope that the mark fades.

The paper tunes a model stolen on SST-2 on Enron, AG News or MIND. The thief has no clean vectors of the provider (with
them, it would need no theft), so it trains for a task's labels, or without any by SimCSE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from regionmarker.benchmark.network import SimCSE, TaskLabels
from regionmarker.benchmark.protocols import Objective, Trainable
from regionmarker.errors import InputError
from regionmarker.specs import Spec, rest
from regionmarker.vectors import Encoder, Integers

if TYPE_CHECKING:
    from regionmarker.benchmark.corpora import Corpus

OBJECTIVES = ("labels", "simcse")


@dataclass(frozen=True)
class FineTune(Spec):
    """Train the stolen model on the texts of another corpus.

    Attributes
    ----------
    objective
        ``labels``: cross-entropy of the corpus's labels through a head. ``simcse``: no labels.
    rate
        The learning rate; 0 for the model's own.
    limit
        Texts at the most, the same ones every time; 0 for all.
    seed
        Of the order, of dropout and of the head.
    folder
        The data folder, where it is not the usual one.
    corpus
        A file with ``text`` and ``label``, or a corpus by name (``enron``, ``ag_news``, ...) from the data folder or
        the hub. A column of embeddings in it is not read.

    Examples
    --------
    >>> FineTune.from_spec("objective=simcse,limit=500,python").name
    'finetune:objective=simcse,limit=500,python'
    """

    spec: ClassVar[str] = "finetune"

    objective: str = "labels"
    epochs: int = 3
    batch: int = 32
    rate: float = 0.0
    limit: int = 0
    seed: int = 0
    folder: str = ""
    corpus: str = rest(missing="name the corpus: finetune:FILE or finetune:NAME")

    def __post_init__(self) -> None:
        self._check(self.objective in OBJECTIVES, f"objective must be labels or simcse, but is {self.objective!r}")
        self._check(self.epochs >= 1 and self.batch >= 2, "epochs must be at least 1 and batch at least 2")
        self._check(0 <= self.rate < 1, f"rate must be a learning rate, but is {self.rate}")
        self._check(self.limit >= 0 and self.seed >= 0, "limit and seed must not be negative")

    @classmethod
    def in_cell(cls, text: str, *, corpus: Corpus | None, folder: Path | None) -> Self:  # noqa: ARG003
        """Make the attack for a cell: where it names no folder, the corpus is looked for in the grid's."""
        attack = cls.from_spec(text)
        here = folder is not None and folder.is_dir() and not attack.folder
        return replace(attack, folder=str(folder)) if here else attack

    def modify(self, model: Encoder, /) -> Encoder:
        texts, labels = self.texts_and_labels()
        return tune(
            model,
            texts,
            labels if self.objective == "labels" else None,
            name=self.name,
            epochs=self.epochs,
            batch_size=self.batch,
            learning_rate=self.rate or None,
            seed=self.seed,
        )

    def texts_and_labels(self) -> tuple[list[str], Integers]:
        from regionmarker.benchmark.corpora import FORMATS, data_folder, load_labelled

        if Path(self.corpus).suffix not in FORMATS and ("/" in self.corpus or "." in self.corpus):
            raise InputError(f"{self.spec}: {self.corpus} is no corpus: give a name, or a file ({', '.join(FORMATS)})")
        data = load_labelled(self.corpus, data_folder(Path(self.folder) if self.folder else None))
        places = np.flatnonzero(~data.test)
        if self.limit and self.limit < len(places):
            places = np.sort(np.random.default_rng(self.seed).permutation(places)[: self.limit])
        return [data.texts[place] for place in places], data.labels[places]


def tune(
    model: Encoder,
    texts: Sequence[str],
    labels: Sequence[object] | Integers | None = None,
    *,
    name: str = "finetune",
    epochs: int = 3,
    batch_size: int = 32,
    learning_rate: float | None = None,
    seed: int = 0,
) -> Encoder:
    """Train a stolen model on texts: for their labels, or by SimCSE where there are none.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.benchmark.stealers import FrozenHead
    >>> from regionmarker.sample_corpus import python_sentences
    >>> encoder, texts = load_encoder("wordllama"), python_sentences(120)
    >>> stolen = FrozenHead(encoder, hidden=64).steal(texts, encoder.encode(texts))
    >>> tuned = tune(stolen, texts, [len(text) > 60 for text in texts], epochs=1)
    >>> tuned.name
    'head (wordllama) then finetune'
    """
    if labels is not None and len(labels) != len(texts):
        raise InputError(f"there are {len(texts)} texts but {len(labels)} labels: give one for each")
    if len(texts) < 2:
        raise InputError(f"{name} needs at least 2 texts, but was given {len(texts)}")
    objective: Objective = SimCSE()
    if labels is not None:
        objective = TaskLabels(labels, model.encode([texts[0]]).shape[1], seed=seed)
    if not isinstance(model, Trainable):
        raise InputError(f"{model.name} cannot be trained on: fine-tune a head or a backbone")
    tuned = model.train_on(
        texts, objective, epochs=epochs, batch_size=batch_size, seed=seed, learning_rate=learning_rate
    )
    tuned.name = f"{model.name} then {name}"  # type: ignore[misc]
    return tuned
