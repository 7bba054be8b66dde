"""Before the first vector is marked: how many neighbours to keep, and whether a stealer would be caught.

goals.py     what the provider wants, and the choices that are tried
trials.py    the provider's corpus, divided; a stealer weakened to a fidelity; a log of finished trials
search.py    what each choice catches, and which to recommend
"""

from __future__ import annotations

from regionmarker.planning.goals import Choice, Choices, Goals
from regionmarker.planning.search import Outcome, Plan, draw_plan, plan
from regionmarker.planning.trials import PlanningCorpus

__all__ = ["Choice", "Choices", "Goals", "Outcome", "Plan", "PlanningCorpus", "draw_plan", "plan"]
