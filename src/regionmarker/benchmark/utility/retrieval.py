"""Do queries still find their documents? nDCG@10, as on Cranfield."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regionmarker.benchmark.utility.columns import read_columns
from regionmarker.embeddings import as_floats
from regionmarker.errors import InputError


@dataclass(frozen=True)
class Retrieval:
    """Queries, documents, and which documents answer which query.

    Examples
    --------
    >>> task = Retrieval(("wings",), ("on wings", "on soup"), {0: frozenset({0})})
    >>> len(task.documents)
    2
    """

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevant: Mapping[int, Set[int]]  # place of a query -> places of its documents

    @classmethod
    def read(cls, folder: str | Path, name: str = "cranfield") -> Retrieval:
        """Read NAME_docs, NAME_queries and NAME_qrels .parquet.

        A document counts as relevant where its grade is positive. Copies of the collection disagree on whether 1 or 4
        is the best grade, so grades are not used beyond that. Documents without text are left out.
        """
        folder = Path(folder)
        numbers, texts = read_columns(folder / f"{name}_docs.parquet", ["id", "text"])
        kept = [(number, text) for number, text in zip(numbers, texts, strict=True) if text and not text.isspace()]
        place = {number: position for position, (number, _) in enumerate(kept)}
        asked, queries = read_columns(folder / f"{name}_queries.parquet", ["id", "text"])
        row = {number: position for position, number in enumerate(asked)}
        relevant: dict[int, set[int]] = {}
        judgements = read_columns(folder / f"{name}_qrels.parquet", ["query_id", "doc_id", "relevance"])
        for query, document, grade in zip(*judgements, strict=True):
            if grade > 0 and query in row and document in place:
                relevant.setdefault(row[query], set()).add(place[document])
        return cls(tuple(queries), tuple(text for _, text in kept), relevant)


def ndcg(queries: object, documents: object, relevant: Mapping[int, Set[int]], *, at: int = 10) -> float:
    """Return the mean nDCG of the nearest ``at`` documents by cosine, over the queries that have an answer.

    Parameters
    ----------
    queries, documents
        Their vectors, (q, D) and (n, D).
    relevant
        The places of each query's documents, every one of them worth the same.

    Examples
    --------
    >>> documents = np.eye(4, dtype=np.float32)
    >>> ndcg(documents[:2], documents, {0: {0}, 1: {1}})
    1.0
    >>> ndcg(documents[:1], documents, {0: {3}}, at=1)
    0.0
    """
    asked, found = as_floats(queries, what="queries"), as_floats(documents, what="documents")
    if asked.shape[1] != found.shape[1]:
        raise InputError(f"queries have width {asked.shape[1]}, but documents {found.shape[1]}")
    answered = sorted(place for place, documents in relevant.items() if documents)
    if not answered or at < 1:
        raise InputError("nDCG needs a query with at least one relevant document, and at least one place")
    units = found / np.linalg.norm(found, axis=1, keepdims=True)
    discounts = 1 / np.log2(np.arange(2, at + 2))  # (at,)
    scores = []
    for place in answered:
        similar = units @ asked[place]  # (n,); the query's own length changes no order
        order = np.argsort(-similar, kind="stable")[:at]
        gains = np.array([document in relevant[place] for document in order.tolist()])
        ideal = discounts[: min(at, len(relevant[place]))].sum()
        scores.append(float(discounts[: len(gains)] @ gains / ideal))
    return float(np.mean(scores))
