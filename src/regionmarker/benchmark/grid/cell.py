"""A cell: one corpus, one defense, one list of attacks, one thief, one seed, one suspect."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

COPY, UNMARKED, PROVIDER, PORTRAIT = "copy", "unmarked copy", "provider", "portrait"
"""Who is judged: the thief's copy, the copy that the same thief makes of unmarked vectors, the unmarked provider
itself; any other name is an encoder that never saw a served vector. A portrait judges nobody: it looks at the mark."""

NO_DEFENSE = "none"
_ALIAS = re.compile(r"@([A-Za-z][\w-]*)")
_DIGEST_VERSION = "regionmarker cell 1"


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
        How many texts the thief buys.
    seed
        Of the division of the corpus, of the key and of the thief.
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
        """Whether a thief has to be trained."""
        return self.suspect in (COPY, UNMARKED)

    @property
    def attack(self) -> str:
        """The attacks as tables name them."""
        return " then ".join(self.attacks) or "none"

    @property
    def shared(self) -> Cell:
        """What cells with the same unmarked thief have in common: they go to one worker, which trains it once."""
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
        """Return what a row of results says about its cell."""
        return {
            **{name: value for name, value in asdict(self).items() if name != "parameters"},
            "attacks": list(self.attacks),
            "attack": self.attack,
            "guilty": self.guilty,
            "parameters": json.dumps(dict(self.parameters), sort_keys=True),
        }


def expand(spec: str, encoders: Mapping[str, str]) -> str:
    """Put the encoders' own specs in the place of their names.

    Examples
    --------
    >>> expand("head:@minilm", {"minilm": "wordllama"})
    'head:wordllama'
    """
    return _ALIAS.sub(lambda match: encoders.get(match[1], match[0]), spec)
