"""A cell: one corpus, one defense, one list of attacks, one stealer, one seed, one suspect; and the columns of its row.

Many cells have something in common, such as a key or a copy. :attr:`Cell.split`, :attr:`Cell.served`,
:attr:`Cell.theft`, :attr:`Cell.trained` and :attr:`Cell.shared` are the cell without what does not matter for it, so
that whoever keeps results by these computes nothing twice.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

COPY, UNMARKED, PROVIDER, PORTRAIT = "copy", "unmarked copy", "provider", "portrait"
"""Who is judged: the stealer's copy, the copy that the same stealer makes of unmarked vectors, the unmarked provider
itself; any other name is an encoder that never saw a served vector. A portrait judges nobody: it looks at the mark."""

NO_DEFENSE = "none"
_ON_THE_MODEL = ("after", "finetune")
_ALIAS = re.compile(r"@([A-Za-z][\w-]*)")
_DIGEST_VERSION = "regionmarker cell 1"

CorpusId = tuple[str, str, int]
"""Corpus, provider, limit."""


@dataclass(frozen=True, order=True)
class Cell:
    """Everything that somebody chose; what else can change its result comes into :meth:`digest`.

    Attributes
    ----------
    corpus, provider, limit
        The texts, who embeds them, and how many there are at the most (0: all).
    defense, attacks, stealer
        Specs. ``@name`` stands for an encoder that the grid file names.
    public
        The public encoder that attacks may use.
    suspect
        Who is judged.
    queries
        How many texts the stealer buys.
    seed
        Of the division of the corpus, of the key and of the stealer.
    parameters
        The hyper-parameters that were filled into the specs, for tables and figures.

    Examples
    --------
    >>> cell = Cell("sst2", "wordllama", "embmarker", ("shift:100",), "head:@minilm", "copy", queries=500, seed=1)
    >>> cell.aliases(), cell.guilty
    (('minilm',), True)
    """

    corpus: str
    provider: str
    defense: str
    attacks: tuple[str, ...]
    stealer: str
    suspect: str
    queries: int
    seed: int
    public: str = ""
    limit: int = 0
    parameters: tuple[tuple[str, float | str], ...] = ()

    @property
    def guilty(self) -> bool:
        """Whether the suspect was trained on marked vectors."""
        return self.suspect == COPY and not self.unmarked

    @property
    def unmarked(self) -> bool:
        """Whether the cell's defense serves clean vectors: ``none``, whatever its settings."""
        return self.defense.partition(":")[0] == NO_DEFENSE

    @property
    def stolen(self) -> bool:
        """Whether a stealer has to be trained."""
        return self.suspect in (COPY, UNMARKED)

    @property
    def attack(self) -> str:
        return " then ".join(self.attacks) or "none"

    @property
    def corpus_id(self) -> CorpusId:
        return self.corpus, self.provider, self.limit

    @property
    def split(self) -> Cell:
        """What cells with the same division of their corpus have in common."""
        return replace(self.served, defense=NO_DEFENSE)

    @property
    def served(self) -> Cell:
        """What cells with the same key have in common."""
        return replace(self, attacks=(), stealer="", public="", suspect=PROVIDER, parameters=())

    @property
    def theft(self) -> Cell:
        """What cells with the same stolen model have in common."""
        return replace(self, parameters=()) if self.guilty else self.shared

    @property
    def trained(self) -> Cell:
        """What cells with the same training have in common: attacks on the model itself come after it."""
        return replace(self.theft, attacks=before_training(self.attacks))

    @property
    def shared(self) -> Cell:
        """What cells with the same unmarked copy have in common: they go to one worker, which trains it once."""
        return replace(self, defense=NO_DEFENSE, suspect=UNMARKED, parameters=())

    def aliases(self) -> tuple[str, ...]:
        """Return the encoders that the specs name, without their @."""
        specs = (self.provider, self.defense, *self.attacks, self.stealer, self.public, self.suspect)
        return tuple(sorted({name for spec in specs for name in _ALIAS.findall(spec)}))

    def digest(self, corpus: str, encoders: Mapping[str, str], versions: Mapping[str, str]) -> str:
        """Return the SHA-256 over everything that can change the result.

        Parameters
        ----------
        corpus
            The corpus' own digest.
        encoders
            What identifies the encoders behind the aliases.
        versions
            Of Python, of the libraries and of this package's source.
        """
        facts = {
            "cell": asdict(self),
            "corpus": corpus,
            "encoders": {name: encoders[name] for name in self.aliases()},
            "versions": dict(versions),
        }
        return hashlib.sha256(f"{_DIGEST_VERSION}\n{json.dumps(facts, sort_keys=True)}".encode()).hexdigest()

    def columns(self) -> dict[str, Any]:
        return {
            **{name: value for name, value in asdict(self).items() if name != "parameters"},
            "attacks": list(self.attacks),
            "attack": self.attack,
            "guilty": self.guilty,
            "parameters": json.dumps(dict(self.parameters), sort_keys=True),
        }


