"""Before the first vector is marked: which settings to choose, and whether a stealer would be caught.

goals.py     what the provider wants, and the settings that are tried
trials.py    the provider's corpus, divided; one key against one simulated stealer; a log of finished trials
search.py    which settings to try, which to recommend, and the curves
"""

from __future__ import annotations

from regionmarker.planning.goals import Candidate, Choices, Goals
from regionmarker.planning.search import Plan, draw_plan, plan
from regionmarker.planning.trials import PlanningCorpus

__all__ = ["Candidate", "Choices", "Goals", "Plan", "PlanningCorpus", "draw_plan", "plan"]
