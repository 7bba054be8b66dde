"""Trials: the corpus divided, TEST keys of it, stealers weakened to the wanted fidelity; finished ones are logged.

A trial is one *set*: hyperplanes, what a stealer sees, and its query set are all drawn afresh. One regression of the
stealer serves every strength, so all shares of neighbours kept are judged on the same copies, each with several draws
of the targets, as it is and as if it had been rotated. There are two *kinds* of stealers, by turns: networks, which
see all through noise, and linear ones, in few numbers where the fidelity is low. Their copies of one fidelity do not
carry the mark alike, so what is promised must hold for the worse kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Secret
from regionmarker.encoders import check_texts
from regionmarker.errors import InputError, OutsideError
from regionmarker.keys.key import Key
from regionmarker.marking.marker import RegionMarker
from regionmarker.marks.graded import GradedMark
from regionmarker.marks.graded_settings import RESERVOIR
from regionmarker.planning.goals import Choice, Goals
from regionmarker.vectors import Floats, Integers, as_floats, check_rows
from regionmarker.verification.clean_space import MATCHED
from regionmarker.verification.graded_copies import SEEN, GradedCopies, GradedCopy
from regionmarker.verification.power import HIDDEN, QUERY_SHARE
from regionmarker.verification.questions import plan_questions
from regionmarker.verification.simulated_stealer import BlurredView

CLOSE = 0.02  # a stealer that misses the wanted fidelity by more than this is another stealer
LEAST = 1000  # distinct texts
SETS = 12  # more than a verdict has: a plan has time, and is for keys that are not drawn yet
NETWORK, LINEAR = KINDS = ("network", "linear")
DRAWS = 8

_MOST_TEXTS, _MOST_QUERIES, _LEAST_QUERIES = 20_000, 4_000, 100
_RESCALED = 1000  # texts on which the carriers of another draw of hyperplanes are scaled
_BLURS = (0.02, 30.0)
_HALVINGS, _NEAR = 12, 0.005
_WIDTHS = (8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128)  # numbers that a linear stealer may have
_SURELY = 0.97  # of the axes: a copy with fewer may be judged as if it had been rotated
_PUBLIC_BLUR = 1.5  # what a public encoder sees of a provider's vectors: all its numbers make a fidelity of about 0.65


class PlanningCorpus:
    """Texts with their clean embeddings, divided: some are bought by the stealer, keys are made from the rest.

    Parameters
    ----------
    texts, embeddings
        The provider's own: one row (n, D) a text, of unit length; or a function that embeds texts, which is asked for
        no more than are used. Repeated texts are used once, and no more than 20,000 texts, drawn by the seed.
    queries
        How many of them the stealer buys; half of them, at most 4,000, when not given.
    seed
        Decides who gets what.

    Examples
    --------
    >>> rows = np.eye(64, dtype=np.float32).repeat(20, axis=0)
    >>> corpus = PlanningCorpus([f"text {number}" for number in range(1280)], rows)
    >>> len(corpus.queries), len(corpus.own)
    (640, 640)
    """

    def __init__(self, texts: Sequence[str], embeddings: object, *, queries: int | None = None, seed: int = 0) -> None:
        given = check_texts(texts)
        if not callable(embeddings):
            rows = as_floats(embeddings)
            if len(given) != len(rows):
                raise InputError(f"there are {len(given)} texts but {len(rows)} embeddings: give one for each")
        chosen, count = choose(given, queries, seed)
        self.texts = [given[row] for row in chosen]
        self.embeddings: Floats = as_floats(embeddings(self.texts)) if callable(embeddings) else rows[chosen]
        check_rows(self.embeddings)
        self.seed = seed
        self.queries: Integers = np.arange(count)
        self.own: Integers = np.arange(count, len(chosen))
        self.key_seed = int.from_bytes(sha256(f"plan {seed}".encode()).digest()[:6], "big")

    @property
    def width(self) -> int:
        return int(self.embeddings.shape[1])

    @cached_property
    def digest(self) -> str:
        """Of everything that decides a trial, but for the goals."""
        found = sha256("\0".join(self.texts).encode())
        found.update(self.embeddings.tobytes())
        found.update(f"graded {len(self.queries)} {self.seed}".encode())
        return found.hexdigest()

    def key(self, choice: Choice, budget: int) -> Key:
        """Make a TEST key from the provider's part."""
        marker = RegionMarker(
            seed=self.key_seed, kept=choice.kept, tenants=choice.tenants, reservoir=max(RESERVOIR, budget)
        )
        return marker.fit([self.texts[row] for row in self.own], embeddings=self.embeddings[self.own]).key_


