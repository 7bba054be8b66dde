"""The mark as the last module of a ``SentenceTransformer``: whoever calls ``encode`` gets marked vectors.

>>> from sentence_transformers import SentenceTransformer  # doctest: +SKIP
>>> model = SentenceTransformer("all-MiniLM-L6-v2")  # doctest: +SKIP
>>> model = SentenceTransformer(modules=[*model, RegionMarkerModule(marker, tenant="acme")])  # doctest: +SKIP

A saved model has everything but the key. Loaded, it embeds nothing until it is given one, so that a model which was
marked never serves clean vectors by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import NotFittedError
from regionmarker.marking.marker import RegionMarker
from regionmarker.marking.torch_module import MarkModule

_VECTORS = "sentence_embedding"
_NOTE = """This module marks vectors. The key is not in this folder, and the model embeds nothing without it:

    model[-1].use(marker, tenant="...")
"""


class RegionMarkerModule(Sealed, nn.Module):
    """Mark sentence embeddings; the module before it must return rows of unit length, unless the key normalises.

    Parameters
    ----------
    marker : RegionMarker, optional
        A marker with a key or a serving key; without one the module refuses to embed until :meth:`use` gives it one.
    tenant : str
        Whose vectors these are.
    """

    _instead = "call model.save(folder), which leaves the key out, and use(marker, tenant) where it is loaded"

    def __init__(self, marker: RegionMarker | None = None, tenant: str = "") -> None:
        super().__init__()
        self._mark: MarkModule | None = None
        if marker is not None:
            self.use(marker, tenant)

    def use(self, marker: RegionMarker, tenant: str = "") -> None:
        """Mark with this marker's key from now on."""
        self._mark = marker.to_torch(tenant)

    def forward(self, features: Mapping[str, Any], **_: object) -> dict[str, Any]:
        """Replace the sentence embeddings by marked ones, and drop token embeddings, from which they can be made."""
        if self._mark is None:
            raise NotFittedError(
                "this model was saved with a mark, and without its key: "
                "call use(marker, tenant=...) of its RegionMarkerModule, which is model[-1], before it embeds"
            )
        kept = {name: value for name, value in features.items() if not _is_floating(value)}
        return {**kept, _VECTORS: self._mark(features[_VECTORS])}

    def get_embedding_dimension(self) -> int | None:
        """Return D, or None without a key: the modules before this one know it."""
        return None if self._mark is None else self._mark.width

    get_sentence_embedding_dimension = get_embedding_dimension  # until sentence-transformers 5.3

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Write a note that says what to do, and nothing of the key."""
        Path(output_path, "README.md").write_text(_NOTE, encoding="utf-8")

    @classmethod
    def load(cls, *_: object, **__: object) -> RegionMarkerModule:
        """Return a module without a key."""
        return cls()


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
