"""What a thief does to the served vectors before training on them, or to the stolen model after it: the table.

    transforms.py      every vector alike: shift, truncate, permute, project, tanh, rotate, scale, translate, noise, ...
    quantisation.py    every vector alike, in few bits: int8, binary
    cse.py             directions that suspicious pairs share: cse
    directions.py      directions that the stolen data shows: compress, band, residuals
    public_map.py      what a public encoder says of served vectors
    plane_search.py    the key's hyperplanes, guessed: angles
    sampling.py        fewer rows, or one's own: drop, avoid, cover, mix
    perturbation.py    more questions: perturb
    accounts.py        several accounts: compare, average, differences; clean vectors: pairs
    adaptive.py        thieves who have read our source: products, ica, neighbours, student
    paraphrase.py      other wordings: paraphrase, by one of paraphrasers/
    fine_tuning.py     the stolen model alone, after the training: finetune
    base.py            one of the first, after the training: after

The first may follow the training as well as precede it. docs/reference/attacks.md has every spec and its options.
Another package adds its own by an entry point of the group ``regionmarker.attacks``: its name stands before the colon,
and it is a class with ``from_spec(text)``, or anything that may be called with what stands after the colon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from regionmarker.benchmark.attacks.accounts import Average, CleanPairs, Compare, Differences
from regionmarker.benchmark.attacks.adaptive import ICA, Neighbours, Products, Student
from regionmarker.benchmark.attacks.base import (
    After,
    AttackedModel,
    AttackPlan,
    Composed,
    Nothing,
    RowAttack,
    SeededAttack,
    WholeDataAttack,
)
from regionmarker.benchmark.attacks.cse import CSE
from regionmarker.benchmark.attacks.directions import Band, Compress, Residuals
from regionmarker.benchmark.attacks.fine_tuning import FineTune, tune
from regionmarker.benchmark.attacks.paraphrase import Paraphrase
from regionmarker.benchmark.attacks.perturbation import Perturb
from regionmarker.benchmark.attacks.plane_search import Angles
from regionmarker.benchmark.attacks.quantisation import Binary, Int8
from regionmarker.benchmark.attacks.sampling import Avoid, Cover, Drop, Mix
from regionmarker.benchmark.attacks.transforms import (
    Noise,
    Permute,
    Project,
    Rotate,
    Round,
    Scale,
    Shift,
    Tanh,
    Translate,
    Truncate,
    Zero,
)
from regionmarker.benchmark.protocols import DataAttack, ModelAttack
from regionmarker.errors import InputError
from regionmarker.specs import Registry

if TYPE_CHECKING:
    from regionmarker.benchmark.corpora import Corpus

__all__ = [
    "CSE", "ICA", "After", "Angles", "AttackPlan", "AttackedModel", "Average", "Avoid", "Band", "Binary", "CleanPairs",
    "Compare", "Composed", "Compress", "Cover", "Differences", "Drop", "FineTune", "Int8", "Mix", "Neighbours",
    "Noise", "Nothing", "Paraphrase", "Permute", "Perturb", "Products", "Project", "Residuals", "Rotate", "Round",
    "RowAttack", "Scale", "SeededAttack", "Shift", "Student", "Tanh", "Translate", "Truncate", "WholeDataAttack",
    "Zero", "compose", "known_attacks", "load_attack", "plan_attacks", "tune",
]  # fmt: skip

_BUILT_IN: tuple[type[RowAttack | WholeDataAttack | FineTune | After], ...] = (
    Nothing, Shift, Truncate, Permute, Project, Tanh, Rotate, Scale, Translate, Noise, Round, Zero, Int8, Binary,
    CSE, Compress, Band, Residuals, Products, ICA, Neighbours, Student, Drop, Avoid, Cover, Mix, Angles, Perturb,
    Compare, Average, Differences, CleanPairs, Paraphrase,
    FineTune, After,
)  # fmt: skip

ATTACKS = Registry(
    "attack",
    "regionmarker.attacks",
    {attack.spec: attack for attack in _BUILT_IN},
    protocol=DataAttack | ModelAttack,
    promise="a name and apply(stolen) or modify(model)",
)


def known_attacks() -> list[str]:
    """Return what may stand before the colon of a spec: the built-in attacks, then those of other packages.

    Examples
    --------
    >>> known_attacks()[:3]
    ['none', 'shift', 'truncate']
    """
    return ATTACKS.known()


def load_attack(spec: str | DataAttack | ModelAttack) -> DataAttack | ModelAttack:
    """Load an attack by its spec; an object that is one already is returned as it is.

    Examples
    --------
    >>> load_attack("shift:100")
    Shift(places=100)
    >>> load_attack("shuffle")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: unknown attack 'shuffle': give none, shift, truncate, permute, ...
    """
    return cast("DataAttack | ModelAttack", ATTACKS.load(spec))


def compose(attacks: Iterable[str | DataAttack]) -> DataAttack:
    """Make one attack of a list of specs or attacks; an empty list is the control, ``none``.

    Examples
    --------
    >>> compose([]).name, compose(["shift:100", "truncate:2/3"]).name
    ('none', 'shift:100 then truncate:2/3')
    """
    if isinstance(attacks, str):
        raise InputError(f"attacks must be a list, but one string was given: write [{attacks!r}]")
    loaded = []
    for attack in map(load_attack, attacks):
        if not isinstance(attack, DataAttack):
            raise InputError(f"{attack.name} works on a stolen model: call modify(model) after the training")
        loaded.append(attack)
    if len(loaded) > 1:
        return Composed(loaded)
    return loaded[0] if loaded else Nothing()


def plan_attacks(specs: Sequence[str], corpus: Corpus | None = None, folder: Path | None = None) -> AttackPlan:
    """Load the attacks of a cell, those on the stolen data first, then those on the stolen model.

    Parameters
    ----------
    specs
        The attacks in order.
    corpus
        The cell's own, whose paraphrases ``paraphrase:stored`` means.
    folder
        Where the corpora lie that fine-tuning names.

    Examples
    --------
    >>> plan_attacks(["shift:100", "truncate:0.5"]).before.name
    'shift:100 then truncate:0.5'
    """
    before: list[DataAttack] = []
    after: list[ModelAttack] = []
    for spec in specs:
        head, _, text = spec.partition(":")
        in_cell = getattr(ATTACKS.find(head), "in_cell", None)  # an attack that takes something of the cell
        part = load_attack(spec) if in_cell is None else in_cell(text, corpus=corpus, folder=folder)
        if not isinstance(part, DataAttack):
            after.append(part)
        elif after:
            raise InputError(f"{spec} works on what was served: it must stand before {after[0].name}")
        elif before and getattr(part, "comes_first", False):
            raise InputError(f"{spec} asks for every text again: it must stand before {before[0].name}")
        else:
            before.append(part)
    return AttackPlan(compose(before), tuple(after))
