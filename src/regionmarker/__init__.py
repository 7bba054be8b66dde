"""Proof of theft for embedding models.

>>> import regionmarker as rm
>>> rm.RegionMarker(strength=0.1).strength
0.1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regionmarker._version import __version__

if TYPE_CHECKING:
    from regionmarker.encoders import load_encoder
    from regionmarker.errors import RegionMarkerError
    from regionmarker.keys.files import KeyRing
    from regionmarker.marking.marker import RegionMarker
    from regionmarker.sample_corpus import python_sentences
    from regionmarker.verification.answers import Answers
    from regionmarker.verification.asking import ask
    from regionmarker.verification.judging import verify
    from regionmarker.verification.tracing import trace

# Public names load on first use: importing regionmarker costs next to nothing.
_HOME = {
    "Answers": "regionmarker.verification.answers",
    "KeyRing": "regionmarker.keys.files",
    "RegionMarker": "regionmarker.marking.marker",
    "RegionMarkerError": "regionmarker.errors",
    "ask": "regionmarker.verification.asking",
    "load_encoder": "regionmarker.encoders",
    "python_sentences": "regionmarker.sample_corpus",
    "trace": "regionmarker.verification.tracing",
    "verify": "regionmarker.verification.judging",
}

__all__ = [
    "Answers",
    "KeyRing",
    "RegionMarker",
    "RegionMarkerError",
    "__version__",
    "ask",
    "load_encoder",
    "python_sentences",
    "trace",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'regionmarker' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
