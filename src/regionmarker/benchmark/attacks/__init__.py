"""What a thief does to the served vectors before training on them.

    registry.py                  a spec string such as ``"shift:100"`` becomes an attack
    compose.py                   several attacks, one after the other; an attack on a model that is trained already
    rows.py                      what the attacks that treat every vector alike have in common; no attack
    dimensions.py                shift, truncation, permutation, random projection, tanh
    motions.py                   rotation, scaling, translation

An attack is called with the served vectors and their texts, and answers with the vectors to train on.
"""

from __future__ import annotations

from regionmarker.benchmark.attacks.compose import AttackedModel, Composed, compose
from regionmarker.benchmark.attacks.dimensions import Permute, Project, Shift, Tanh, Truncate
from regionmarker.benchmark.attacks.motions import Rotate, Scale, Translate
from regionmarker.benchmark.attacks.registry import known_attacks, load_attack
from regionmarker.benchmark.attacks.rows import Nothing, RowAttack, SeededAttack

__all__ = [
    "AttackedModel",
    "Composed",
    "Nothing",
    "Permute",
    "Project",
    "Rotate",
    "RowAttack",
    "Scale",
    "SeededAttack",
    "Shift",
    "Tanh",
    "Translate",
    "Truncate",
    "compose",
    "known_attacks",
    "load_attack",
]
