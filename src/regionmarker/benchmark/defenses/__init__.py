"""Schemes that mark what is served: RegionMarker, its rivals, and none at all: the table.

    none                              the control
    embmarker                         warden:marks=5,released
    espew:rate=0.25                   wet:taps=25
    geomark:anchors=10,share=0.02     graded:kept=0.95,tenants
    regionmarker:reducer=svd,shared   published

What stands after the name are options; all may be left away. Every defense is verified twice: as its paper does, and by
a decoy test whose false-positive rate is exact. Another package adds its own by an entry point of the group
``regionmarker.defenses``: its name stands before the colon, and it is a class with
``from_spec(text, *, seed, counts)``, or anything that may be called so. Tables and figures show it by the attributes
``title``, ``colour`` and ``order`` of that class, where it has them.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, cast
from zlib import crc32

from regionmarker.benchmark.defenses.words import Counts, TokenCounts, draw_words
from regionmarker.benchmark.protocols import Defense
from regionmarker.errors import RegionMarkerError
from regionmarker.specs import Registry

__all__ = ["Look", "TokenCounts", "draw_words", "known_defenses", "load_defense", "look_of"]

_HERE = "regionmarker.benchmark.defenses"

DEFENSES = Registry(
    "defense",
    "regionmarker.defenses",
    {
        "none": f"{_HERE}.embmarker:NoDefense",
        "embmarker": f"{_HERE}.embmarker:EmbMarker",
        "warden": f"{_HERE}.warden:Warden",
        "espew": f"{_HERE}.espew:Espew",
        "wet": f"{_HERE}.wet:Wet",
        "geomark": f"{_HERE}.geomark:Geomark",
        "graded": f"{_HERE}.regionmarker:GradedDefense",
        "regionmarker": f"{_HERE}.regionmarker:RegionDefense",
        "published": f"{_HERE}.regionmarker:PublishedDefense",
    },
    protocol=Defense,
    promise="a name, fit, transform, probes and verify",
)


def known_defenses() -> list[str]:
    """Return what may stand before the colon of a spec: the built-in defenses, then those of other packages.

    Examples
    --------
    >>> known_defenses()[:3]
    ['none', 'embmarker', 'warden']
    """
    return DEFENSES.known()


def load_defense(spec: str | Defense, *, seed: int | None = None, counts: Counts | None = None) -> Defense:
    """Load a defense by its spec; an object that is one already is returned as it is.

    Parameters
    ----------
    spec
        Such as ``"warden:marks=5"``.
    seed
        Fixes the secret, for experiments; None draws a real one.
    counts
        In how many lines tokens stand, or the file of it, for trigger words; see
        :meth:`regionmarker.benchmark.defenses.words.TokenCounts.load`.

    Examples
    --------
    >>> load_defense("warden:marks=5", seed=1)
    <Warden: warden:marks=5, not fitted>
    >>> load_defense("garlic")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: unknown defense 'garlic': give none, embmarker, warden, ...
    """
    return cast("Defense", DEFENSES.load(spec, seed=seed, counts=counts))


class Look(NamedTuple):
    """How tables and figures show a defense; sorted, looks stand in the order of tables."""

    order: int
    title: str
    colour: str


_OTHERS = 100  # the place of defenses that name none: after the built-in ones
_COLOURS = ("#c2a83e", "#5ba3b0", "#a3476e", "#7d8f3c", "#8c5a3c", "#5560a8")


@cache
def look_of(name: str) -> Look:
    """Return the title, colour and order of a defense by what stands before the colon of its spec.

    They are attributes of its class. One that has none, or is not installed where results are looked at, is called by
    its name and gets a colour of its own, after the others.

    Examples
    --------
    >>> look_of("warden").title, look_of("garlic").title
    ('WARDEN', 'garlic')
    >>> sorted(["garlic", "regionmarker", "none"], key=look_of)
    ['none', 'regionmarker', 'garlic']
    """
    try:
        defense: object = DEFENSES.find(name)
    except RegionMarkerError:
        defense = None
    colour = _COLOURS[crc32(name.encode()) % len(_COLOURS)]
    return Look(getattr(defense, "order", _OTHERS), getattr(defense, "title", name), getattr(defense, "colour", colour))
