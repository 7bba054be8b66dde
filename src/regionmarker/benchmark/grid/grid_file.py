"""A grid file: TOML in, cells out.

    [encoders]                     names for encoders; specs call them @name
    minilm = "sentence-transformers:all-MiniLM-L6-v2"

    [[block]]                      every block is a product; a grid may hold several
    corpora = ["sst2"]
    provider = "stored:mpnet768"   or "stored:mpnet768+nomic768,crowded=0.75", or an encoder spec
    defenses = ["none", "regionmarker:strength={strength}"]
    attacks = ["none", "shift:100", ["shift:100", "truncate:2/3"]]
    stealers = ["head:@minilm"]
    public = "@minilm"             the encoder that attacks may use
    suspects = ["copy", "unmarked copy", "provider", "wordllama"]
    queries = [5000]
    seeds = [100, 101, 102]
    limit = 0                      at most this number of texts; 0 for all
    [block.parameters]             filled into the specs where they stand in braces; {seed} is always there
    strength = [0.1, 0.2]

Lists are multiplied with each other; whatever two blocks have in common is computed once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from regionmarker.benchmark.grid.cell import COPY, PORTRAIT, UNMARKED, Cell
from regionmarker.errors import InputError

Parameter = float | str


@dataclass(frozen=True)
class Block:
    """One product of the grid."""

    corpora: tuple[str, ...]
    provider: str
    defenses: tuple[str, ...]
    attacks: tuple[tuple[str, ...], ...] = ((),)
    stealers: tuple[str, ...] = ("tokens",)
    public: str = "wordllama"
    suspects: tuple[str, ...] = (COPY, UNMARKED, "provider", "wordllama")
    queries: tuple[int, ...] = (5000,)
    seeds: tuple[int, ...] = (0,)
    limit: int = 0
    parameters: tuple[tuple[str, tuple[Parameter, ...]], ...] = ()
    name: str = ""

    def cells(self) -> Iterator[Cell]:
        """Yield the cells, those that share most next to each other."""
        names = [name for name, _ in self.parameters]
        lists: list[tuple[Any, ...]] = [
            self.seeds, self.corpora, self.queries, self.stealers, self.attacks, self.defenses, self.suspects,
            *(values for _, values in self.parameters),
        ]  # fmt: skip
        for seed, corpus, queries, stealer, attacks, defense, suspect, *values in product(*lists):
            chosen = dict(zip(names, values, strict=True))
            used = " ".join((defense, stealer, *attacks))
            yield _without_needless(
                Cell(
                    corpus=corpus,
                    provider=self.provider,
                    defense=_filled(defense, chosen, seed),
                    attacks=tuple(_filled(attack, chosen, seed) for attack in attacks if attack != "none"),
                    stealer=_filled(stealer, chosen, seed),
                    suspect=suspect,
                    queries=queries,
                    seed=seed,
                    public=self.public,
                    limit=self.limit,
                    parameters=tuple(sorted((name, value) for name, value in chosen.items() if f"{{{name}}}" in used)),
                )
            )


def _filled(spec: str, chosen: Mapping[str, Parameter], seed: int) -> str:
    """Return a spec with the parameters' values in the place of their names."""
    try:
        return spec.format(**chosen, seed=seed)
    except (KeyError, IndexError, ValueError) as error:
        raise InputError(f"the spec {spec!r} wants {error}, which is no parameter of its block") from None


def _without_needless(cell: Cell) -> Cell:
    """Leave away what cannot matter, so that equal cells are equal: who buys nothing is not attacked."""
    if cell.suspect == UNMARKED and cell.unmarked:
        cell = replace(cell, suspect=COPY)  # without a mark it is the same copy
    if not cell.stolen:
        cell = replace(cell, attacks=(), stealer="", public="")
    return cell


