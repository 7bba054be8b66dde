"""A spec string becomes a part: one grammar and one loader for encoders, defenses, attacks, stealers, paraphrasers.

    NAME                       a part with its defaults
    NAME:VALUE:VALUE           positions; each may be left empty or away       project:60:4
    NAME:key=value,flag        options, in any order                           cse:clusters=10,seed=3
    NAME:key=value,REST        options, then a rest with its own grammar       paraphrase:floor=0.7,apertium:spa,cat
    NAME:REST,key=value        the same, options behind                        head:wordllama,hidden=512

A part's dataclass says which it has: fields made by :func:`position` and :func:`rest`, and all others are options. The
last form is for registries whose parts take their options as keyword arguments.
"""

from __future__ import annotations

from regionmarker.specs.grammar import Spec, check_range, from_known, parse, position, rest, split_options, write
from regionmarker.specs.registry import Registry

__all__ = ["Registry", "Spec", "check_range", "from_known", "parse", "position", "rest", "split_options", "write"]
