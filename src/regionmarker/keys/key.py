"""The key: everything secret about one mark, as plain values and arrays; how it is made, and what may be told of it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.derive import subkey
from regionmarker.crypto.secret import Sealed, Secret
from regionmarker.errors import InputError
from regionmarker.keys.serving import ServingKey
from regionmarker.marks import Mark, MarkSettings
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.graded import GradedMark
from regionmarker.marks.graded_settings import GradedSettings
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.regions import RegionMark
from regionmarker.measures import row_cosines
from regionmarker.progress import Progress
from regionmarker.specs import from_known

MASTER_BYTES = 32
_ONE_MODEL = 0.9999  # another batch or processor moves a cosine by less, another version of a model by more
_PRECOMPUTED = "precomputed"  # the encoder of embeddings that came with the corpus


@dataclass(frozen=True)
class Settings:
    """The open choices of a key, besides those of its mark; none of them is secret.

    Examples
    --------
    >>> Settings().level
    0.001
    """

    statistic: str = "decoy-1"
    level: float = 1e-3
    normalise: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Settings:
        return from_known(cls, document)


@dataclass(frozen=True, repr=False, eq=False)
class Key(Sealed):
    """One fitted secret. Immutable; made by :meth:`regionmarker.RegionMarker.fit` or read from a key file."""

    master: Secret
    salt: bytes  # public randomness mixed into the targets; empty until given
    settings: Settings
    mark: Mark
    encoder: str
    number_format: NumberFormat
    created: str  # UTC, ISO 8601
    test: bool  # made from a fixed seed: not for production
    pool: TextSet  # the texts that targets are drawn from
    reservoir: TextSet  # the texts that suspects are asked

    @property
    def id(self) -> str:
        """A public name for this key that says nothing about it."""
        return subkey(self.master, "id").reveal()[:8].hex()

    @property
    def width(self) -> int:
        return int(self.pool.embeddings.shape[1])

    @property
    def grid(self) -> NumberFormat:
        """The number format, by the name of the argument that sets it."""
        return self.number_format

    @property
    def regions(self) -> tuple[int, ...]:
        """The provider's trigger regions; none where the mark is graded and so everywhere."""
        return self.mark.regions if isinstance(self.mark, RegionMark) else ()

    @property
    def tenant_regions(self) -> tuple[int, ...]:
        """The tenants' trigger regions; none where the mark is graded."""
        return self.mark.tenant_regions if isinstance(self.mark, RegionMark) else ()

    @property
    def marks_tenants(self) -> bool:
        """Whether tenants have marks of their own."""
        mark = self.mark
        return bool(mark.tenant_regions if isinstance(mark, RegionMark) else mark.settings.tenant_pairs)

    def provider_targets(self) -> tuple[int, ...]:
        """Return the pool places of the targets that every tenant's vectors carry."""
        return self.mark.provider_targets(self.master, self.salt, len(self.pool))

    def tenant_targets(self, tenant: str) -> tuple[int, ...]:
        """Return the pool places of a tenant's own targets; none for tenant "" of the published mark."""
        return self.mark.tenant_targets(self.master, self.salt, len(self.pool), tenant)

    def with_salt(self, salt: bytes) -> Key:
        """Mix public randomness into the targets; once, and before anything is served."""
        if self.salt:
            raise InputError("this key already has a public salt: a second one would change every target")
        if len(salt) < 16:
            raise InputError("the public salt must have at least 16 bytes")
        if not any(salt):
            raise InputError("a public salt of zero bytes alone is the same as none: give public randomness")
        return replace(self, salt=salt)

    def serving(self, tenants: Sequence[str] = ("",)) -> ServingKey:
        """Return what marking needs and no more: no master secret, no texts, only the targets of these tenants."""
        drawn = {name: self.tenant_targets(name) for name in dict.fromkeys(("", *tenants))}
        return ServingKey(
            id=self.id,
            test=self.test,
            number_format=self.number_format,
            mark=self.mark.served(self.pool.embeddings, self.provider_targets(), drawn),
            normalise=self.settings.normalise,
            encoder=self.encoder,
            salt=self.salt.hex(),
        )

    def describe(self) -> dict[str, object]:
        """Return the facts that are not secret: nothing that helps to find or remove the mark."""
        return {
            "key_id": self.id,
            "kind": "TEST key (fixed seed): not for production" if self.test else "key",
            "created": self.created,
            "encoder": self.encoder,
            "width": self.width,
            "grid": self.number_format.value,
            **self.mark.describe(),
            "pool": len(self.pool),
            "reservoir": len(self.reservoir),
            "statistic": self.settings.statistic,
            "level": self.settings.level,
            "public_salt": self.salt.hex() or None,
        }


