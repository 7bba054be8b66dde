"""An encoder whose answers are known already: nobody embeds a corpus once for every cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from regionmarker.errors import InputError
from regionmarker.protocols import Encoder, Floats


class LookupEncoder:
    """Answers from a table of texts; other texts go to the encoder itself, which is loaded when first needed.

    Examples
    --------
    >>> known = LookupEncoder("known", ["a", "b"], np.eye(2, dtype=np.float32))
    >>> known.encode(["b"]).tolist()
    [[0.0, 1.0]]
    >>> known.encode(["c"])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: the vectors of known are stored, but not that of 'c'
    """

    def __init__(
        self, name: str, texts: Sequence[str], rows: Floats, load: Callable[[], Encoder] | None = None
    ) -> None:
        self.name = name
        self._place = {text: place for place, text in enumerate(texts)}
        self._rows, self._load = rows, load
        self._encoder: Encoder | None = None

    def __repr__(self) -> str:
        return f"LookupEncoder({self.name!r})"

    def knows(self, texts: Sequence[str]) -> bool:
        """Return whether all these texts are in the table, or can be embedded."""
        return self._load is not None or all(text in self._place for text in texts)

    def encode(self, texts: Sequence[str], /) -> Floats:
        """Answer for texts in order, (n, D)."""
        places = np.array([self._place.get(text, -1) for text in texts], dtype=np.int64)
        found = self._rows[places]  # a copy
        new = np.flatnonzero(places < 0)
        if len(new):
            found[new] = self._own(texts[int(new[0])]).encode([texts[int(place)] for place in new])
        return found

    def _own(self, text: str) -> Encoder:
        if self._load is None:
            raise InputError(f"the vectors of {self.name} are stored, but not that of {text[:40]!r}")
        if self._encoder is None:
            self._encoder = self._load()
        return self._encoder
