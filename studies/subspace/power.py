"""Cheap thieves, and a decoy statistic on what they answer: a proxy for power, good for comparing k with k.

The statistic is that of docs/why/verdict.md in its plainest form: one fixed ridge penalty, and a normal stand-in
for the exact p-value. For a single suspect trust the package's own verdict; here only the order of the k matters.
"""

from __future__ import annotations

import numpy as np

from studies.subspace.corpora import Corpus
from studies.subspace.region_key import Array, Ints, Key, mark, projections, region_numbers, unit

BUDGET, PENALTY, NOISE = 3000, 10.0, 1.0
_operators: dict[tuple[str, str], Array] = {}


def thief_features(corpus: Corpus, thief: str) -> Array:
    """`public`: the public encoders, frozen; `strong`: a noisy view of the provider, like a well tuned encoder."""
    if thief == "public":
        base = corpus.wordllama if corpus.minilm is None else np.hstack([corpus.minilm, corpus.wordllama])
    else:
        noise = np.random.default_rng(3).standard_normal(corpus.clean.shape).astype(np.float32)
        base = unit(corpus.clean + NOISE / np.sqrt(noise.shape[1]) * noise)
    base = base - base.mean(axis=0)
    rng = np.random.default_rng(4)
    weights = rng.standard_normal((base.shape[1], 3000)).astype(np.float32) / base.std() / np.sqrt(base.shape[1])
    hidden = np.sqrt(2 / 3000) * np.cos(base @ weights + rng.uniform(0, 2 * np.pi, 3000).astype(np.float32))
    return np.hstack([hidden, base]).astype(np.float32)


def thief_operator(corpus: Corpus, thief: str) -> Array:
    """Ridge: answers on pool and probes are (this matrix) @ (vectors served for the queries)."""
    if (corpus.name, thief) not in _operators:
        features = thief_features(corpus, thief)
        train, test = features[corpus.queries], features[np.concatenate([corpus.pool, corpus.probes])]
        gram = train @ train.T + np.eye(len(train), dtype=np.float32)
        _operators[corpus.name, thief] = np.linalg.solve(gram, train @ test.T).T.astype(np.float32)
    return _operators[corpus.name, thief]


def choose_probes(regions: Ints, room: int) -> Ints:
    """As many from every region as the budget and the smallest regions allow."""
    limit = next(n for n in range(room, 0, -1) if np.minimum(np.bincount(regions), n).sum() <= room)
    return np.concatenate([np.flatnonzero(regions == r)[:limit] for r in np.unique(regions)])


def decoy_scores(key: Key, clean: Array, answers: Array, pool: Array, pool_answers: Array) -> Array:
    """Score every pool text as the target of every trigger region, z (R, M).

    A ridge map clean -> suspect from N; the mean residual of the far half of B_r; its product with what the suspect
    says of a pool text, standardised over the pool.
    """
    values = projections(key.matrix, key.thresholds, clean)
    regions, margin = region_numbers(values), np.abs(values).min(axis=1)
    outside = ~np.isin(regions, key.triggers)
    centre, level = clean[outside].mean(axis=0), answers[outside].mean(axis=0)
    x = clean[outside] - centre
    gram = x.T @ x + PENALTY * np.eye(x.shape[1], dtype=np.float32)
    linear = np.linalg.solve(gram, x.T @ (answers[outside] - level))
    candidates = (pool - centre) @ linear + level + pool_answers
    z = np.zeros((len(key.triggers), len(pool)), np.float32)
    for i, region in enumerate(key.triggers):
        inside = np.flatnonzero(regions == region)
        if len(inside) == 0:
            continue
        far = inside[np.argsort(-margin[inside])[: max(1, len(inside) // 2)]]
        residual = (answers[far] - level - (clean[far] - centre) @ linear).mean(axis=0)
        scores = candidates @ residual
        z[i] = (scores - scores.mean()) / scores.std()
    return z


def power_of(corpus: Corpus, key: Key) -> dict[str, object]:
    served, which = mark(key, corpus.clean)
    probe_values = projections(key.matrix, key.thresholds, corpus.clean[corpus.probes])
    picked = choose_probes(region_numbers(probe_values), BUDGET - len(corpus.pool))
    probes, pool = corpus.clean[corpus.probes][picked], corpus.clean[corpus.pool]
    out: dict[str, object] = {"marked": float((which >= 0).mean())}
    for thief in ("public", "strong"):
        taught = served[corpus.queries]
        level = taught.mean(axis=0)
        answers = unit(level + thief_operator(corpus, thief) @ (taught - level))
        z = decoy_scores(key, probes, answers[len(pool) :][picked], pool, answers[: len(pool)])
        hits = z[np.arange(len(z)), key.target_rows]
        held = served[corpus.probes]
        out[f"{thief}_u"] = float(hits.sum() / np.sqrt(len(hits)))
        out[f"{thief}_fidelity"] = float((answers[len(pool) :] * held).sum(axis=1).mean())
        guess = region_numbers(projections(key.matrix, key.thresholds, answers[len(pool) :]))
        out[f"{thief}_same_region"] = float((guess == region_numbers(probe_values)).mean())
    return out
