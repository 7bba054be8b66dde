"""Trials: the corpus divided, one key against one simulated stealer, one verdict; finished ones are kept in a log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np

from regionmarker.crypto.secret import Secret
from regionmarker.encoders import check_texts, load_encoder
from regionmarker.errors import InputError, OutsideError
from regionmarker.keys.key import Key
from regionmarker.marking.marker import RegionMarker
from regionmarker.marks.regions import RegionMark
from regionmarker.measures import neighbour_overlap, row_cosines
from regionmarker.planning.goals import Candidate
from regionmarker.vectors import Floats, Integers, as_floats, check_rows
from regionmarker.verification.examination import ExactTest, laid_out
from regionmarker.verification.questions import DEFAULT_BUDGET, least_budget, plan_questions
from regionmarker.verification.simulated_stealer import (
    SimulatedCopy,
    SimulatedStealer,
    Student,
    StudentView,
    student_views,
)

_NEIGHBOURS_OF = 2000  # texts among which neighbours are looked for
_HIDDEN = 1024
_PENALTY = 0.1
_MEASURED = 1000  # texts that the fidelity is measured on
LEAST = 1000  # fewer distinct texts than these make no key that could be judged

_MOST_TEXTS = 20_000
_MOST_QUERIES = 5_000
_POOL, _RESERVOIR = 1024, 4096


class PlanningCorpus:
    """Texts with their clean embeddings, and what anyone can know of them.

    Parameters
    ----------
    texts, embeddings
        The provider's own: one row (n, D) a text, of unit length. Repeated texts are used once, and no more than 20,000
        texts, drawn by the seed.
    query_share
        The share of them that the stealer asks, no more than 5,000. Keys are made from the rest.
    seed
        Decides who gets what.

    Examples
    --------
    >>> rows = np.eye(64, dtype=np.float32).repeat(20, axis=0)
    >>> corpus = PlanningCorpus([f"text {number}" for number in range(1280)], rows, query_share=0.5)
    >>> len(corpus.queries), len(corpus.own)
    (640, 640)
    """

    def __init__(self, texts: Sequence[str], embeddings: object, *, query_share: float = 0.5, seed: int = 0) -> None:
        given, rows = check_texts(texts), as_floats(embeddings)
        if len(given) != len(rows):
            raise InputError(f"there are {len(given)} texts but {len(rows)} embeddings: give one for each")
        check_rows(rows)
        place = {text: row for row, text in reversed(list(enumerate(given)))}
        chosen = np.random.default_rng(seed).permutation(np.array(sorted(place.values()), dtype=np.int64))[:_MOST_TEXTS]
        if len(chosen) < LEAST:
            raise InputError(f"planning needs at least {LEAST} distinct texts, but the corpus has {len(chosen)}")
        self.texts = [given[row] for row in chosen]
        self.embeddings: Floats = rows[chosen]
        self.seed = seed
        count = min(round(len(chosen) * query_share), _MOST_QUERIES)
        self.queries: Integers = np.arange(count)
        self.own: Integers = np.arange(count, len(chosen))
        self.key_seed = int.from_bytes(sha256(f"plan {seed}".encode()).digest()[:6], "big")

    @property
    def width(self) -> int:
        return int(self.embeddings.shape[1])

    @cached_property
    def public(self) -> Floats:
        """WordLlama's vectors of all texts: features that anyone can compute, (n, 256)."""
        return load_encoder("wordllama").encode(self.texts)

    @cached_property
    def digest(self) -> str:
        """Of everything that decides a trial, but for the trial itself."""
        found = sha256("\0".join(self.texts).encode())
        found.update(self.embeddings.tobytes())
        found.update(f"{len(self.queries)} {self.seed}".encode())
        return found.hexdigest()

    def marker(self, candidate: Candidate, number: int) -> RegionMarker:
        """Make TEST key ``number`` of the candidate's kind from the provider's part."""
        pool = min(_POOL, len(self.own) // 3)
        marker = RegionMarker(
            **asdict(candidate),
            seed=self.key_seed + number,
            tenant_ratio=0.0,
            pool=pool,
            reservoir=min(_RESERVOIR, len(self.own) - pool),
        )
        return marker.fit([self.texts[row] for row in self.own], embeddings=self.embeddings[self.own])


class PlannedStealer(SimulatedStealer):
    """A simulated stealer of the corpus's queries, and how good its copy of unmarked vectors is.

    Parameters
    ----------
    corpus
        Whose texts.
    view
        What it sees.
    queries
        How many of the corpus's queries it asks; None for all.
    """

    def __init__(self, corpus: PlanningCorpus, view: StudentView, queries: int | None = None) -> None:
        rng = np.random.default_rng([corpus.seed, view.public, view.clean])
        clean, asked = corpus.embeddings, corpus.queries[:queries]
        features = view.features(corpus.public, clean, rng)
        super().__init__(features, asked, Student.drawn(features[asked], corpus.width, _HIDDEN, rng), _PENALTY)
        self.view = view
        held = corpus.own[:_MEASURED]
        self.fidelity = float(row_cosines(self.steal(clean[asked])(held), clean[held]).mean())
        """Of a copy of the unmarked vectors, on texts that were not asked."""


def find_stealer(corpus: PlanningCorpus, fidelity: float) -> tuple[PlannedStealer, list[tuple[StudentView, float]]]:
    """Return the first stealer on the ladder that reaches a fidelity, or else the best, and all that were tried."""
    tried = []
    for view in student_views(corpus.width):
        stealer = PlannedStealer(corpus, view)
        tried.append((view, stealer.fidelity))
        if stealer.fidelity >= fidelity:
            break
    return stealer, tried


@dataclass(frozen=True)
class Trial:
    """What came of one trial.

    Attributes
    ----------
    utility_loss
        Share of the ten nearest neighbours that marking changed.
    cosine
        Mean cos(e, e_p).
    signal
        U / sqrt(R): about a standard normal number where nothing was stolen.
    p_value
        Of the decoy test.
    """

    utility_loss: float
    cosine: float
    signal: float
    p_value: float


class TrialLog:
    """Trials by name, in a file of JSON lines where one is given.

    Examples
    --------
    >>> log = TrialLog(None, "digest")
    >>> log.put("one", Trial(0.1, 0.99, 4.0, 1e-5))
    >>> log.get("one").signal
    4.0
    """

    def __init__(self, path: Path | None, digest: str) -> None:
        self._path, self._digest = path, digest
        self._trials: dict[str, Trial] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
            whole = lines[:-1]  # a line without an end was being written
            for line in whole:
                row = json.loads(line)
                if row["plan"] == self._digest:
                    self._trials[row["name"]] = Trial(**row["trial"])
            if lines[-1]:
                path.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{path} is damaged: delete it, and the plan starts anew") from None

    def get(self, name: str) -> Trial | None:
        return self._trials.get(name)

    def put(self, name: str, trial: Trial) -> None:
        self._trials[name] = trial
        if self._path is None:
            return
        line = json.dumps({"plan": self._digest, "name": name, "trial": asdict(trial)})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            raise OutsideError(f"cannot write {self._path}: {error.strerror}") from None


class TrialRunner:
    """Where trials are made: a key is kept until another is asked for."""

    def __init__(self, corpus: PlanningCorpus, log: TrialLog, level: float) -> None:
        self.corpus, self.log, self.level = corpus, log, level
        self._made: tuple[tuple[int, float, int, int], RegionMarker] | None = None
        self._place = {text: row for row, text in enumerate(corpus.texts)}

    def trial(self, candidate: Candidate, number: int, draw: int, stealer: PlannedStealer) -> Trial:
        """Mark by key ``number`` with target draw ``draw``, let the stealer steal, and judge it."""
        name = f"{candidate}, key {number}, draw {draw}, {len(stealer.asked)} queries, {stealer.view}"
        found = self.log.get(name)
        if found is None:
            found = self._try(candidate, number, draw, stealer)
            self.log.put(name, found)
        return found

    def _try(self, candidate: Candidate, number: int, draw: int, stealer: PlannedStealer) -> Trial:
        key = self._key(candidate, number, draw)
        marker = RegionMarker.from_key(key)
        clean = self.corpus.embeddings
        copy = stealer.steal(marker.transform(clean[stealer.asked]))
        test = self._test(key, copy)
        if test.floor > self.level:
            drawn = f"{len(key.regions)} of {len(key.pool)} targets"
            raise InputError(
                f"{drawn} cannot give p below {test.floor:.2g}: more regions are needed, or a larger corpus"
            )
        targets = key.provider_targets()
        sample = clean[self.corpus.own[:_NEIGHBOURS_OF]]
        served = marker.transform(sample)
        return Trial(
            utility_loss=1 - float(neighbour_overlap(sample, served).mean()),
            cosine=float(row_cosines(sample, served).mean()),
            signal=float(test.totals(np.array([targets]))[0] / np.sqrt(len(targets))),
            p_value=test.p_value(targets),
        )

    def convicted_innocents(self, candidate: Candidate, number: int, stealer: PlannedStealer, draws: int) -> float:
        """Return the share of target draws that convict a copy of the *unmarked* vectors."""
        key = self._key(candidate, number, 0)
        test = self._test(key, stealer.steal(self.corpus.embeddings[stealer.asked]))
        rng, count = np.random.default_rng([self.corpus.seed, number]), len(key.regions)
        tuples = rng.random((draws, len(key.pool))).argpartition(count, axis=1)[:, :count]
        return float((test.p_values(tuples) <= self.level).mean())

    def _key(self, candidate: Candidate, number: int, draw: int) -> Key:
        """Return key ``number`` with other targets for each ``draw``, and the candidate's strength."""
        kind = (candidate.dimension, candidate.ratio, candidate.subspace, number)
        if self._made is None or self._made[0] != kind:
            self._made = kind, self.corpus.marker(candidate, number)
        key = self._made[1].key_
        master = Secret(np.random.default_rng([self.corpus.key_seed, number, draw]).bytes(32))
        mark = key.mark
        if isinstance(mark, RegionMark):
            mark = replace(mark, settings=replace(mark.settings, strength=candidate.strength))
        return replace(key, master=master, mark=mark)

    def _test(self, key: Key, copy: SimulatedCopy) -> ExactTest:
        questions = plan_questions(key, max(DEFAULT_BUDGET, least_budget(key)), seed=0)
        examination = laid_out(key, questions, lambda texts: copy(self._places(texts)))
        return examination.test(examination.scores())

    def _places(self, texts: Sequence[str]) -> Integers:
        return np.array([self._place[text] for text in texts], dtype=np.int64)
