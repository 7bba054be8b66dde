"""What is known of a cell when it is done: the columns of the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

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
    import pyarrow as pa

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
