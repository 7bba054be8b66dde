"""Stealers: texts and served vectors in, a model out that answers as the provider does: the table.

    head:ENCODER                      a head on the frozen features of an encoder, by the encoder's own spec
    tokens, tokens:wordllama          a bag of token vectors
    backbone:NAME                     full fine-tuning of a transformer: a name on the hub, a folder or a GGUF file
    simulated:FIDELITY                noise on a teacher, which is given as an object: teacher=

Options follow after commas, ``head:wordllama,hidden=512,epochs=2``, or as arguments of :func:`load_stealer`; the two
mean the same. Every stealer takes ``seed`` and ``progress``. Another package adds its own by an entry point of the
group ``regionmarker.stealers``: its name stands before the colon, and it is a class with
``from_spec(text, **options)``, or anything that may be called so. A class whose ``needs_features`` is true is given
``features=``, the encoder that its spec names, and one whose ``needs_teacher`` is true ``teacher=``: grids have both at
hand. One whose ``keeps_trainings`` is true is given ``checkpoint``, ``copies``, ``progress`` and ``say``. Only the
backbone loads torch, when it steals.
"""

from __future__ import annotations

from typing import Any, cast

from regionmarker.benchmark.protocols import Fidelity, Stealer
from regionmarker.benchmark.stealers.base import fidelity, pair_correlation
from regionmarker.benchmark.stealers.head import FrozenHead, HeadModel
from regionmarker.benchmark.stealers.simulated import NoisyCopy, NoisyModel, noisy
from regionmarker.benchmark.stealers.tokens import HashedGrams, TokenBag, TokenBagModel, WordLlamaTokens
from regionmarker.specs import Registry, split_options

__all__ = [
    "Fidelity", "FrozenHead", "HashedGrams", "HeadModel", "NoisyCopy", "NoisyModel", "TokenBag", "TokenBagModel",
    "WordLlamaTokens", "features_encoder", "fidelity", "keeps_trainings", "known_stealers", "load_stealer",
    "needs_teacher", "noisy", "pair_correlation",
]  # fmt: skip

STEALERS = Registry(
    "stealer",
    "regionmarker.stealers",
    {
        "head": "regionmarker.benchmark.stealers.head:FrozenHead",
        "tokens": "regionmarker.benchmark.stealers.tokens:TokenBag",
        "backbone": "regionmarker.benchmark.stealers.backbone:Backbone",
        "simulated": "regionmarker.benchmark.stealers.simulated:NoisyCopy",
    },
    forms={"head": ":ENCODER", "backbone": ":NAME", "simulated": ":FIDELITY"},
    protocol=Stealer,
    promise="a name and steal(texts, targets)",
    options_behind=True,
)


def known_stealers() -> list[str]:
    """Return what may stand before the colon of a spec: the built-in stealers, then those of other packages.

    Examples
    --------
    >>> known_stealers()[:4]
    ['head', 'tokens', 'backbone', 'simulated']
    """
    return STEALERS.known()


def load_stealer(spec: str | Stealer, **options: Any) -> Stealer:
    """Load a stealer by its spec; an object that is one already is returned as it is.

    Parameters
    ----------
    spec
        Such as ``"head:wordllama,hidden=512"``.
    **options
        Passed to the stealer: ``seed`` and ``progress`` for every one of them, then its own, such as ``epochs``. One
        that the spec names as well is an error.

    Examples
    --------
    >>> load_stealer("head:wordllama,hidden=0", seed=3).name
    'head (wordllama)'
    >>> load_stealer("tokens,depth=3")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: the stealer 'tokens' has no option depth
    """
    return cast("Stealer", STEALERS.load(spec, **options))


def features_encoder(spec: str) -> str | None:
    """Return the spec of the encoder whose features a stealer learns from; None for one that needs none.

    Examples
    --------
    >>> features_encoder("head:wordllama,hidden=0"), features_encoder("tokens")
    ('wordllama', None)
    """
    head, _, text = split_options(spec)[0].partition(":")
    return text if getattr(STEALERS.find(head), "needs_features", False) else None


def needs_teacher(spec: str) -> bool:
    """Return whether a stealer is given the marked map itself.

    Examples
    --------
    >>> needs_teacher("simulated:0.8")
    True
    """
    return bool(getattr(STEALERS.find(split_options(spec)[0].partition(":")[0]), "needs_teacher", False))


def keeps_trainings(spec: str) -> bool:
    """Return whether a stealer's training is long enough to be kept: it takes checkpoint, copies, progress and say.

    Examples
    --------
    >>> keeps_trainings("backbone:bert-base-cased"), keeps_trainings("tokens")
    (True, False)
    """
    return bool(getattr(STEALERS.find(split_options(spec)[0].partition(":")[0]), "keeps_trainings", False))
