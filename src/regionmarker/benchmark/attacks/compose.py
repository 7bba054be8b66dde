"""Several attacks, one after the other, and attacks on a model that is trained already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from regionmarker.benchmark.attacks.base import Nothing
from regionmarker.benchmark.attacks.registry import load_attack
from regionmarker.benchmark.protocols import DataAttack, ModelAttack, StolenData
from regionmarker.errors import InputError
from regionmarker.vectors import Encoder, Floats


class Composed:
    """Attacks in order: the first sees the served vectors, each of the others what the one before it made.

    Examples
    --------
    >>> compose(["shift:100", "truncate:2/3"]).name
    'shift:100 then truncate:2/3'
    """

    def __init__(self, attacks: Iterable[DataAttack]) -> None:
        self.attacks = tuple(attacks)

    @property
    def name(self) -> str:
        """The names in order."""
        return " then ".join(attack.name for attack in self.attacks)

    def __repr__(self) -> str:
        return f"Composed({list(self.attacks)!r})"

    def apply(self, stolen: StolenData, /) -> StolenData:
        """Apply all of them."""
        for attack in self.attacks:
            stolen = attack.apply(stolen)
        return stolen

    def __call__(self, served: Floats, texts: Sequence[str] = ()) -> Floats:
        """Apply all of them to vectors alone, where each treats every vector alike."""
        for attack in self.attacks:
            served = _row_attack(attack)(served, texts)
        return served


def _row_attack(attack: DataAttack | ModelAttack) -> Callable[[Floats, Sequence[str]], Floats]:
    if not callable(attack):
        raise InputError(f"{attack.name} looks at all of the stolen data: it works before training only")
    return attack


def _before_training(attack: DataAttack | ModelAttack) -> DataAttack:
    if not isinstance(attack, DataAttack):
        raise InputError(f"{attack.name} works on a stolen model: call modify(model) after the training")
    return attack


def compose(attacks: Iterable[str | DataAttack]) -> DataAttack:
    """Make one attack of a list of specs or attacks; an empty list is the control, ``none``.

    Examples
    --------
    >>> compose([]).name, compose(["tanh"]).name
    ('none', 'tanh')
    """
    if isinstance(attacks, str):
        raise InputError(f"attacks must be a list, but one string was given: write [{attacks!r}]")
    loaded = [_before_training(load_attack(attack)) for attack in attacks]
    if len(loaded) > 1:
        return Composed(loaded)
    return loaded[0] if loaded else Nothing()


class AttackedModel:
    """A model whose owner disguises its answers: the attack comes after the training, not before it.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> AttackedModel(load_encoder("wordllama"), "truncate:0.5").encode(["a text"]).shape
    (1, 128)
    """

    def __init__(self, model: Encoder, attack: str | DataAttack | ModelAttack) -> None:
        self.model = model
        self.attack = load_attack(attack)

    @property
    def name(self) -> str:
        """The model's name, then the attack's."""
        return f"{self.model.name} then {self.attack.name}"

    def __repr__(self) -> str:
        return f"AttackedModel({self.model!r}, {self.attack!r})"

    def encode(self, texts: Sequence[str], /) -> Floats:
        """Answer as the model does, attacked."""
        return _row_attack(self.attack)(self.model.encode(texts), texts)
