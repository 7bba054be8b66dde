"""One key, one thief, one verdict; every finished trial is kept, so that a plan that was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError, OutsideError
from regionmarker.keys.key import Key
from regionmarker.marking.marker import RegionMarker
from regionmarker.measures import neighbour_overlap, row_cosines
from regionmarker.planning.goals import Candidate
from regionmarker.planning.material import Material
from regionmarker.planning.shadows import Copy, Shadow
from regionmarker.vectors import Integers
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.examination import Examination
from regionmarker.verification.questions import DEFAULT_BUDGET, plan_questions

_NEIGHBOURS_OF = 2000  # texts among which neighbours are looked for


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


class Store:
    """Trials by name, in a file of JSON lines where one is given.

    Examples
    --------
    >>> store = Store(None, "digest")
    >>> store.put("one", Trial(0.1, 0.99, 4.0, 1e-5))
    >>> store.get("one").signal
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
        """Return a finished trial."""
        return self._trials.get(name)

    def put(self, name: str, trial: Trial) -> None:
        """Keep a finished trial."""
        self._trials[name] = trial
        if self._path is None:
            return
        line = json.dumps({"plan": self._digest, "name": name, "trial": asdict(trial)})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            raise OutsideError(f"cannot write {self._path}: {error.strerror}") from None


class Bench:
    """Where trials are made: a key is kept until another is asked for."""

    def __init__(self, material: Material, store: Store, level: float) -> None:
        self.material, self.store, self.level = material, store, level
        self._made: tuple[tuple[int, float, int, int], RegionMarker] | None = None
        self._place = {text: row for row, text in enumerate(material.texts)}

    def trial(self, candidate: Candidate, number: int, draw: int, shadow: Shadow) -> Trial:
        """Mark by key ``number`` with target draw ``draw``, let the shadow steal, and judge it."""
        name = f"{candidate}, key {number}, draw {draw}, {len(shadow.queries)} queries, {shadow.quality}"
        found = self.store.get(name)
        if found is None:
            found = self._try(candidate, number, draw, shadow)
            self.store.put(name, found)
        return found

    def _try(self, candidate: Candidate, number: int, draw: int, shadow: Shadow) -> Trial:
        key = self._key(candidate, number, draw)
        marker = RegionMarker.from_key(key)
        clean = self.material.embeddings
        copy = shadow.steal(marker.transform(clean[shadow.queries]))
        test = self._test(key, copy)
        if test.floor > self.level:
            drawn = f"{len(key.mark.regions)} of {len(key.pool)} targets"
            raise InputError(
                f"{drawn} cannot give p below {test.floor:.2g}: more regions are needed, or a larger corpus"
            )
        targets = key.provider_targets()
        sample = clean[self.material.own[:_NEIGHBOURS_OF]]
        served = marker.transform(sample)
        return Trial(
            utility_loss=1 - float(neighbour_overlap(sample, served).mean()),
            cosine=float(row_cosines(sample, served).mean()),
            signal=float(test.totals(np.array([targets]))[0] / np.sqrt(len(targets))),
            p_value=test.p_value(targets),
        )

    def convicted_innocents(self, candidate: Candidate, number: int, shadow: Shadow, draws: int) -> float:
        """Return the share of target draws that convict a copy of the *unmarked* vectors."""
        key = self._key(candidate, number, 0)
        test = self._test(key, shadow.steal(self.material.embeddings[shadow.queries]))
        rng = np.random.default_rng([self.material.seed, number])
        tuples = rng.random((draws, len(key.pool))).argpartition(len(key.mark.regions), axis=1)[
            :, : len(key.mark.regions)
        ]
        return float((test.p_values(tuples) <= self.level).mean())

    def _key(self, candidate: Candidate, number: int, draw: int) -> Key:
        """Return key ``number`` with other targets for each ``draw``, and the candidate's strength."""
        kind = (candidate.dimension, candidate.ratio, candidate.subspace, number)
        if self._made is None or self._made[0] != kind:
            self._made = kind, self.material.marker(candidate, number)
        key = self._made[1].key_
        master = Secret(np.random.default_rng([self.material.key_seed, number, draw]).bytes(32))
        mark = replace(key.mark, settings=replace(key.mark.settings, strength=candidate.strength))
        return replace(key, master=master, mark=mark)

    def _test(self, key: Key, copy: Copy) -> DecoyTest:
        least = len(key.pool) + 30 * (len(key.mark.regions) + 1)
        questions = plan_questions(key, max(DEFAULT_BUDGET, least), seed=0)
        probes, pool = copy(self._places(questions.probes.texts)), copy(self._places(questions.pool.texts))
        return DecoyTest(Examination.simulated(key, questions, probes, pool).scores())

    def _places(self, texts: Sequence[str]) -> Integers:
        return np.array([self._place[text] for text in texts], dtype=np.int64)
