"""What a thief does to the served vectors before training on them.

    registry.py                  a spec string such as ``"shift:100"`` becomes an attack
    compose.py                   several attacks, one after the other; an attack on a model that is trained already
    rows.py                      what the attacks that treat every vector alike have in common; no attack
    dimensions.py                shift, truncation, permutation, random projection, tanh
    motions.py                   rotation, scaling, translation
    noise.py                     noise, rounding, small entries set to zero
    whole.py                     what the attacks that look at all of the stolen data have in common
    cse.py                       cluster, suspect pairs, remove their directions; clusters.py and pairs.py are its parts
    compression.py               principal components
    paraphrase.py                the mean over other wordings; paraphrasers/ makes them
    publicly.py, residuals.py    what a public encoder predicts, and what it does not
    sampling.py                  detect and drop, avoid regions, cover less, mix in honest data
    angles.py                    search for the regions, and drop what looks marked; cells.py is its maths
    perturbation.py              see what moves when a suffix is appended (SPA)
    accounts.py                  two accounts compared or averaged
    finetuning.py                train the stolen model on; objectives.py is what for

An attack is given the stolen data, and answers with what to train on; a model attack is given the stolen model.
"""

from __future__ import annotations

from regionmarker.benchmark.attacks.accounts import Average, Compare
from regionmarker.benchmark.attacks.base import Nothing, RowAttack, SeededAttack, WholeDataAttack
from regionmarker.benchmark.attacks.compose import AttackedModel, Composed, compose
from regionmarker.benchmark.attacks.cse import CSE
from regionmarker.benchmark.attacks.directions import Compress, Residuals
from regionmarker.benchmark.attacks.fine_tuning import FineTune, tune
from regionmarker.benchmark.attacks.paraphrase import Paraphrase
from regionmarker.benchmark.attacks.perturbation import Perturb
from regionmarker.benchmark.attacks.plane_search import Angles
from regionmarker.benchmark.attacks.registry import known_attacks, load_attack
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

__all__ = [
    "CSE",
    "Angles",
    "AttackedModel",
    "Average",
    "Avoid",
    "Compare",
    "Composed",
    "Compress",
    "Cover",
    "Drop",
    "FineTune",
    "Mix",
    "Noise",
    "Nothing",
    "Paraphrase",
    "Permute",
    "Perturb",
    "Project",
    "Residuals",
    "Rotate",
    "Round",
    "RowAttack",
    "Scale",
    "SeededAttack",
    "Shift",
    "Tanh",
    "Translate",
    "Truncate",
    "WholeDataAttack",
    "Zero",
    "compose",
    "known_attacks",
    "load_attack",
    "tune",
]
