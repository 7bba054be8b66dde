"""What a mark, an attack or a theft costs whoever uses the vectors.

    columns.py        what is read from files
    cosines.py        cos(e, e_p), row by row
    neighbours.py     how many of the ten nearest neighbours stay
    classifier.py     the paper's MLP: accuracy and macro-F1 of a task, on served or on stolen vectors
    similarity.py     Spearman correlation with people's judgement of sentence pairs (STS-B)
    retrieval.py      nDCG@10 of queries against documents (Cranfield)

All of it is NumPy; every function takes vectors, whoever made them.
"""

from __future__ import annotations

from regionmarker.benchmark.utility.classifier import Classification, Classifier, classify
from regionmarker.benchmark.utility.cosines import row_cosines
from regionmarker.benchmark.utility.neighbours import nearest, neighbour_overlap
from regionmarker.benchmark.utility.retrieval import Retrieval, ndcg
from regionmarker.benchmark.utility.similarity import SentencePairs, similarity, spearman

__all__ = [
    "Classification",
    "Classifier",
    "Retrieval",
    "SentencePairs",
    "classify",
    "ndcg",
    "nearest",
    "neighbour_overlap",
    "row_cosines",
    "similarity",
    "spearman",
]
