"""Stealers: texts and served vectors in, a model out that answers as the provider does.

    material.py                  what a stealer trains on, checked; the texts that are held out
    fidelity.py                  how well a copy learnt
    tokens.py, vocabulary.py     a bag of token vectors: no torch, seconds, for the offline demo
    head.py, network.py          a head on a frozen encoder's features: the everyday stealer
    tuning.py                    such a head trained further, for any loss
    backbone.py                  full fine-tuning of a transformer: the published stealer; its parts are
                                 transformer.py, training.py, checkpoint.py, backbone_model.py
    registry.py                  a stealer by its spec
    simulated.py                 noise in place of training, for curves over fidelity

Only the backbone loads torch, when it steals.
"""

from __future__ import annotations

from regionmarker.benchmark.stealers.base import Fidelity, fidelity, pair_correlation
from regionmarker.benchmark.stealers.head import FrozenHead, HeadModel
from regionmarker.benchmark.stealers.registry import known_stealers, load_stealer
from regionmarker.benchmark.stealers.simulated import NoisyCopy, NoisyModel, noisy
from regionmarker.benchmark.stealers.tokens import HashedGrams, TokenBag, TokenBagModel, WordLlamaTokens

__all__ = [
    "Fidelity",
    "FrozenHead",
    "HashedGrams",
    "HeadModel",
    "NoisyCopy",
    "NoisyModel",
    "TokenBag",
    "TokenBagModel",
    "WordLlamaTokens",
    "fidelity",
    "known_stealers",
    "load_stealer",
    "noisy",
    "pair_correlation",
]
