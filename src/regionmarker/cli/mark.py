"""``regionmarker mark``: mark the embeddings of a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regionmarker.cli.console import answer, progress
from regionmarker.cli.options import AskPassphrase, Force, Json, KeyPath, SecretFile, passphrase
from regionmarker.errors import InputError


def mark(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A Parquet file with a column of embeddings.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The marked Parquet file to write.")],
    key: KeyPath,
    tenant: Annotated[str, typer.Option(help="Whose vectors these are; adds the tenant's own mark.")] = "",
    column: Annotated[str, typer.Option(help="The column to mark.")] = "embedding",
    normalise: Annotated[bool, typer.Option(help="Accept embeddings of any length and scale them.")] = False,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Mark the embeddings of a Parquet file; every other column is kept.

    Example: regionmarker mark --key provider.rmkey vectors.parquet served.parquet
    """
    from regionmarker.bulk.parquet import mark_file
    from regionmarker.marking.marker import RegionMarker

    if target.exists() and not force:
        raise InputError(f"{target} exists already: choose another name, or use --force")
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist")
    marker = RegionMarker.load(key, passphrase=passphrase(ask_passphrase), secret_file=secret_file)
    marker.set_params(normalise=normalise)
    with progress("marking", None, quiet=json) as (bars, task):
        rows = mark_file(
            marker, source, target, tenant=tenant, column=column,
            on_rows=lambda done, total: bars.update(task, completed=done, total=total),
        )  # fmt: skip
    answer(
        {"input": str(source), "output": str(target), "rows": rows, "column": column, "tenant": tenant}, as_json=json
    )
