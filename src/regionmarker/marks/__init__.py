"""Marks: what is mixed into the vectors that are served. One file per kind of mark.

    number_format    output formats: round, detect, dither
    corpus_summary   one pass over a corpus: all that a mark is fitted on
    reduction        e -> v, the low-dimensional space in which hyperplanes are cut
    plan             the tables that an engine reads
    graded_settings  the open choices of the graded mark
    graded           the graded mark: a little of many targets in every vector, by its distance from hyperplanes
    regions          the published mark: a target in each of a few secret regions
    served_carriers  the graded mark in a serving key
    served_regions   the published mark in a serving key

A key holds a mark and asks it. Every kind of mark has two classes:

- the **mark** is in the key. It is made by ``fit`` or ``redrawn``; ``provider_targets`` and ``tenant_targets`` draw the
  targets; ``signed_distances`` says where a vector lies; ``served`` leaves what marking needs; ``document``, ``arrays``
  and ``from_parts`` are its part of a key file; ``describe`` tells what is no secret;
- the **served mark** is in the serving key. ``plan`` lays one tenant's marks out for an engine; the rest is the same.

A new kind is a new file, a row in :data:`MARKS` and a member of both unions: mypy then names every place that took the
first kinds for the only ones.
"""

from __future__ import annotations

from typing import TypeAlias

from regionmarker.marks.graded import GradedMark
from regionmarker.marks.graded_settings import GradedSettings
from regionmarker.marks.regions import RegionMark, RegionSettings
from regionmarker.marks.served_carriers import ServedCarriers
from regionmarker.marks.served_regions import ServedRegions

Mark: TypeAlias = RegionMark | GradedMark
ServedMark: TypeAlias = ServedRegions | ServedCarriers
MarkSettings: TypeAlias = RegionSettings | GradedSettings

MARKS: dict[str, type[Mark]] = {RegionMark.kind: RegionMark, GradedMark.kind: GradedMark}
"""The kinds of marks by the name that key files know them by."""
SERVED_MARKS: dict[str, type[ServedMark]] = {ServedRegions.kind: ServedRegions, ServedCarriers.kind: ServedCarriers}

__all__ = ["MARKS", "SERVED_MARKS", "GradedMark", "Mark", "MarkSettings", "RegionMark", "ServedMark"]
