"""Texts that people have judged: pairs of sentences (STS-B, MRPC), queries and their documents (Cranfield)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from regionmarker.errors import InputError
from regionmarker.parquet import read_columns


@dataclass(frozen=True)
class SentencePairs:
    """Pairs of sentences with one number per pair: how alike people find them, or whether they are paraphrases."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: tuple[float, ...]

    @classmethod
    def read(cls, path: str | Path, *, split: str | None = None, score: str = "score") -> SentencePairs:
        """Read a Parquet file with columns sentence1, sentence2 and ``score``; ``split`` keeps one split of it."""
        names = ["sentence1", "sentence2", score, *(["split"] if split else [])]
        columns = read_columns(Path(path), names)
        rows = [row for row in zip(*columns, strict=True) if split is None or row[3] == split]
        if not rows:
            raise InputError(f"{path} holds no rows of the split {split!r}")
        return cls(tuple(row[0] for row in rows), tuple(row[1] for row in rows), tuple(float(row[2]) for row in rows))


@dataclass(frozen=True)
class Retrieval:
    """Queries, documents, and which documents answer which query."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevant: Mapping[int, Set[int]]  # number of a query -> numbers of its documents

    @classmethod
    def read(cls, folder: str | Path, name: str = "cranfield") -> Retrieval:
        """Read NAME_docs, NAME_queries and NAME_qrels .parquet.

        A document counts as relevant where its grade is positive. Copies of the collection disagree on whether 1 or 4
        is the best grade, so grades are not used beyond that. Documents without text are left out.
        """
        folder = Path(folder)
        documents = read_columns(folder / f"{name}_docs.parquet", ["id", "text"])
        kept = [(number, text) for number, text in zip(*documents, strict=True) if text and not text.isspace()]
        document_number = {name: number for number, (name, _) in enumerate(kept)}
        asked, queries = read_columns(folder / f"{name}_queries.parquet", ["id", "text"])
        query_number = {name: number for number, name in enumerate(asked)}
        relevant: dict[int, set[int]] = {}
        judgements = read_columns(folder / f"{name}_qrels.parquet", ["query_id", "doc_id", "relevance"])
        for query, document, grade in zip(*judgements, strict=True):
            if grade > 0 and query in query_number and document in document_number:
                relevant.setdefault(query_number[query], set()).add(document_number[document])
        return cls(tuple(queries), tuple(text for _, text in kept), relevant)
