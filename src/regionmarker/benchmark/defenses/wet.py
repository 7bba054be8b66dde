"""WET (Shetty et al., ACL 2025): every vector is multiplied by a secret circulant matrix.

T (D, D) has one row c of ``taps`` random entries, rotated right by one place from row to row, so that T e is a
circular correlation: F(T e) = conj(F c) F e, and dividing undoes it. No matrix is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from regionmarker.benchmark.defenses.base import SINGLE_TARGET_POOL, BaseDefense
from regionmarker.benchmark.protocols import Finding
from regionmarker.crypto.derive import subkey
from regionmarker.specs import check_range
from regionmarker.vectors import AnyArray, Doubles, Floats
from regionmarker.verification.answers import Answers
from regionmarker.verification.paper_statistics import PaperStatistics, aggregate, compare

PUBLISHED_TEXTS = 20
_SINGULAR = 1e-10
_BLOCK = 4096
_TINY = 1e-12


@dataclass(frozen=True)
class WetOptions:
    """The open choices of WET.

    Attributes
    ----------
    taps
        k, the entries of a row that are not zero.
    pool
        M, the number of matrices that might have been drawn.
    probes
        The texts that a suspect is asked.
    """

    taps: int = 25
    pool: int = SINGLE_TARGET_POOL
    probes: int = 1024

    def __post_init__(self) -> None:
        check_range("taps", self.taps, 1, 1_000_000)
        check_range("pool", self.pool, 16, 1_000_000)
        check_range("probes", self.probes, 2 * PUBLISHED_TEXTS, 1_000_000)


class Wet(BaseDefense):
    """e_p = n(T e) for every text; the suspect's answers are multiplied by the inverse and compared with e.

    Published negatives are the answers of a second model, stolen from a provider with another matrix. Here they are the
    same suspect's answers, recovered with another matrix: the roles of the two matrices are exchanged.

    Examples
    --------
    >>> import regionmarker as rm
    >>> texts, encoder = rm.python_sentences(600), rm.load_encoder("wordllama")
    >>> clean = encoder.encode(texts)
    >>> defense = Wet.from_spec("probes=512", seed=1).fit(texts, clean)
    >>> bool(np.abs((defense.transform(clean, texts) * clean).sum(axis=1)).mean() < 0.5)
    True
    """

    scheme = "wet"
    title, colour, order = "WET", "#2f6f9f", 40
    Options = WetOptions

    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self:
        corpus = self._corpus(texts, embeddings, self.options.probes)
        self._probes = corpus[: self.options.probes]
        check_range("taps", self.options.taps, 1, self._width)
        self._family = int.from_bytes(subkey(self._master, "matrices").reveal()[:16], "little")
        self._chosen = self._draw("matrix", self.options.pool)
        self._spectrum = spectrum(self._row(self._chosen[0]))
        self._other = spectrum(self._row(self.options.pool))  # beyond the pool: no candidate
        return self

    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:  # noqa: ARG002
        served = self._served(embeddings, texts)
        for start in range(0, len(served), _BLOCK):
            block = served[start : start + _BLOCK].astype(np.float64)  # NumPy would transform float32 as float32
            marked = np.fft.irfft(np.fft.rfft(block) * self._spectrum, self._width)
            served[start : start + _BLOCK] = marked / np.linalg.norm(marked, axis=1, keepdims=True)
        return served

    def _row(self, number: int) -> Doubles:
        return circulant_row(self._width, self.options.taps, (self._family, number))

    # ---- verification

    def probes(self) -> tuple[str, ...]:
        self._check_fitted()
        return self._probes.texts

    def judge(self, answers: Answers, /) -> Finding:
        """Judge answers that are there already; answers of another width cannot be judged, and give NaN."""
        self._check_fitted()
        rows = answers.lookup(self._probes.texts)
        if rows.shape[1] != self._width:
            nothing = PaperStatistics(np.nan, np.nan, np.nan, False, "stored", ())
            return Finding.of(np.full((1, self.options.pool), np.nan), self._chosen, nothing)
        rows_of_pool = np.stack([self._row(number) for number in range(self.options.pool)])  # (M, D)
        scores = filter_scores(rows, self._probes.embeddings, rows_of_pool)  # sees no choice
        return Finding.of(scores, self._chosen, self._published(rows))

    def _published(self, rows: Floats) -> PaperStatistics:
        clean, n = self._probes.embeddings, PUBLISHED_TEXTS
        ours = np.einsum("ij,ij->i", recovered(rows[:n], self._spectrum), clean[:n])
        others = np.einsum("ij,ij->i", recovered(rows[n : 2 * n], self._other), clean[n : 2 * n])
        return aggregate([compare(ours, others)], target="stored")


def circulant_row(width: int, taps: int, seed: tuple[int, int]) -> Doubles:
    """Draw the first row of T: ``taps`` places filled uniformly, made to add up to 1, and T of full rank.

    Examples
    --------
    >>> row = circulant_row(64, 5, (1, 2))
    >>> int((row > 0).sum()), round(float(row.sum()), 9)
    (5, 1.0)
    """
    rng = np.random.default_rng(seed)
    while True:
        row = np.zeros(width)
        row[rng.choice(width, size=taps, replace=False)] = rng.uniform(size=taps)
        if np.abs(np.fft.rfft(row)).min() > _SINGULAR:
            return np.asarray(row / row.sum())


def spectrum(row: Doubles) -> AnyArray:
    """Return what F e is multiplied by: conj(F c), for row i of T is c rotated right by i."""
    return np.asarray(np.conj(np.fft.rfft(row)))


def recovered(rows: AnyArray, filter_: AnyArray) -> Doubles:
    """Return n(T^-1 row), (n, D)."""
    back = np.fft.irfft(np.fft.rfft(rows.astype(np.float64)) / filter_, rows.shape[1])
    return np.asarray(back / np.linalg.norm(back, axis=1, keepdims=True))


def filter_scores(answers: Floats, clean: Floats, rows_of_pool: Doubles) -> Doubles:
    """Return z (1, M): how well each candidate matrix explains the answers (n, D) to texts with clean rows (n, D).

    Instead of dividing by every candidate, which magnifies noise where its spectrum is small, the one circular
    filter that turns clean rows into answers is estimated, and compared with the candidates' rows.
    """
    S = np.fft.rfft(answers.astype(np.float64) - answers.mean(axis=0))  # (n, F)
    e = np.fft.rfft(clean.astype(np.float64) - clean.mean(axis=0))
    power = (np.abs(e) ** 2).sum(axis=0)  # (F,)
    estimate = (np.conj(e) * S).sum(axis=0) / (power + 0.1 * power.mean() + _TINY)
    taps = np.fft.irfft(np.conj(estimate), clean.shape[1])  # (D,): the estimate of c
    raw = rows_of_pool @ (taps - taps.mean())
    raw = raw / np.linalg.norm(rows_of_pool, axis=1)
    deviation = raw.std()
    return np.asarray(((raw - raw.mean()) / max(deviation, _TINY))[None, :])
