"""The attacks of a cell in order: those on the stolen data, then those on the stolen model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from regionmarker.benchmark.attacks import compose, load_attack
from regionmarker.benchmark.attacks.fine_tuning import FineTune
from regionmarker.benchmark.attacks.paraphrase import Paraphrase
from regionmarker.benchmark.attacks.paraphrasers.table import TableParaphraser
from regionmarker.benchmark.corpora import Corpus
from regionmarker.benchmark.protocols import DataAttack, ModelAttack, StolenData
from regionmarker.errors import InputError
from regionmarker.vectors import Encoder

STORED = "stored"
"""The paraphraser's name that stands for the paraphrases which a corpus brings with it."""


@dataclass(frozen=True)
class Plan:
    """What is done before the training, and what after it.

    Examples
    --------
    >>> plan_attacks(["shift:100", "truncate:0.5"]).before.name
    'shift:100 then truncate:0.5'
    """

    before: DataAttack
    after: tuple[ModelAttack, ...] = ()

    def apply(self, stolen: StolenData) -> StolenData:
        """Attack the stolen data."""
        return self.before.apply(stolen)

    def modify(self, model: Encoder) -> Encoder:
        """Disguise the stolen model, or train it on."""
        for attack in self.after:
            model = attack.modify(model)
        return model


@dataclass(frozen=True)
class StoredParaphrases:
    """Paraphrase by what a corpus brings with it, and train on the texts that have paraphrases alone.

    A text without one would keep its served vector as it is, and the attack would be half an attack.
    """

    attack: Paraphrase
    known: frozenset[str]

    @property
    def name(self) -> str:
        """The attack's."""
        return self.attack.name

    def apply(self, stolen: StolenData, /) -> StolenData:
        """Keep the texts that have paraphrases, and average over these."""
        return self.attack.apply(stolen.kept(np.array([text in self.known for text in stolen.texts], dtype=bool)))


def plan_attacks(specs: Sequence[str], corpus: Corpus | None = None, folder: Path | None = None) -> Plan:
    """Load the attacks of a cell; an unknown one is an error that names the known ones.

    Parameters
    ----------
    specs
        The attacks in order.
    corpus
        Whose paraphrases ``stored`` means.
    folder
        Where the corpora lie that fine-tuning names.
    """
    before: list[DataAttack] = []
    after: list[ModelAttack] = []
    for spec in specs:
        part = _stored(spec, corpus) or load_attack(spec)
        if isinstance(part, DataAttack):
            if after:
                raise InputError(f"{spec} works on what was served: it must stand before {after[0].name}")
            before.append(part)
        else:
            if isinstance(part, FineTune) and folder is not None and folder.is_dir() and not part.folder:
                part = replace(part, folder=str(folder))
            after.append(part)
    return Plan(compose(before), tuple(after))


def _stored(spec: str, corpus: Corpus | None) -> DataAttack | None:
    """Return the attack by stored paraphrases, where the spec names them."""
    head, _, rest = spec.partition(":")
    settings, _, by = rest.rpartition(",")
    if head != Paraphrase.spec or by != STORED:
        return None
    if corpus is not None and not corpus.paraphrases:
        raise InputError(f"the corpus {corpus.name} brings no paraphrases: use another paraphraser than {STORED}")
    table = dict(corpus.paraphrases) if corpus else {}
    attack = replace(Paraphrase.from_spec(settings), by=TableParaphraser(STORED, table))
    return StoredParaphrases(attack, frozenset(table))
