"""What the integrations are tested with; in an environment of their own there is no other conftest."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from regionmarker import RegionMarker, load_encoder, python_sentences
from regionmarker.errors import SecretLeakError


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return python_sentences(1500)


@pytest.fixture(scope="session")
def clean(texts) -> np.ndarray:
    """Embeddings of the texts, which are served in float32: what a package rounds would show."""
    rows = load_encoder("wordllama").encode(texts)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def fitted(texts, clean) -> RegionMarker:
    return RegionMarker(seed=4, grid="float32").fit(texts, embeddings=clean)


@pytest.fixture
def refuses_copies() -> Callable[[object], None]:
    """Check that an object prints nothing of its key, and that it cannot be copied or pickled."""

    def check(holder: object) -> None:
        assert repr(holder) == str(holder) == f"<{type(holder).__name__}: sealed>"
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(SecretLeakError, match=f"{type(holder).__name__} holds key material and cannot be"):
                attempt(holder)

    return check


@pytest.fixture(autouse=True)
def _calm(monkeypatch: pytest.MonkeyPatch):
    """These packages warn at will, and look for a network unless told."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
