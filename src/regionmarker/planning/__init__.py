"""Before the first vector is marked: which settings to choose, and whether a thief would be caught.

wishes.py      what the provider wants, and the settings that are tried
material.py    the provider's corpus, divided: what the thief asks, what keys are made from
shadows.py     thieves that nobody sent, of any wanted fidelity
trials.py      one key, one thief, one verdict; every finished one is kept
search.py      which settings to try, and which to recommend
figure.py      the curves
"""

from __future__ import annotations

from regionmarker.planning.goals import Candidate, Choices, Wishes
from regionmarker.planning.material import Material
from regionmarker.planning.search import Plan, plan

__all__ = ["Candidate", "Choices", "Material", "Plan", "Wishes", "plan"]
