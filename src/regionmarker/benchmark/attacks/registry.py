"""A spec string becomes an attack.

    none                              the control
    shift:PLACES                      truncate:KEEP (1024, 0.667 or 2/3)
    permute:SEED                      project:WIDTH:SEED
    tanh:GAIN                         rotate:SEED
    scale:FACTOR, scale:rows          translate:SEED:LENGTH

What stands after the name may be left away. Another package adds its own by an entry point of the group
``regionmarker.attacks``: its name stands before the colon, and it is a class with ``from_spec(rest)``, or anything
that may be called with what stands after the colon.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from regionmarker.benchmark.protocols import Attack
from regionmarker.errors import InputError, RegionMarkerError

GROUP = "regionmarker.attacks"

# Named here and not in pyproject.toml: they work from a source tree that nobody installed, and load when asked for.
_BUILT_IN = {
    "none": "regionmarker.benchmark.attacks.rows:Nothing",
    "shift": "regionmarker.benchmark.attacks.dimensions:Shift",
    "truncate": "regionmarker.benchmark.attacks.dimensions:Truncate",
    "permute": "regionmarker.benchmark.attacks.dimensions:Permute",
    "project": "regionmarker.benchmark.attacks.dimensions:Project",
    "tanh": "regionmarker.benchmark.attacks.dimensions:Tanh",
    "rotate": "regionmarker.benchmark.attacks.motions:Rotate",
    "scale": "regionmarker.benchmark.attacks.motions:Scale",
    "translate": "regionmarker.benchmark.attacks.motions:Translate",
}


def known_attacks() -> list[str]:
    """Return what may stand before the colon of a spec: the built-in attacks, then those of other packages.

    Examples
    --------
    >>> known_attacks()[:3]
    ['none', 'shift', 'truncate']
    """
    return [*_BUILT_IN, *sorted({point.name for point in entry_points(group=GROUP)} - _BUILT_IN.keys())]


def load_attack(spec: str | Attack) -> Attack:
    """Load an attack by its spec; an object that is one already is returned as it is.

    Examples
    --------
    >>> load_attack("shift:100")
    Shift(places=100)
    >>> load_attack("shuffle")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: unknown attack 'shuffle': give none, shift, truncate, permute, ...
    """
    if not isinstance(spec, str):
        if not isinstance(spec, Attack):
            raise InputError(f"an attack is a spec or a callable with a name, but a {type(spec).__name__} was given")
        return spec
    head, _, rest = spec.partition(":")
    loaded = _find(head)
    attack = getattr(loaded, "from_spec", loaded)(rest)
    if not isinstance(attack, Attack):
        raise InputError(f"the attack {head!r} must be a callable with a name, but is a {type(attack).__name__}")
    return attack


def _find(head: str) -> Any:
    if head in _BUILT_IN:
        return EntryPoint(head, _BUILT_IN[head], GROUP).load()
    for point in entry_points(group=GROUP, name=head):
        try:
            return point.load()
        except RegionMarkerError:
            raise
        except Exception as error:  # anything at all may go wrong in another's module
            package = point.dist.name if point.dist else "an installed package"
            raise InputError(f"the attack {head!r} of {package} cannot be loaded: {error}") from error
    raise InputError(f"unknown attack {head!r}: give {', '.join(known_attacks())}")
