"""A student that was never trained: the marked map itself plus noise, to any fidelity that is wanted.

Expect it to be easier to convict than a trained copy of the same fidelity: its errors are independent of the text, and
it holds the whole mark. Trained copies held 0.2 to 0.5 of it, at a fidelity of 0.72 as at 0.94 (one key of three
regions, for each of two providers). So a curve made with this says "simulated"; a trained student of any wanted quality
is ``FrozenHead(AttackedModel(provider, "project:WIDTH"))``, better the wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from regionmarker.benchmark.protocols import Fidelity
from regionmarker.benchmark.stealers.base import check_clean, check_training_data
from regionmarker.benchmark.stealers.base import fidelity as measure
from regionmarker.errors import InputError
from regionmarker.progress import Progress
from regionmarker.vectors import Encoder, Floats, normalised


def noisy(targets: Floats, fidelity: float, noise: Floats) -> Floats:
    """Mix targets (n, D') with noise (n, D') such that every row's cosine to its target is ``fidelity``.

    The part of the noise along the target is taken out first, so the cosine is met exactly and not on average. For a
    copy that holds only part of the mark, mix clean and served vectors to that part and give the mixture as targets.

    Examples
    --------
    >>> rows, rng = np.eye(5, dtype=np.float32), np.random.default_rng(0)
    >>> copies = noisy(rows, 0.8, rng.standard_normal((5, 5)).astype(np.float32))
    >>> np.diag(copies).round(3).tolist()
    [0.800000011920929, 0.800000011920929, 0.800000011920929, 0.800000011920929, 0.800000011920929]
    """
    _check_fidelity(fidelity)
    targets = normalised(targets)
    across = noise - np.einsum("ij,ij->i", noise, targets)[:, None] * targets
    return normalised(np.float32(fidelity) * targets + np.float32(np.sqrt(1 - fidelity**2)) * normalised(across))


def _check_fidelity(fidelity: float) -> None:
    if not 0 < fidelity <= 1:
        raise InputError(f"a fidelity lies above 0 and is at most 1, but {fidelity} was given")


class NoisyModel:
    """A simulated copy: what the teacher says, plus noise that depends on the text and the seed only."""

    def __init__(self, teacher: Encoder, wanted: float, seed: int) -> None:
        self.name = f"simulated copy of fidelity {wanted:g}"
        self.fidelity: Fidelity
        self._teacher, self._wanted, self._seed = teacher, wanted, seed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def encode(self, texts: Sequence[str], /) -> Floats:
        targets = self._teacher.encode(texts)
        noise = [self._noise(text, targets.shape[1]) for text in texts]
        return noisy(targets, self._wanted, np.stack(noise)) if noise else targets

    def _noise(self, text: str, width: int) -> Floats:
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=16, salt=self._seed.to_bytes(16, "big"))
        rng = np.random.default_rng(int.from_bytes(digest.digest(), "big"))
        return rng.standard_normal(width, dtype=np.float32)


class NoisyCopy:
    """A simulated stealer; nothing is trained, so nothing is said about how well a mark is learnt.

    Parameters
    ----------
    teacher
        The marked map, texts in and training targets out: what the provider serves, attacked if it is.
    fidelity
        The cosine of every answer to the teacher's.
    seed
        Another seed, another copy.
    progress
        Called once, at the end.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> provider = load_encoder("wordllama")
    >>> texts = ["one text", "another text", "a third"]
    >>> copy = NoisyCopy(provider, 0.8).steal(texts, provider.encode(texts))
    >>> round(copy.fidelity.cosine, 3)
    0.8
    """

    needs_teacher: ClassVar[bool] = True

    def __init__(
        self, teacher: Encoder, fidelity: float = 0.8, *, seed: int = 0, progress: Progress | None = None
    ) -> None:
        _check_fidelity(fidelity)
        if seed < 0:
            raise InputError(f"the seed of a simulated copy must not be negative, but is {seed}")
        self.teacher, self.fidelity, self.seed, self.progress = teacher, fidelity, seed, progress

    @classmethod
    def from_spec(cls, rest: str, *, teacher: Encoder | None = None, **options: Any) -> NoisyCopy:
        """Load ``simulated:FIDELITY``; the teacher has no spec, for it holds the key."""
        if teacher is None:
            raise InputError("a simulated copy needs the marked map that it copies: give teacher=")
        try:
            given: dict[str, Any] = {"fidelity": float(rest)} if rest else {}
        except ValueError:
            raise InputError(f"simulated:FIDELITY takes a number, not {rest!r}") from None
        return cls(teacher, **given, **options)

    @property
    def name(self) -> str:
        return f"simulated ({self.fidelity:g})"

    def steal(self, texts: Sequence[str], targets: Floats, /, *, clean: Floats | None = None) -> NoisyModel:
        """Return the simulated copy; the targets are only measured against."""
        texts, rows = check_training_data(texts, targets)
        model = NoisyModel(self.teacher, self.fidelity, self.seed)
        model.fidelity = measure(model.encode(texts), rows, clean=check_clean(clean, len(rows)))
        if self.progress is not None:
            self.progress(1, 1)
        return model
