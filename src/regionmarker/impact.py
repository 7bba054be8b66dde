"""What switching the mark on does to a provider's own texts, before it is switched on.

Four situations of a customer who keeps vectors in an index:

    all marked          index and queries both come from the gateway, as they will once the customer has embedded anew
    old index           the index is from before, unmarked; the queries are new and marked
    old queries         the reverse: the index is new and marked, stored queries are from before
    unmarked            how it was

Neighbours: of each text's ten nearest, how many stay. Retrieval: every long enough text is cut in two; does the first
half still find the second among all the others' (nDCG@10)? That needs no labels, and an encoder for the halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regionmarker.errors import InputError
from regionmarker.marking.marker import RegionMarker
from regionmarker.measures import ndcg, nearest, neighbour_overlap, row_cosines
from regionmarker.vectors import Encoder, Floats

NEIGHBOURS = 10
LEAST_TEXTS = 100
_LEAST_WORDS = 8  # of a text that is cut in two
_MOST_PAIRS = 2000  # of halves: ranking costs the square of it
_MOVED = 0.9999  # a cosine below it is a mark, not rounding


@dataclass(frozen=True)
class Impact:
    """What was measured; every number is a mean over texts.

    Attributes
    ----------
    moved_share
        Share of the texts whose vector carries a mark.
    cosine, cosine_of_moved
        cos(e, e_p), over all texts and over those that moved.
    neighbours_kept, neighbours_kept_old_index, neighbours_kept_old_queries
        Share of the ten nearest neighbours that stay, in the three marked situations.
    retrieval
        nDCG@10 in the four situations; ``None`` without an encoder or with too few long texts.
    """

    texts: int
    moved_share: float
    cosine: float
    cosine_of_moved: float | None
    neighbours_kept: float
    neighbours_kept_old_index: float
    neighbours_kept_old_queries: float
    retrieval: dict[str, float] | None


def measure_impact(
    marker: RegionMarker, texts: Sequence[str], clean: Floats, *, tenant: str = "", encoder: Encoder | None = None
) -> Impact:
    """Mark the embeddings (n, D) of ``texts`` and compare.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((400, 32)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> texts = [f"text {number}" for number in range(400)]
    >>> marker = RegionMarker(seed=1, pool=64, reservoir=256).fit(texts, embeddings=rows)
    >>> impact = measure_impact(marker, texts, rows)
    >>> impact.texts, impact.neighbours_kept > 0.5, impact.retrieval is None
    (400, True, True)
    """
    if len(texts) < LEAST_TEXTS:
        raise InputError(f"an impact report needs at least {LEAST_TEXTS} texts, but there are {len(texts)}")
    served = marker.transform(clean, tenant)
    cosines = row_cosines(clean, served)
    moved = cosines < _MOVED
    return Impact(
        texts=len(texts),
        moved_share=float(moved.mean()),
        cosine=float(cosines.mean()),
        cosine_of_moved=float(cosines[moved].mean()) if moved.any() else None,
        neighbours_kept=float(neighbour_overlap(clean, served, NEIGHBOURS).mean()),
        neighbours_kept_old_index=_kept_mixed(clean, served, clean),
        neighbours_kept_old_queries=_kept_mixed(clean, clean, served),
        retrieval=None if encoder is None else _retrieval(marker, texts, tenant, encoder),
    )


def _kept_mixed(clean: Floats, queries: Floats, index: Floats) -> float:
    old, new = nearest(clean, NEIGHBOURS), nearest(queries, NEIGHBOURS, among=index)
    return float((old[:, :, None] == new[:, None, :]).any(axis=2).mean())


def texts_to_embed(texts: Sequence[str]) -> list[str]:
    """Return all that an encoder is asked for an impact report: the texts, and their halves for retrieval.

    Examples
    --------
    >>> texts_to_embed(["too short", "one two three four five six seven eight"])[2:]
    ['one two three four', 'five six seven eight']
    """
    return [*texts, *(half for pair in _pairs(texts) for half in pair)]


def _pairs(texts: Sequence[str]) -> list[tuple[str, str]]:
    halves = [cut(text) for text in dict.fromkeys(texts)]
    return [pair for pair in halves if pair is not None][:_MOST_PAIRS]


def _retrieval(marker: RegionMarker, texts: Sequence[str], tenant: str, encoder: Encoder) -> dict[str, float] | None:
    pairs = _pairs(texts)
    if len(pairs) < LEAST_TEXTS:
        return None
    queries = encoder.encode([first for first, _ in pairs])  # (n, D)
    documents = encoder.encode([second for _, second in pairs])
    relevant = {number: {number} for number in range(len(pairs))}
    marked_queries, marked_documents = marker.transform(queries, tenant), marker.transform(documents, tenant)
    return {
        "texts": len(pairs),
        "unmarked": ndcg(queries, documents, relevant),
        "old_index": ndcg(marked_queries, documents, relevant),
        "old_queries": ndcg(queries, marked_documents, relevant),
        "all_marked": ndcg(marked_queries, marked_documents, relevant),
    }


def cut(text: str) -> tuple[str, str] | None:
    """Cut a text in two halves of words; ``None`` where it is too short.

    Examples
    --------
    >>> cut("one two three four five six seven eight")
    ('one two three four', 'five six seven eight')
    >>> cut("too short") is None
    True
    """
    words = text.split()
    if len(words) < _LEAST_WORDS:
        return None
    middle = len(words) // 2
    return " ".join(words[:middle]), " ".join(words[middle:])