def new_master(seed: int | None) -> Secret:
    """Make a master secret: 32 random bytes, or for tests the digest of a seed."""
    if seed is None:
        return Secret(secrets.token_bytes(MASTER_BYTES))
    return Secret(hashlib.sha256(f"regionmarker TEST seed {seed}".encode()).digest())


def new_summary(master: Secret, pool: int, reservoir: int) -> CorpusSummary:
    """Start the pass over the corpus that a key is made from."""
    return CorpusSummary(subkey(master, "sample"), pool + reservoir)


def make_key(
    summary: CorpusSummary,
    master: Secret,
    settings: Settings,
    mark: MarkSettings,
    *,
    pool: int,
    reservoir: int,
    encoder: str,
    test: bool,
    number_format: NumberFormat | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Key:
    """Make a key from a summary of the corpus: fit the mark, draw its choices.

    ``pool`` and ``reservoir`` are what the published mark has; of a graded mark they are what it has at the most.
    """
    sample = summary.sample()
    pool, reservoir = _divided(len(sample), mark, pool, reservoir)
    parts = sample[:pool], sample[pool : pool + reservoir]
    return Key(
        master=master,
        salt=b"",
        settings=settings,
        mark=_fitted(summary, master, mark, parts, progress),
        encoder=encoder,
        number_format=number_format or summary.number_format,
        created=_now(),
        test=test,
        pool=parts[0],
        reservoir=parts[1],
    )


def _divided(texts: int, mark: MarkSettings, pool: int, reservoir: int) -> tuple[int, int]:
    if isinstance(mark, GradedSettings):
        return mark.divided(texts, reservoir)
    if texts < pool + reservoir:
        raise InputError(
            f"the corpus has {texts} distinct texts, but the pool needs {pool} and the reservoir {reservoir}: "
            "add texts, or lower pool and reservoir"
        )
    return pool, reservoir


def _fitted(
    summary: CorpusSummary, master: Secret, mark: MarkSettings, parts: Sequence[TextSet], progress: Progress
) -> Mark:
    if isinstance(mark, GradedSettings):
        return GradedMark.fit(summary, master, mark, parts, progress)
    return RegionMark.fit(summary, master, mark, parts)


def key_from_key(old: Key, seed: int | None = None) -> Key:
    """Draw a new key on an old key's fit: new secret and hyperplanes; same reducer, pool and reservoir."""
    master = new_master(seed)
    mark = old.mark.redrawn(master, (old.pool, old.reservoir))
    return replace(old, master=master, salt=b"", mark=mark, created=_now(), test=seed is not None)


def same_model(one: Key, other: Key) -> bool:
    """Say whether two keys are for the same version of a model.

    By the clean vectors of texts that both hold; where they share none, by the encoder's name, if one was given.
    """
    if one.width != other.width:
        return False
    texts = (one.pool.texts + one.reservoir.texts, other.pool.texts + other.reservoir.texts)
    rows = [np.concatenate([key.pool.embeddings, key.reservoir.embeddings]) for key in (one, other)]
    row_of = {text: row for row, text in enumerate(texts[0])}
    pairs = [(row_of[text], row) for row, text in enumerate(texts[1]) if text in row_of]
    if not pairs:
        return one.encoder == other.encoder != _PRECOMPUTED
    first, second = np.array(pairs).T
    cosines = row_cosines(rows[0][first], rows[1][second])
    return float(np.median(cosines)) > _ONE_MODEL


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
