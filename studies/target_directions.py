"""How well does an outsider find a direction that the graded mark pulls along.

    python -m studies.target_directions --data-dir DIR --features MODEL [--keys 6] [--corpora sst2 mind]

An outsider buys vectors, has a public encoder (--features: a model, or a folder with CORPUS.npz as `studies.power`
reads it) and the source of this package, but no key. Each finder proposes 64 directions. `nearest` is the largest
cosine, in absolute value, of any proposal with any target direction of the key. `span` is the share of the targets'
energy that lies in the span of all proposals: what projecting them out would take away. The controls are the same
finder on the same texts before they were marked, against the same targets: what meaning alone gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker, load_encoder
from regionmarker.benchmark.attacks.directions import PublicMap, principal_axes
from studies._study import CORPORA, Command, Log, Row, encoder_spec, markdown, numbers, provider_rows

PAGE = "docs/results/detectors.md"
PROPOSED = 64
_PRODUCTS_OF = 16  # components whose products carry the pairs; the source says so
Array = np.ndarray


def of_vectors(served: Array, _features: Array) -> Array:
    """Propose the leading principal components of what was bought."""
    return principal_axes(served - served.mean(axis=0), PROPOSED)[0]


def of_band(served: Array, _features: Array) -> Array:
    """Propose principal components from the band in which the source says that targets lie."""
    axes = principal_axes(served - served.mean(axis=0), 64 + PROPOSED)[0]
    return axes[64:]


def of_residuals(served: Array, features: Array) -> Array:
    """Propose the leading components of what a public encoder does not predict."""
    return principal_axes(PublicMap.fit(features, served).residuals, PROPOSED)[0]


def of_products(served: Array, features: Array) -> Array:
    """Propose where products of the leading components push the vectors: what the pairs of hyperplanes do."""
    centred = served - served.mean(axis=0)
    axes, deviations = principal_axes(centred, _PRODUCTS_OF)
    seen = centred @ axes.T / deviations  # (n, 16)
    pairs = list(combinations_with_replacement(range(_PRODUCTS_OF), 2))
    products = np.stack([np.clip(seen[:, i] * seen[:, j], -2, 2) for i, j in pairs], axis=1)  # (n, 136)
    residuals = PublicMap.fit(features, served).residuals
    products -= products.mean(axis=0)
    pushed = np.linalg.lstsq(products, residuals, rcond=None)[0]  # (136, D)
    return np.linalg.svd(pushed, full_matrices=False)[2][:PROPOSED]


def of_independent(served: Array, features: Array) -> Array:
    """Propose independent components (FastICA) of what a public encoder does not predict."""
    from sklearn.decomposition import FastICA

    residuals = PublicMap.fit(features, served).residuals
    found = FastICA(PROPOSED, random_state=0, max_iter=200, tol=1e-2).fit(residuals).mixing_.T
    return np.asarray(found)


FINDERS: dict[str, Callable[[Array, Array], Array]] = {
    "components of the vectors": of_vectors,
    "components of the band": of_band,
    "components of residuals": of_residuals,
    "products, then residuals": of_products,
    "independent components of residuals": of_independent,
}


def nearness(proposals: Array, targets: Array) -> tuple[float, float]:
    """Return the largest absolute cosine of a proposal and a target, and the share of the targets in the span."""
    units = proposals / np.linalg.norm(proposals, axis=1, keepdims=True)
    goals = targets / np.linalg.norm(targets, axis=1, keepdims=True)
    basis = np.linalg.svd(units, full_matrices=False)[2]
    return float(np.abs(goals @ units.T).max()), float(np.square(goals @ basis.T).sum(axis=1).mean())


def measure(log: Log, name: str, data: Path, given: Any) -> None:
    """Look for the targets of several keys of one corpus, beside the same search without a mark."""
    rows, texts, clean = provider_rows(data, name)
    folder = Path(given.features)
    if folder.is_dir() and (folder / f"{name}.npz").exists():
        with np.load(folder / f"{name}.npz") as stored:
            place = {int(row): number for number, row in enumerate(stored["rows"])}
            features = stored["F"][[place[int(row)] for row in rows]]
    else:
        features = load_encoder(encoder_spec(given.features)).encode(texts)
    for seed in range(given.keys):
        order = np.random.default_rng([seed, 7]).permutation(len(texts))
        bought, own = order[: given.queries], order[given.queries :]
        marker = RegionMarker(seed=seed, tenants=False).fit([texts[row] for row in own], embeddings=clean[own])
        key = marker.key_
        targets = key.mark.directions(key.pool.embeddings[list(key.provider_targets())])  # (J, D)
        served = marker.transform(clean[bought])
        for finder, find in FINDERS.items():

            def found(find: Callable[[Array, Array], Array] = find) -> Row:
                near, span = nearness(find(served.astype(np.float64), features[bought]), targets)  # noqa: B023
                plain, plain_span = nearness(find(clean[bought].astype(np.float64), features[bought]), targets)  # noqa: B023
                return {"nearest": near, "span": span, "nearest, unmarked": plain, "span, unmarked": plain_span}

            log.once({"corpus": name, "finder": finder, "key": seed}, found)


def main() -> None:
    smoke = {"keys": 1, "queries": 400, "corpora": ["sst2"], "features": "wordllama"}
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--features", default="all-MiniLM-L6-v2")
    parser.add_argument("--keys", type=int, default=6)
    parser.add_argument("--queries", type=int, default=4000)
    parser.add_argument("--corpora", nargs="+", default=["sst2", "mind"])
    parser.add_argument("--work", type=Path, default=Path("target-directions"))
    given = parser.read()
    work = Path(given.data_dir) / "work" if given.smoke else given.work
    log = Log(work / "rows.jsonl")
    for name in given.corpora:
        measure(log, name, given.data_dir, given)
    columns = ("nearest", "nearest, unmarked", "span", "span, unmarked")
    body = [
        [CORPORA[name], finder, str(given.keys)]
        + [f"{np.mean(numbers(log.of(corpus=name, finder=finder), column)):.2f}" for column in columns]
        for name in given.corpora
        for finder in FINDERS
    ]
    print(markdown(["corpus", "finder", "keys", *columns], body))


if __name__ == "__main__":
    main()
