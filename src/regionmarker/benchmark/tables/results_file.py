"""Results as one file: a row per cell of any number of grids, checked, so that tables can be made without the grids.

    FILE.parquet     the columns of a grid's row, and ``grids``, the names of the folders that the cell was found in

The same folders give the same bytes (of one version of pyarrow). See docs/reference/results.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from regionmarker.benchmark.grid.cell import CELL, SECONDS, schema
from regionmarker.benchmark.grid.output_folder import Store
from regionmarker.errors import InputError
from regionmarker.files import atomic_path
from regionmarker.parquet import open_parquet

GRIDS = "grids"
_IDENTITY = tuple(name for name in CELL if name not in ("digest", "attacks", "guilty"))
"""What somebody chose: two rows that agree in all of it are one cell."""
_NEVER_EMPTY = ("digest", "corpus", "provider", "defense", "attack", "suspect", "seed", "queries", "guilty", GRIDS)
_FREE = (*SECONDS, GRIDS)
"""What may differ between two runs of one cell."""
_SHARES = ("decoy_p", "published_p", "served_accuracy", "served_f1", "clean_accuracy", "clean_f1", "stolen_accuracy",
           "stolen_f1", "overlap")  # fmt: skip

MEANINGS = {
    "digest": "what the row was computed from: cell, texts, vectors, encoders, versions, source",
    "corpus": "the texts",
    "provider": "who embeds them",
    "limit": "texts at the most; 0: all",
    "defense": "the spec of the scheme that marks and judges",
    "attack": "the attacks in order, as one text",
    "attacks": "their specs",
    "stealer": "the spec of what trains the copy; empty where nothing is stolen",
    "public": "the public encoder that attacks may use",
    "suspect": "who is judged: copy, unmarked copy, provider, an encoder; portrait judges nobody",
    "queries": "texts that the thief buys",
    "seed": "of split, key and stealer",
    "guilty": "whether the suspect was trained on marked vectors",
    "parameters": "the hyper-parameters that the grid filled in (JSON)",
    "fidelity": "mean cosine of the copy to its own training targets, on held-out texts",
    "centred_fidelity": "the same after the mean of each side was taken away",
    "clean_fidelity": "centred, to the clean provider's vectors; empty for another width, near 0 for rotated targets",
    "attack_cosine": "mean cosine of what is trained on to what was served; 1 where an attack did nothing",
    "correlation": "Spearman correlation of its pairwise cosines with the clean provider's",
    "trained_on": "texts left after the attacks",
    "decoy_p": "p of the decoy test; empty where it cannot be applied",
    "published_p": "p of the scheme's published test",
    "delta_cos": "the scheme's published Δcos",
    "delta_l2": "the scheme's published Δl2",
    "served_accuracy": "of the paper's classifier on served vectors",
    "served_f1": "its macro-F1",
    "clean_accuracy": "of the same classifier on unmarked vectors",
    "clean_f1": "its macro-F1",
    "stolen_accuracy": "of the same classifier on the copy's vectors",
    "stolen_f1": "its macro-F1",
    "stolen_sts": "Spearman correlation of the copy's cosines with STS-B's scores, where the data folder has them",
    "overlap": "share of the ten nearest neighbours that marking kept",
    "mean_cosine": "of clean and served vectors",
    "seconds_fit": "to make the key",
    "seconds_transform": "to mark one vector",
    "seconds_attack": "of the attacks",
    "seconds_steal": "of the training",
    "seconds_verify": "to judge",
    "seconds_utility": "of the classifiers",
    "published_copy": "whether the published rule calls the suspect a copy",
    "error": "why the cell failed, one line",
    "error_kind": "failed (by itself) or died (with its worker)",
    "extras": "what a portrait holds (JSON)",
    GRIDS: "the grids that the cell stands in",
}
"""What the columns mean; the file carries it, too."""

Row = Mapping[str, Any]


def results_schema() -> pa.Schema:
    """Return the columns of the file, each with its meaning.

    Examples
    --------
    >>> results_schema().field("grids").type
    ListType(list<element: string>)
    """
    fields = [*schema(scores=False), pa.field(GRIDS, pa.list_(pa.field("element", pa.string())))]
    return pa.schema([field.with_metadata({"meaning": MEANINGS[field.name]}) for field in fields])


@dataclass(frozen=True)
class Collection:
    """Rows of several grids, each cell once.

    Attributes
    ----------
    rows
        In the order of the grids and of their cells.
    missing
        Cells of the grids that are not computed yet.
    replaced
        Rows left out, because the same cell, computed by other code or from other inputs, stands in a folder that was
        named before.
    """

    rows: list[dict[str, Any]]
    missing: int = 0
    replaced: int = 0


def read_results(path: Path) -> Collection:
    """Return the rows of an output folder of ``bench run``, or of a file of results.

    Examples
    --------
    >>> read_results(Path("missing"))
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: missing is neither an output folder of bench run nor a file of results
    """
    if path.is_dir():
        store = Store.reading(path)
        rows = store.rows()
        return Collection([{**row, GRIDS: [path.resolve().name]} for row in rows], len(store.planned()) - len(rows))
    if not path.is_file():
        raise InputError(f"{path} is neither an output folder of bench run nor a file of results")
    wanted = results_schema()
    with open_parquet(path) as file:
        given = file.schema_arrow
        for name in _NEVER_EMPTY:
            if name not in given.names:
                raise InputError(f"{path} has no column {name}: write it by regionmarker bench collect")
        there = [name for name in wanted.names if name in given.names]
        for name in there:
            if given.field(name).type != wanted.field(name).type:
                raise InputError(
                    f"{path}: column {name} is {given.field(name).type}, and must be {wanted.field(name).type}"
                )
        unmeasured = dict.fromkeys(name for name in wanted.names if name not in there)  # a file of an earlier version
        rows = [{**unmeasured, **row} for row in file.read(columns=there).to_pylist()]
    check_rows(rows, str(path))
    return Collection(rows)


def check_rows(rows: Iterable[Row], name: str) -> None:
    """Check what the types of the columns do not say; raise an InputError that names the row."""
    seen: set[str] = set()
    for number, row in enumerate(rows, start=1):
        for column in _NEVER_EMPTY:
            if row[column] is None or row[column] == []:
                raise InputError(f"{name}: row {number} has no {column}")
        for column in _SHARES:
            value = row[column]
            if value is not None and not math.isnan(value) and not 0 <= value <= 1:
                raise InputError(f"{name}: row {number} has {column} {value:g}, which must lie between 0 and 1")
        if row["digest"] in seen:
            raise InputError(f"{name}: row {number} repeats the cell {row['digest']}")
        seen.add(row["digest"])


def collect(paths: Sequence[Path]) -> Collection:
    """Merge the rows of folders and files.

    A cell that stands in several is one row, with the names of all grids. What was computed twice from the same inputs
    must agree but for the seconds; of what was computed from different inputs, the folder named first counts.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    missing = replaced = 0
    for path in paths:
        one = read_results(path)
        missing += one.missing
        for row in one.rows:
            cell = tuple(row[name] for name in _IDENTITY)
            kept = found.setdefault(cell, row)
            if kept is not row:
                replaced += kept["digest"] != row["digest"]
                _check_agreement(kept, row, path)
                kept[GRIDS] = list(dict.fromkeys([*kept[GRIDS], *row[GRIDS]]))
    rows = list(found.values())
    check_rows(rows, "the collection")
    return Collection(rows, missing, replaced)


def _check_agreement(kept: Row, row: Row, path: Path) -> None:
    if kept["digest"] != row["digest"]:
        return
    for name in schema(scores=False).names:
        if name not in _FREE and not _same(kept[name], row[name]):
            raise InputError(
                f"{path}: the cell {row['digest']} has {name} {row[name]}, and {kept[name]} in "
                f"{', '.join(kept[GRIDS])}: one of the two was changed by hand, or the cell is not deterministic"
            )


def _same(one: object, other: object) -> bool:
    nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return nan or one == other


def write_results(rows: Sequence[Row], path: Path) -> Path:
    """Write the file, all of it or nothing; the same rows give the same bytes."""
    wanted = results_schema()
    table = pa.Table.from_pylist([{name: row.get(name) for name in wanted.names} for row in rows], schema=wanted)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=19, use_dictionary=True)
    return path