@dataclass(frozen=True)
class Grid:
    """All cells of a file, each once, in the file's order.

    Examples
    --------
    >>> text = '''
    ... [[block]]
    ... corpora = ["python"]
    ... provider = "wordllama"
    ... defenses = ["none", "regionmarker"]
    ... attacks = ["none", "shift:100"]
    ... queries = [1000]
    ... '''
    >>> grid = Grid.parse(text)
    >>> len(grid.cells), grid.cells[0].defense
    (10, 'none')
    """

    cells: tuple[Cell, ...]
    encoders: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, path: Path) -> Grid:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the grid {path}: {getattr(error, 'strerror', None) or error}") from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, name: str = "the grid") -> Grid:
        """Read a grid from its text; errors name the file and the block."""
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{name} is not TOML: {error}") from None
        unknown = sorted(found.keys() - {"block", "encoders", "defaults"})
        if unknown:
            raise InputError(f"{name}: unknown table {unknown[0]!r}: give block, encoders or defaults")
        encoders = found.get("encoders", {})
        if not isinstance(encoders, dict) or not all(isinstance(spec, str) for spec in encoders.values()):
            raise InputError(f"{name}: encoders must be names with specs")
        blocks = found.get("block", [])
        if not isinstance(blocks, list) or not blocks:
            raise InputError(f"{name} has no [[block]]: a grid needs at least one")
        cells: dict[Cell, None] = {}
        for number, table in enumerate(blocks, start=1):
            block = _block({**found.get("defaults", {}), **table}, f"{name}, block {number}")
            cells.update(dict.fromkeys(block.cells()))
        for cell in cells:
            for alias in cell.aliases():
                if alias not in encoders:
                    raise InputError(f"{name}: @{alias} is not among its [encoders]")
        return cls(tuple(cells), tuple(sorted(encoders.items())))

    def with_encoders(self, given: Mapping[str, str]) -> Grid:
        """Return the grid with other specs behind some of its encoders' names, such as a local folder."""
        unknown = sorted(given.keys() - dict(self.encoders).keys())
        if unknown:
            known = ", ".join(name for name, _ in self.encoders) or "none"
            raise InputError(f"--encoder {unknown[0]}: the grid names no such encoder; it names {known}")
        return replace(self, encoders=tuple(sorted({**dict(self.encoders), **given}.items())))

    def batches(self) -> list[list[Cell]]:
        """Return the cells in groups that share the unmarked copy, before anything was done to it.

        Portraits need none, and each takes as long as a dozen other cells: they come first, or the last one would keep
        a single worker busy while the others wait.
        """
        groups: dict[Cell, list[Cell]] = {}
        for cell in sorted(self.cells, key=lambda cell: cell.suspect != PORTRAIT):
            groups.setdefault(cell if cell.suspect == PORTRAIT else cell.shared.trained, []).append(cell)
        return list(groups.values())


_LISTS = {"corpora": str, "defenses": str, "stealers": str, "suspects": str, "queries": int, "seeds": int}
_SINGLES = {"provider": str, "public": str, "name": str, "limit": int}
_NEEDED = ("corpora", "provider", "defenses")


def _block(table: Mapping[str, Any], where: str) -> Block:
    known = {field.name for field in fields(Block)}
    for key in table:
        if key not in known:
            raise InputError(f"{where}: unknown entry {key!r}: give {', '.join(sorted(known))}")
    for key in _NEEDED:
        if key not in table:
            raise InputError(f"{where} has no {key}")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key in _LISTS:
            values[key] = _list(value, _LISTS[key], f"{where}: {key}")
        elif key in _SINGLES:
            if not isinstance(value, _SINGLES[key]) or isinstance(value, bool):
                raise InputError(f"{where}: {key} must be a {_SINGLES[key].__name__}, but is {value!r}")
            values[key] = value
    if "attacks" in table:
        lists = _list(table["attacks"], (str, list), f"{where}: attacks")
        values["attacks"] = tuple(
            (item,) if isinstance(item, str) else _list(item, str, f"{where}: attacks") for item in lists
        )
    if "parameters" in table:
        values["parameters"] = _parameters(table["parameters"], f"{where}: parameters")
    block = Block(**values)
    if min(block.queries) < 1 or block.limit < 0 or min(block.seeds) < 0:
        raise InputError(f"{where}: queries must be positive, limit and seeds not negative")
    if block.suspects != (PORTRAIT,) and not block.stealers:
        raise InputError(f"{where} has no stealers")
    return block


def _list(value: Any, kind: Any, what: str) -> tuple[Any, ...]:
    if not isinstance(value, list) or not value:
        raise InputError(f"{what} must be a list with at least one entry")
    for item in value:
        if not isinstance(item, kind) or isinstance(item, bool):
            raise InputError(f"{what} cannot hold {item!r}")
    return tuple(value)


def _parameters(value: Any, what: str) -> tuple[tuple[str, tuple[Parameter, ...]], ...]:
    if not isinstance(value, dict):
        raise InputError(f"{what} must be a table of lists")
    return tuple((name, _list(values, (str, int, float), f"{what}, {name}")) for name, values in value.items())
