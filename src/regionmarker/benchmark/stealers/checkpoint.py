"""The state of a training, in one file that is either whole or not there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regionmarker.errors import InputError
from regionmarker.files import atomic_path

_FORMAT = "regionmarker-training-1"


class Checkpoint:
    """Where a training keeps its state.

    Tensors are stored by safetensors and everything else as JSON: opening a file runs nothing that is in it.

    Parameters
    ----------
    path
        The file.
    digest
        Of everything that decides the training: a state of another training is refused, never gone on with.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> file = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> Checkpoint(file, "abc").save({"w": torch.ones(2)}, {"done": 7})
    >>> tensors, state = Checkpoint(file, "abc").load()
    >>> tensors["w"].tolist(), state
    ([1.0, 1.0], {'done': 7})
    >>> Checkpoint(file, "xyz").load()
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: ... is of another training: delete it, or name another file
    """

    def __init__(self, path: str | Path, digest: str) -> None:
        self.path, self.digest = Path(path), digest

    def save(self, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Replace the state."""
        from safetensors.torch import save_file

        header = {"format": _FORMAT, "digest": self.digest, "state": json.dumps(dict(state))}
        with atomic_path(self.path) as temporary:
            save_file(dict(tensors), temporary, metadata=header)

    def load(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the tensors and the rest of the state; None where there is none yet."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                header = file.metadata() or {}
                if header.get("format") != _FORMAT:
                    raise InputError(f"{self.path} is not the state of a training: name another file")
                if header.get("digest") != self.digest:
                    raise InputError(f"{self.path} is of another training: delete it, or name another file")
                return {name: file.get_tensor(name) for name in file.keys()}, json.loads(header["state"])  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{self.path} is damaged and cannot be gone on with: delete it") from None

    def remove(self) -> None:
        """Delete the state, and what a killed process may have left beside it."""
        self.path.unlink(missing_ok=True)
        for left in self.path.parent.glob(f".{self.path.name}.*.tmp"):
            left.unlink(missing_ok=True)