def choose(texts: Sequence[str], queries: int | None = None, seed: int = 0) -> tuple[Integers, int]:
    """Return the rows of the distinct texts that a plan uses, in its order, and how many of them the stealer buys."""
    place = {text: row for row, text in reversed(list(enumerate(texts)))}
    chosen = np.random.default_rng(seed).permutation(np.array(sorted(place.values()), dtype=np.int64))[:_MOST_TEXTS]
    if len(chosen) < LEAST:
        raise InputError(f"planning needs at least {LEAST} distinct texts, but the corpus has {len(chosen)}")
    most = len(chosen) * 4 // 5
    count = min(len(chosen) // 2, _MOST_QUERIES) if queries is None else queries
    if not _LEAST_QUERIES <= count <= most:
        raise InputError(f"queries is {count}, but must lie between {_LEAST_QUERIES} and {most} with this corpus")
    return chosen, count


@dataclass(frozen=True)
class Trial:
    """What came of one set: a stealer, and by how much U exceeded what the level asks for.

    Attributes
    ----------
    kind
        Of the stealer: "network" or "linear".
    fidelity, plain_fidelity
        Of the stealer's copy to the clean vectors, the means taken out, and as they are.
    best
        The fidelity of the same stealer without any noise.
    asked
        Texts that the copy was asked.
    unrotated, rotated
        The excesses of each draw of targets, by the share of neighbours kept: of the copy as it is, its axes taken for
        the clean ones where they match, and after any rotation.
    """

    kind: str
    fidelity: float
    plain_fidelity: float
    best: float
    asked: int
    unrotated: dict[str, list[float]]
    rotated: dict[str, list[float]]


class TrialLog:
    """What was found, by name, in a file of JSON lines where one is given.

    Examples
    --------
    >>> log = TrialLog(None, "digest")
    >>> log.put("one", {"strength": 0.07})
    >>> log.get("one"), log.get("two")
    ({'strength': 0.07}, None)
    """

    def __init__(self, path: Path | None, digest: str) -> None:
        self._path, self._digest = path, digest
        self._found: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
            whole = lines[:-1]  # a line without an end was being written
            for line in whole:
                row = json.loads(line)
                if row["plan"] == self._digest:
                    self._found[row["name"]] = dict(row["found"])
            if lines[-1]:
                path.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{path} is damaged: delete it, and the plan starts anew") from None

    def get(self, name: str) -> dict[str, Any] | None:
        return self._found.get(name)

    def put(self, name: str, found: dict[str, Any]) -> None:
        self._found[name] = found
        if self._path is None:
            return
        line = json.dumps({"plan": self._digest, "name": name, "found": found})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            raise OutsideError(f"cannot write {self._path}: {error.strerror}") from None


class TrialRunner:
    """Where trials are made, for keys with marks for tenants or without; a key is kept until another is asked for."""

    def __init__(self, corpus: PlanningCorpus, log: TrialLog, goals: Goals) -> None:
        self.corpus, self.log, self.goals = corpus, log, goals
        self._made: tuple[bool, Key] | None = None

    def strength(self, choice: Choice) -> float:
        """Return the strength that keeps the chosen share of neighbours."""
        name = f"strength, {choice}, budget {self.goals.budget}"
        found = self.log.get(name)
        if found is None:
            mark, rows = self._mark(choice), np.vstack([part.embeddings for part in self._samples(choice)])
            strength = mark.strength
            if mark.settings.kept != choice.kept:
                strength = mark.at_strength_for(choice.kept, rows, self.corpus.key_seed).strength
            found = {"strength": strength}
            self.log.put(name, found)
        return float(found["strength"])

    def trial(self, choices: Sequence[Choice], number: int) -> Trial:
        """Let stealer ``number`` steal, and judge its copy for each of some choices, which agree on tenants."""
        strengths = {f"{choice.kept:g}": self.strength(choice) for choice in choices}
        name = f"set {number}, {', '.join(map(str, choices))}, {self.goals}"
        found = self.log.get(name)
        if found is None:
            found = asdict(self._try(choices[0], strengths, number))
            self.log.put(name, found)
        return Trial(**found)

    def _try(self, choice: Choice, strengths: dict[str, float], number: int) -> Trial:
        corpus, goals = self.corpus, self.goals
        key, rng = self._key(choice), np.random.default_rng([corpus.seed, number])
        asked = plan_questions(key, goals.budget, seed=0).probes.embeddings
        mark = self._mark(choice)
        if number:
            sample = [TextSet((), part.embeddings[:_RESCALED]) for part in self._samples(choice)]
            mark = mark.redrawn(Secret(np.random.default_rng([corpus.key_seed, number]).bytes(32)), sample[-1:])
        copies = GradedCopies(mark, asked, corpus.embeddings[corpus.queries], key.pool.embeddings)
        kind = KINDS[number % len(KINDS)]
        hidden = HIDDEN[number // len(KINDS) % len(HIDDEN)] if kind == NETWORK else 0
        copy, best = weakened(copies, goals.fidelity, hidden, rng)
        judged: dict[bool, dict[str, list[float]]] = {}
        share = copies.matched_share(copy)
        for matched in sorted({share >= MATCHED, False}):
            judged[matched] = {}
            for kept, strength in strengths.items():
                excesses = copies.excesses(copy, goals.level, DRAWS, rng, matched=matched, strength=strength)
                judged[matched][kept] = [round(float(excess), 3) for excess in excesses]
        unrotated = judged.get(True, judged[False])
        if share < _SURELY:  # real copies in as few directions are often not recognised: count what is worse
            unrotated = {kept: min(judged[False][kept], found, key=np.mean) for kept, found in unrotated.items()}
        return Trial(kind, copy.fidelity, copy.plain_fidelity, best, len(asked), unrotated, judged[False])

    def _key(self, choice: Choice) -> Key:
        if self._made is None or self._made[0] != choice.tenants:
            self._made = choice.tenants, self.corpus.key(choice, self.goals.budget)
        return self._made[1]

    def _mark(self, choice: Choice) -> GradedMark:
        mark = self._key(choice).mark
        if not isinstance(mark, GradedMark):
            raise InputError("only keys of the graded mark are planned")
        return mark

    def _samples(self, choice: Choice) -> tuple[TextSet, TextSet]:
        key = self._key(choice)
        return key.pool, key.reservoir


def weakened(copies: GradedCopies, fidelity: float, hidden: int, rng: np.random.Generator) -> tuple[GradedCopy, float]:
    """Return a copy of a fidelity, or the best where none is as good, and the fidelity of the best.

    The stealer's view is blurred until the fidelity is met. Where the usual view is too poor even without noise, it
    sees all components of the mark.

    Parameters
    ----------
    hidden
        Hidden units. Without any the stealer is linear; where the fidelity is below what a public encoder allows, its
        view is first made as narrow as it may be. A copy that is linear in few numbers has few directions, and less
        of a mark than others as good.
    """
    chosen = rng.permutation(copies.bought)[: max(round(QUERY_SHARE * copies.bought), 1)]
    for seen in (SEEN, len(copies.components)):
        view = copies.view(hidden, rng, seen)
        best = copies.copy(view.features(0.0), chosen)
        if best.fidelity >= fidelity - _NEAR:
            break
    see = view.features if hidden else _narrowed(copies, view, fidelity, chosen, rng)
    found, (low, high) = copies.copy(see(0.0), chosen), _BLURS
    for _ in range(_HALVINGS):
        if found.fidelity <= fidelity + _NEAR:
            break
        blur = float(np.sqrt(low * high))
        tried = copies.copy(see(blur), chosen)
        if tried.fidelity < fidelity - _NEAR:
            high = blur
        else:
            low, found = blur, tried
    return found, best.fidelity


def _narrowed(
    copies: GradedCopies, view: BlurredView, fidelity: float, chosen: Integers, rng: np.random.Generator
) -> Callable[[float], Floats]:
    """Return the view through the fewest random combinations of its features that allow the fidelity."""
    usual = view.features(_PUBLIC_BLUR)
    mixing = rng.standard_normal((usual.shape[1], max(_WIDTHS)), dtype=np.float32)
    for width in _WIDTHS:
        if copies.copy(usual @ mixing[:, :width], chosen).fidelity >= fidelity:
            return lambda blur: np.asarray(view.features(blur) @ mixing[:, :width])
    return view.features