def before_training(attacks: tuple[str, ...]) -> tuple[str, ...]:
    """Return the attacks that the training depends on.

    Examples
    --------
    >>> before_training(("cse", "after:rotate:3"))
    ('cse',)
    """
    return tuple(attack for attack in attacks if attack.partition(":")[0] not in _ON_THE_MODEL)


def expand(spec: str, encoders: Mapping[str, str]) -> str:
    """Put the encoders' own specs in the place of their names.

    Examples
    --------
    >>> expand("head:@minilm", {"minilm": "wordllama"})
    'head:wordllama'
    """
    return _ALIAS.sub(lambda match: encoders.get(match[1], match[0]), spec)


# ---- the columns of a row: what is known of a cell when it is done

SCORES = ("z", "z_rows", "chosen")
"""The columns that hold the decoy test's scores."""

CELL = {
    "digest": "string",
    "corpus": "string",
    "provider": "string",
    "limit": "int64",
    "defense": "string",
    "attack": "string",
    "attacks": "list",
    "stealer": "string",
    "public": "string",
    "suspect": "string",
    "queries": "int64",
    "seed": "int64",
    "guilty": "bool",
    "parameters": "string",
}
NUMBERS = (
    "fidelity",  # mean cosine of the copy to its own training targets, on held-out texts
    "centred_fidelity",  # the same after the mean of each side was taken away
    "clean_fidelity",  # centred, to the clean provider's vectors; NaN for another width, near 0 for rotated targets
    "attack_cosine",  # mean cosine of what is trained on to what was served; 1 for an attack that did nothing
    "correlation",  # Spearman correlation of its pairwise cosines with the clean provider's
    "trained_on",  # texts left after the attacks
    "decoy_p",
    "published_p",
    "delta_cos",
    "delta_l2",
    "served_accuracy",
    "served_f1",
    "clean_accuracy",  # of the same classifier on unmarked vectors
    "clean_f1",
    "stolen_accuracy",
    "stolen_f1",
    "stolen_sts",  # what the copy is worth on STS-B, where the data folder has it
    "overlap",  # share of the ten nearest neighbours that marking kept
    "mean_cosine",  # of e and e_p
    "seconds_fit",
    "seconds_transform",  # for one vector
    "seconds_attack",
    "seconds_steal",
    "seconds_verify",
    "seconds_utility",
)
SECONDS = tuple(name for name in NUMBERS if name.startswith("seconds_"))
"""What differs from run to run."""

FAILED, DIED = "failed", "died"


def schema(*, scores: bool) -> pa.Schema:
    """Return the columns, with the decoy test's scores or without."""
    kinds = {"string": pa.string(), "int64": pa.int64(), "bool": pa.bool_(), "list": pa.list_(pa.string())}
    columns = [(name, kinds[kind]) for name, kind in CELL.items()]
    columns += [(name, pa.float64()) for name in NUMBERS]
    columns += [("published_copy", pa.bool_()), ("error", pa.string()), ("error_kind", pa.string())]
    columns += [("extras", pa.string())]  # JSON: what a portrait holds
    if scores:
        columns += [("z", pa.list_(pa.float64())), ("z_rows", pa.int64()), ("chosen", pa.list_(pa.int64()))]
    return pa.schema(columns)


def failed(cell: Mapping[str, Any], error: str, kind: str = FAILED) -> dict[str, Any]:
    """Return the row of a cell that failed: its error, one line.

    Examples
    --------
    >>> failed({"corpus": "sst2"}, "too few texts")["error"]
    'too few texts'
    """
    return {**cell, "error": (error.splitlines() or ["unknown"])[0], "error_kind": kind}


def is_final(row: Mapping[str, Any], *, retry: bool = False) -> bool:
    """Return whether a cell with this row needs no second run: a death may have been the machine's fault."""
    return row["error_kind"] is None or (row["error_kind"] == FAILED and not retry)
