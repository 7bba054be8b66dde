"""Schemes that mark what is served: RegionMarker, its rivals, and none at all.

    registry.py                  a spec string such as ``"warden:marks=5"`` becomes a defense
    base.py                      what all defenses have in common; no defense
    words.py, matching.py        trigger words: which they are, which texts hold them
    salads.py, trigger_words.py  what the trigger-word schemes have in common
    embmarker.py, warden.py, espew.py, none.py
    wet.py                       a secret circulant matrix for every vector
    geomark.py                   balls around anchors, one far target
    regionmarker.py              our own, with the paper's ablations
    pulls.py                     the decoy test's statistic for schemes with targets

Every defense is verified twice: as its paper does, and by a decoy test whose false-positive rate is exact.
"""

from __future__ import annotations

from regionmarker.benchmark.defenses.base import DefenseFinding
from regionmarker.benchmark.defenses.registry import Look, known_defenses, load_defense, look_of
from regionmarker.benchmark.defenses.words import TokenCounts, draw_words

__all__ = [
    "DefenseFinding",
    "Look",
    "TokenCounts",
    "draw_words",
    "known_defenses",
    "load_defense",
    "look_of",
]
