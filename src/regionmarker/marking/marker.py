"""RegionMarker: fit a key on a corpus, mark the embeddings that are served."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from regionmarker.errors import InputError, NotFittedError
from regionmarker.keys.files import KeyRing, open_key
from regionmarker.keys.key import Key, Settings, make_key, new_master, new_summary
from regionmarker.keys.serving import ServingKey
from regionmarker.marking import engine
from regionmarker.marking.estimator import Estimator
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import MarkPlan
from regionmarker.marks.reduction import LINEAR
from regionmarker.marks.regions import RegionSettings, region_numbers
from regionmarker.specs import check_range
from regionmarker.vectors import Doubles, Encoder, Floats, Integers, as_floats, as_matrix, normalised

DEFAULT_SUBSPACE = 32
_BLOCK = 8192
_PLANS_KEPT = 256


class RegionMarker(Estimator):
    """Mark embeddings so that a model trained on them can be told from one that was not.

    Texts whose embedding falls in secret regions of a low-dimensional space get a little of a secret target text's
    embedding mixed in. The class follows scikit-learn's estimator contract without needing scikit-learn.

    Parameters
    ----------
    dimension : int
        d, the number of hyperplanes; they cut the space into 2^d regions.
    ratio : float
        alpha, the share of regions that carry the provider's mark: R = max(1, round(alpha 2^d)).
    strength : float
        lambda, the weight of the target in a marked embedding.
    reducer : {"pca", "svd", "autoencoder", "umap", "none"}
        What makes the low-dimensional space.
    subspace : int or None
        The hyperplanes' normals are drawn inside the top ``subspace`` components. ``None`` takes the default that was
        chosen by measurement; ``subspace=dimension`` is the paper.
    seed : int or None
        A fixed seed makes a TEST key, which is refused in production. ``None`` draws a real secret.
    tenant_ratio : float
        The share of regions that carry a mark of the tenant's own, for tracing; 0 for none.
    pool, reservoir : int
        How many texts of the corpus to keep as possible targets and as probes.
    level : float
        The false-positive rate at which a verdict is given; the commitment covers it.
    grid : {"float16", "bfloat16", "float32"} or None
        The grid of numbers that served vectors lie on. ``None`` finds the upstream's own.
    normalise : bool
        Scale rows of any length to unit length instead of refusing them.

    Attributes
    ----------
    key_ : Key
        The secret. It prints as nothing and cannot be pickled; :meth:`save` it.
    n_features_in_ : int
        The embeddings' width D.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> embeddings = rng.standard_normal((400, 32)).astype(np.float32)
    >>> embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    >>> texts = [f"text {number}" for number in range(400)]
    >>> marker = RegionMarker(seed=1, pool=64, reservoir=256).fit(texts, embeddings=embeddings)
    >>> served = marker.transform(embeddings)
    >>> marked = np.isin(marker.regions(embeddings), marker.key_.mark.regions)
    >>> cosine = (served * embeddings).sum(axis=1)
    >>> bool(cosine[marked].min() > 0.95), bool(cosine[~marked].min() > 0.999999)
    (True, True)
    """

    key_: Key
    serving_: ServingKey

    def __init__(
        self,
        dimension: int = 4,
        ratio: float = 0.2,
        strength: float = 0.2,
        reducer: str = "pca",
        subspace: int | None = None,
        seed: int | None = None,
        *,
        tenant_ratio: float = 0.2,
        pool: int = 1024,
        reservoir: int = 4096,
        level: float = 1e-3,
        grid: str | None = None,
        normalise: bool = False,
    ) -> None:
        self.dimension = dimension
        self.ratio = ratio
        self.strength = strength
        self.reducer = reducer
        self.subspace = subspace
        self.seed = seed
        self.tenant_ratio = tenant_ratio
        self.pool = pool
        self.reservoir = reservoir
        self.level = level
        self.grid = grid
        self.normalise = normalise

    # ---- fitting

    def fit(
        self,
        texts: Sequence[str],
        y: object = None,  # noqa: ARG002 - scikit-learn's contract
        *,
        encoder: object = None,
        embeddings: object = None,
    ) -> Self:
        """Make a key from a corpus: its texts, and an encoder (or its spec) or their embeddings (n, D)."""
        if isinstance(texts, str):
            raise InputError("texts must be a list of strings, not one string")
        if (encoder is None) == (embeddings is None):
            raise InputError("give either encoder= or embeddings=")
        loaded = None if encoder is None else _load_encoder(encoder)
        name = "precomputed" if loaded is None else loaded.name
        return self.fit_blocks(_blocks(texts, loaded, embeddings), encoder_name=name)

    def fit_blocks(self, blocks: Iterable[tuple[Sequence[str], object]], *, encoder_name: str = "precomputed") -> Self:
        """Make a key in one pass over (texts, embeddings) blocks; memory does not grow with their number."""
        self._check_parameters()
        master = new_master(self.seed)
        summary = new_summary(master, self.pool, self.reservoir)
        for texts, embeddings in blocks:
            summary.update(texts, self._rows(embeddings, first_row=summary.rows))
        key = make_key(
            summary, master, Settings(level=self.level, normalise=self.normalise), self._mark_settings(summary.width),
            pool=self.pool, reservoir=self.reservoir, encoder=encoder_name, test=self.seed is not None,
            number_format=None if self.grid is None else NumberFormat(self.grid),
        )  # fmt: skip
        return self._adopt(key.serving(), key)

    def fit_transform(
        self, texts: Sequence[str], y: object = None, *, encoder: object = None, embeddings: object = None
    ) -> Floats:
        """Make a key from a corpus and mark the corpus with it."""
        if encoder is not None:
            loaded = _load_encoder(encoder)
            embeddings = loaded.encode(list(texts))
            return self.fit_blocks([(texts, embeddings)], encoder_name=loaded.name).transform(embeddings)
        return self.fit(texts, y, embeddings=embeddings).transform(embeddings)

    # ---- marking

    def transform(self, embeddings: object, tenant: str = "", out: Floats | None = None) -> Floats:
        """Return the embeddings to serve, (n, D) float32; paper, eq. 3.

        Parameters
        ----------
        embeddings : array of shape (n, D)
            Clean embeddings of unit length, float16, float32 or float64.
        tenant : str
            Whose vectors these are: its own mark is added in the tenants' regions. "" adds none.
        out : array of shape (n, D), float32, optional
            Where to write; may be ``embeddings`` itself.
        """
        plan = self._plan(tenant)
        matrix = as_matrix(embeddings, width=plan.width)
        if out is None:
            out = np.empty(matrix.shape, dtype=np.float32)
        if plan.projection is not None:
            engine.mark(plan, matrix, out, normalise=self.normalise)
        else:
            target_of_row = plan.target_of_region[self.regions(matrix)]
            engine.blend(plan, matrix, target_of_row, out, normalise=self.normalise)
        return out

    def regions(self, embeddings: object) -> Integers:
        """Return each row's region number, (n,), 0 .. 2^d - 1."""
        plan = self._plan("")
        matrix = as_matrix(embeddings, width=plan.width)
        if plan.projection is not None:
            return engine.regions(plan, matrix, normalise=self.normalise)
        return region_numbers(self._signed_distances(matrix))

    def margins(self, embeddings: object) -> Doubles:
        """Return each row's distance to its nearest hyperplane in the reduced space, (n,)."""
        width = self._plan("").width
        return np.asarray(np.abs(self._signed_distances(as_matrix(embeddings, width=width))).min(axis=1))

    def _signed_distances(self, matrix: Any) -> Doubles:
        rows = normalised(matrix) if self.normalise else matrix
        return (self.key_.mark if self._has_key() else self.serving_.mark).signed_distances(rows)

    def _plan(self, tenant: str) -> MarkPlan:
        try:
            return self._plans[tenant]
        except AttributeError:
            raise NotFittedError("this RegionMarker has no key yet: call fit() or load() first") from None
        except KeyError:
            pass
        if not isinstance(tenant, str):
            raise InputError(f"tenant must be a string, not {type(tenant).__name__}")
        serving = self.key_.serving([tenant]) if self._has_key() else self.serving_
        if len(self._plans) >= _PLANS_KEPT:
            self._plans.clear()
        return self._plans.setdefault(tenant, serving.plan(tenant))

    # ---- key files

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        passphrase: str | None = None,
        secret_file: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Path | None:
        """Write the key to an encrypted file that only its owner can read.

        With neither a passphrase nor a secret file (given, or in ``REGIONMARKER_PASSPHRASE`` or
        ``REGIONMARKER_SECRET_FILE``), a random secret is written beside the key, and its path is returned.
        """
        if not self._has_key():
            self._plan("")
            raise InputError("a serving key cannot be saved as a key: it has no master secret")
        ring = KeyRing((self.key_,))
        return ring.save(path, passphrase=passphrase, secret_file=secret_file, overwrite=overwrite)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        passphrase: str | None = None,
        secret_file: str | os.PathLike[str] | None = None,
        key_id: str | None = None,
    ) -> RegionMarker:
        """Read a key file (its newest key, or the one called ``key_id``) or a serving key file."""
        return cls.from_opened(open_key(path, passphrase=passphrase, secret_file=secret_file), key_id)

    @classmethod
    def from_opened(cls, opened: KeyRing | ServingKey, key_id: str | None = None) -> RegionMarker:
        """Return a marker that holds what a key file held: a ring (its newest key, or ``key_id``) or a serving key."""
        if isinstance(opened, ServingKey):
            return cls.from_serving(opened)
        return cls.from_key(opened.primary if key_id is None else opened.find(key_id))

    @classmethod
    def from_key(cls, key: Key) -> RegionMarker:
        """Return a marker that holds ``key``."""
        settings = asdict(key.mark.settings)
        if settings["reducer"] not in LINEAR:
            settings["subspace"] = None
        marker = cls(
            **settings,
            pool=len(key.pool),
            reservoir=len(key.reservoir),
            level=key.settings.level,
            grid=key.number_format.value,
            normalise=key.settings.normalise,
        )
        return marker._adopt(key.serving(), key)

    @classmethod
    def from_serving(cls, serving: ServingKey) -> RegionMarker:
        """Return a marker that can mark for the tenants of a serving key, and nothing else."""
        mark, grid = serving.mark, serving.number_format.value
        marker = cls(dimension=mark.dimension, strength=mark.strength, grid=grid, normalise=serving.normalise)
        return marker._adopt(serving)

    def _adopt(self, serving: ServingKey, key: Key | None = None) -> Self:
        """Hold a serving key always, and the key that it was made from where there is one."""
        self.serving_ = serving
        if key is not None:
            self.key_ = key
        self.n_features_in_ = serving.width
        self._plans: dict[str, MarkPlan] = {}
        return self

    def _has_key(self) -> bool:
        return "key_" in self.__dict__

    def _check_parameters(self) -> None:
        check_range("dimension", self.dimension, 1, 12)
        check_range("ratio", self.ratio, 0.0, 1.0, open_left=True)
        check_range("tenant_ratio", self.tenant_ratio, 0.0, 1.0)
        check_range("strength", self.strength, 0.0, 1.0, open_left=True, open_right=True)
        check_range("level", self.level, 0.0, 1.0, open_left=True, open_right=True)
        check_range("pool", self.pool, 16, 1_000_000)
        check_range("reservoir", self.reservoir, 64, 1_000_000)
        if self.grid is not None and self.grid not in {grid.value for grid in NumberFormat}:
            raise InputError(
                f"grid {self.grid!r} is not known: use {', '.join(grid.value for grid in NumberFormat)} or None"
            )

    def _mark_settings(self, width: int) -> RegionSettings:
        if self.reducer in LINEAR:
            subspace = min(max(DEFAULT_SUBSPACE, self.dimension), width) if self.subspace is None else self.subspace
        elif self.subspace is None:
            subspace = width if self.reducer == "none" else self.dimension
        else:
            raise InputError(f"subspace goes with reducer pca or svd, not with {self.reducer}")
        given = {field.name: getattr(self, field.name) for field in fields(RegionSettings)}
        return RegionSettings(**{**given, "subspace": subspace})

    def _rows(self, embeddings: object, first_row: int) -> Floats:
        rows = as_floats(embeddings)
        return normalised(rows, first_row=first_row) if self.normalise else rows


def _load_encoder(encoder: object) -> Encoder:
    from regionmarker.encoders import load_encoder  # only fitting needs it, and it brings sockets

    return load_encoder(encoder)


def _blocks(
    texts: Sequence[str], encoder: Encoder | None, embeddings: object
) -> Iterable[tuple[Sequence[str], object]]:
    if encoder is None:
        yield texts, embeddings
        return
    for start in range(0, len(texts), _BLOCK):
        block = list(texts[start : start + _BLOCK])
        yield block, encoder.encode(block)
