"""A spec string becomes a stealer.

    head:ENCODER                      a head on the frozen features of an encoder, by the encoder's own spec
    tokens, tokens:wordllama          a bag of token vectors
    backbone:NAME                     full fine-tuning of a Hugging Face model, by its name on the hub or its folder
    simulated:FIDELITY                noise on a teacher, which is given as an object: teacher=

Options follow after commas, ``head:wordllama,hidden=512,epochs=2``, or as arguments of :func:`load_stealer`; the two
mean the same. Every stealer takes ``seed`` and ``progress``. Another package adds its own by an entry point of the
group ``regionmarker.stealers``: its name stands before the colon, and it is a class with ``from_spec(rest, **options)``, or
anything that may be called so.
"""

from __future__ import annotations

import re
from typing import Any

from regionmarker.benchmark.protocols import Stealer
from regionmarker.errors import InputError
from regionmarker.specs import Registry

STEALERS = Registry(
    "stealer",
    "regionmarker.stealers",
    {
        "head": "regionmarker.benchmark.stealers.head:FrozenHead",
        "tokens": "regionmarker.benchmark.stealers.tokens:TokenBag",
        "backbone": "regionmarker.benchmark.stealers.backbone:Backbone",
        "simulated": "regionmarker.benchmark.stealers.simulated:NoisyCopy",
    },
    forms={"head": ":ENCODER", "backbone": ":NAME", "simulated": ":FIDELITY"},
)

_OPTION = re.compile(r"^(?P<before>.*),(?P<name>[a-z][a-z0-9_]*)=(?P<value>[^,]*)$", re.DOTALL)
_WORDS = {"true": True, "false": False, "none": None}


def known_stealers() -> list[str]:
    """Return what may stand before the colon of a spec: the built-in stealers, then those of other packages.

    Examples
    --------
    >>> known_stealers()[:4]
    ['head', 'tokens', 'backbone', 'simulated']
    """
    return STEALERS.known()


def load_stealer(spec: str | Stealer, **options: Any) -> Stealer:
    """Load a stealer by its spec; an object that is one already is returned as it is.

    Parameters
    ----------
    spec
        See the head of this file.
    **options
        Passed to the stealer: ``seed`` and ``progress`` for every one of them, then its own, such as ``epochs``. One
        that the spec names as well is an error.

    Examples
    --------
    >>> load_stealer("head:wordllama,hidden=0", seed=3).name
    'head (wordllama)'
    >>> load_stealer("tokens,depth=3")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: the stealer 'tokens' has no option depth
    """
    if not isinstance(spec, str):
        if not isinstance(spec, Stealer) or options:
            raise InputError(
                "a stealer is a spec, or an object with a name and steal(texts, targets) that takes no further "
                f"options, but a {type(spec).__name__} was given"
            )
        return spec
    bare, written = split_options(spec)
    twice = sorted(written.keys() & options.keys())
    if twice:
        raise InputError(f"the option {twice[0]} stands in the stealer's spec and was given besides: give it once")
    head = bare.partition(":")[0]
    try:
        stealer = STEALERS.load(bare, **written, **options)
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None:
            raise
        raise InputError(f"the stealer {head!r} has no option {unknown[1]}") from None
    if not isinstance(stealer, Stealer):
        kind = type(stealer).__name__
        raise InputError(f"the stealer {head!r} must have a name and steal(texts, targets), but is a {kind}")
    return stealer


def split_options(spec: str) -> tuple[str, dict[str, Any]]:
    """Part a spec from the options behind it; values are numbers, true, false, none, or else strings.

    Examples
    --------
    >>> split_options("head:openai:http://host/v1#small,hidden=0,start=random")
    ('head:openai:http://host/v1#small', {'hidden': 0, 'start': 'random'})
    """
    options: dict[str, Any] = {}
    while found := _OPTION.match(spec):
        spec, name = found["before"], found["name"]
        if name in options:
            raise InputError(f"the option {name} stands twice in the stealer's spec: give it once")
        options[name] = _value(found["value"])
    return spec, dict(reversed(options.items()))


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
