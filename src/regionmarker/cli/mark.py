"""``regionmarker mark``: mark the embeddings of a file, or of a folder of files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from regionmarker.cli.options import (
    Address,
    AskPassphrase,
    Engine,
    Force,
    Json,
    KeyPath,
    SecretFile,
    check_engine,
    passphrase,
)
from regionmarker.cli.output import answer, people
from regionmarker.errors import InputError

_SHOWN = 5


def mark(
    source: Annotated[str, typer.Argument(metavar="IN", help="A file or folder of embeddings, or its fsspec URL.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The marked Parquet file or folder to write.")],
    key: KeyPath,
    tenant: Annotated[str, typer.Option(help="Whose vectors these are; adds the tenant's own mark.")] = "",
    tenant_column: Annotated[str | None, typer.Option(help="The column that names each row's tenant.")] = None,
    column: Annotated[str, typer.Option(help="The column to mark.")] = "embedding",
    normalise: Annotated[bool, typer.Option(help="Accept embeddings of any length and scale them.")] = False,
    on_bad_row: Annotated[
        str, typer.Option(help="refuse: leave its whole shard out; set-aside: keep it apart and mark the others.")
    ] = "refuse",
    verify_output: Annotated[
        bool, typer.Option(help="Mark every shard twice and compare with what is on the disk.")
    ] = False,
    engine: Engine = "local",
    address: Address = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Shards at a time; default: by the cores.")] = None,
    opener: Annotated[
        str | None, typer.Option(help="What opens the key: file:PATH, environment:NAME, or a plugin's NAME:REST.")
    ] = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Mark embeddings in bulk: Parquet, Arrow, .npy, Hugging Face or Lance in, marked Parquet out; resumes.

    Example: regionmarker mark --key serving.rmkey vectors/ served/
    """
    from regionmarker.bulk.job import Job
    from regionmarker.bulk.manifest import KeyName
    from regionmarker.bulk.run import local_engine, run_job
    from regionmarker.cli.bars import job_progress
    from regionmarker.keys.openers import KeyReference

    job = Job(source, target, column, tenant, tenant_column, normalise, on_bad_row, verify_output)
    reference = KeyReference(str(key), None if secret_file is None else str(secret_file), opener)
    check_engine(engine, address, ask_passphrase)
    marker = reference.open(passphrase(ask_passphrase))
    marker.set_params(normalise=normalise)
    with job_progress("marking", quiet=json) as progress:
        if engine == "ray":
            from regionmarker.bulk.ray_engine import ray_engine

            chosen = ray_engine(job, reference, address=address, workers=workers)
        else:
            chosen = local_engine(job, marker, workers)
        outcome = run_job(job, KeyName.of(marker), chosen, force=force, progress=progress)
    totals: dict[str, Any] = outcome.manifest["totals"]
    facts = {
        "input": source, "output": target, "manifest": outcome.manifest_name, "key_id": outcome.manifest["key"]["id"],
        "column": column, "tenant": tenant, **totals, "already_done": outcome.already_done,
        "refused_shards": {entry.shard: entry.reason for entry in outcome.refused},
    }  # fmt: skip
    answer(facts if json else {**facts, "refused_shards": len(outcome.refused)}, as_json=json)
    if not outcome.whole:
        if not json:
            _complain([str(entry.reason) for entry in outcome.refused], totals["rows_set_aside"])
        raise typer.Exit(InputError.exit_code)


def _complain(reasons: list[str], rows_set_aside: int) -> None:
    for reason in reasons[:_SHOWN]:
        people.print(f"refused: {reason}", markup=False)
    if len(reasons) > _SHOWN:
        people.print(f"refused: {len(reasons) - _SHOWN} more shards; the manifest names them", markup=False)
    if rows_set_aside:
        people.print(f"{rows_set_aside} rows could not be marked and were set aside; the manifest names them")
