"""RegionMarker: fit a key on a corpus, mark the embeddings that are served."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regionmarker.errors import InputError, NotFittedError
from regionmarker.keys.files import KeyRing, open_key
from regionmarker.keys.key import Key, make_key, new_master, new_summary
from regionmarker.keys.serving import ServingKey
from regionmarker.marking import engine
from regionmarker.marking.estimator import Estimator
from regionmarker.marking.parameters import (
    PUBLISHED,
    check_parameters,
    key_parameters,
    key_settings,
    mark_settings,
    sample_sizes,
    serving_parameters,
)
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import GradedPlan, MarkPlan
from regionmarker.marks.regions import region_numbers
from regionmarker.progress import Progress
from regionmarker.vectors import Doubles, Encoder, Floats, Integers, as_floats, as_matrix, embedded_blocks, normalised

if TYPE_CHECKING:
    from regionmarker.marking.torch_module import MarkModule

_BLOCK = 8192
_PLANS_KEPT = 256


class RegionMarker(Estimator):
    """Mark embeddings so that a model trained on them can be told from one that was not.

    Every embedding gets a little of the embeddings of secret target texts mixed in; how much of which depends on where
    it lies between secret hyperplanes. That is the graded mark, the default: say with ``kept`` how many neighbours
    shall stay, and the strength is found. Any of the paper's own parameters (``dimension``, ``ratio``, ``strength``,
    ``subspace``, ``tenant_ratio``, ``pool``, or a reducer that is not linear) makes the published mark instead, in
    which texts in a few secret regions get one target each. The class follows scikit-learn's estimator contract without
    needing scikit-learn.

    Parameters
    ----------
    dimension : int, optional
        d, the number of hyperplanes; they cut the space into 2^d regions. 4 in the published mark.
    ratio : float, optional
        alpha, the share of regions that carry the provider's mark: R = max(1, round(alpha 2^d)); 0.2.
    strength : float, optional
        lambda, the weight of the target in a marked embedding; 0.2.
    reducer : {"pca", "svd", "autoencoder", "umap", "none"}
        What makes the low-dimensional space. The graded mark takes "pca" or "svd".
    subspace : int, optional
        The hyperplanes' normals are drawn inside the top ``subspace`` components; 32. ``subspace=dimension`` is the
        paper.
    seed : int or None
        A fixed seed makes a TEST key, which is refused in production. ``None`` draws a real secret.
    kept : float, optional
        The share of each text's ten nearest neighbours that marking shall leave as they are; 0.93. Graded mark only.
    tenants : bool
        Give every tenant a mark of its own beside the provider's, for tracing; they share the energy. Graded mark only.
    tenant_ratio : float, optional
        The share of regions that carry a mark of the tenant's own, for tracing; 0.2, and 0 for none.
    pool : int, optional
        How many texts of the corpus to keep as possible targets; 1,024. The graded mark keeps 1,536, and
        fewer of a small corpus.
    reservoir : int, optional
        How many texts to keep as probes; 4,096, and fewer for the graded mark where the corpus is small.
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
    >>> embeddings = rng.standard_normal((600, 64)).astype(np.float32)
    >>> embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    >>> texts = [f"text {number}" for number in range(600)]
    >>> marker = RegionMarker(kept=0.9, seed=1).fit(texts, embeddings=embeddings)
    >>> served = marker.transform(embeddings)
    >>> bool((served * embeddings).sum(axis=1).min() > 0.9)
    True
    >>> published = RegionMarker(strength=0.2, pool=64, reservoir=256, seed=1).fit(texts, embeddings=embeddings)
    >>> marked = np.isin(published.regions(embeddings), published.key_.regions)
    >>> cosine = (published.transform(embeddings) * embeddings).sum(axis=1)
    >>> bool(cosine[marked].min() > 0.95), bool(cosine[~marked].min() > 0.999999)
    (True, True)
    """

    key_: Key
    serving_: ServingKey

    def __init__(
        self,
        dimension: int | None = None,
        ratio: float | None = None,
        strength: float | None = None,
        reducer: str = "pca",
        subspace: int | None = None,
        seed: int | None = None,
        *,
        kept: float | None = None,
        tenants: bool = True,
        tenant_ratio: float | None = None,
        pool: int | None = None,
        reservoir: int | None = None,
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
        self.kept = kept
        self.tenants = tenants
        self.tenant_ratio = tenant_ratio
        self.pool = pool
        self.reservoir = reservoir
        self.level = level
        self.grid = grid
        self.normalise = normalise

    @classmethod
    def published(cls, **others: Any) -> RegionMarker:
        """Return a marker with the paper's own setting: d 4, alpha 0.2, lambda 0.2, all in the top four components.

        Examples
        --------
        >>> RegionMarker.published(seed=1).subspace
        4
        """
        return cls(**{**PUBLISHED, "subspace": PUBLISHED["dimension"], "tenant_ratio": 0.0, **others})

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
        if encoder is None:
            return self.fit_blocks([(texts, embeddings)])
        loaded = _load_encoder(encoder)
        return self.fit_blocks(embedded_blocks(loaded, texts, _BLOCK), encoder_name=loaded.name)

    def fit_blocks(
        self,
        blocks: Iterable[tuple[Sequence[str], object]],
        *,
        encoder_name: str = "precomputed",
        progress: Progress = lambda _done, _total: None,
    ) -> Self:
        """Make a key in one pass over (texts, embeddings) blocks; memory does not grow with their number.

        ``progress`` is called while the strength is looked for, after the last block.
        """
        parameters = self.get_params()
        check_parameters(parameters)
        pool, reservoir = sample_sizes(parameters)
        master = new_master(self.seed)
        summary = new_summary(master, pool, reservoir)
        for texts, embeddings in blocks:
            summary.update(texts, self._rows(embeddings, first_row=summary.rows))
        key = make_key(
            summary, master, key_settings(parameters), mark_settings(parameters, summary.width), pool=pool,
            reservoir=reservoir, encoder=encoder_name, test=self.seed is not None,
            number_format=None if self.grid is None else NumberFormat(self.grid), progress=progress,
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
            Whose vectors these are: its own mark is added. "" is the account of nobody in particular; of the published
            mark it has none.
        out : array of shape (n, D), float32, optional
            Where to write; may be ``embeddings`` itself.
        """
        plan = self._plan(tenant)
        matrix = as_matrix(embeddings, width=plan.width)
        if out is None:
            out = np.empty(matrix.shape, dtype=np.float32)
        if isinstance(plan, GradedPlan) or plan.projection is not None:
            engine.mark(plan, matrix, out, normalise=self.normalise)
        else:
            target_of_row = plan.target_of_region[self.regions(matrix)]
            engine.blend(plan, matrix, target_of_row, out, normalise=self.normalise)
        return out

    def to_torch(self, tenant: str = "") -> MarkModule:
        """Return ``transform`` for a tenant as a torch module, which marks on the device where the embeddings are.

        It holds the key's arrays but never shows them: they are in no state dict, and it cannot be pickled or saved.
        """
        from regionmarker.marking.torch_module import MarkModule  # torch is optional, and slow to import

        return MarkModule(self._plan(tenant), normalise=self.normalise)

    def regions(self, embeddings: object) -> Integers:
        """Return each row's region number, (n,): bit i says on which side of hyperplane i it lies."""
        plan = self._plan("")
        matrix = as_matrix(embeddings, width=plan.width)
        if isinstance(plan, MarkPlan) and plan.projection is not None:
            return engine.regions(plan, matrix, normalise=self.normalise)
        return region_numbers(self._signed_distances(matrix))

    def margins(self, embeddings: object) -> Doubles:
        """Return each row's distance to its nearest hyperplane, (n,): in the reduced space, scaled if graded."""
        width = self._plan("").width
        return np.asarray(np.abs(self._signed_distances(as_matrix(embeddings, width=width))).min(axis=1))

    def _signed_distances(self, matrix: Any) -> Doubles:
        rows = normalised(matrix) if self.normalise else matrix
        return (self.key_.mark if self._has_key() else self.serving_.mark).signed_distances(rows)

    def _plan(self, tenant: str) -> MarkPlan | GradedPlan:
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
        return cls(**key_parameters(key))._adopt(key.serving(), key)

    @classmethod
    def from_serving(cls, serving: ServingKey) -> RegionMarker:
        """Return a marker that can mark for the tenants of a serving key, and nothing else."""
        return cls(**serving_parameters(serving))._adopt(serving)

    def _adopt(self, serving: ServingKey, key: Key | None = None) -> Self:
        """Hold a serving key always, and the key that it was made from where there is one."""
        self.serving_ = serving
        if key is not None:
            self.key_ = key
        self.n_features_in_ = serving.width
        self._plans: dict[str, MarkPlan | GradedPlan] = {}
        return self

    def _has_key(self) -> bool:
        return "key_" in self.__dict__

    def _rows(self, embeddings: object, first_row: int) -> Floats:
        rows = as_floats(embeddings)
        return normalised(rows, first_row=first_row) if self.normalise else rows


def _load_encoder(encoder: object) -> Encoder:
    from regionmarker.encoders import load_encoder  # only fitting needs it, and it brings sockets

    return load_encoder(encoder)
