"""``regionmarker mark``: mark the embeddings of a file, or of a folder of files."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regionmarker.cli.options import (
    AskPassphrase,
    Force,
    Json,
    KeyPath,
    LabelsDatabase,
    SecretFile,
    passphrase,
    tenant_label,
)
from regionmarker.cli.output import print_result, progress, stderr
from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.bulk.job import Shard
    from regionmarker.bulk.manifest import Entry
    from regionmarker.bulk.run import JobProgress

_SHOWN = 5


def mark(
    source: Annotated[str, typer.Argument(metavar="IN", help="A file or folder of embeddings, or its fsspec URL.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The marked Parquet file or folder to write.")],
    key: KeyPath,
    tenant: Annotated[str, typer.Option(help="Whose vectors these are; adds the tenant's own mark.")] = "",
    database: LabelsDatabase = None,
    tenant_column: Annotated[str | None, typer.Option(help="The column that names each row's tenant.")] = None,
    column: Annotated[str, typer.Option(help="The column to mark.")] = "embedding",
    normalise: Annotated[bool, typer.Option(help="Accept embeddings of any length and scale them.")] = False,
    on_bad_row: Annotated[
        str, typer.Option(help="refuse: leave its whole shard out; set-aside: keep it apart and mark the others.")
    ] = "refuse",
    verify_output: Annotated[
        bool,
        typer.Option(help="Mark every shard twice and compare with the disk; check digests of what was done."),
    ] = False,
    engine: Annotated[str, typer.Option(help="local: this machine; ray: a Ray cluster.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster to use; default: one of its own on this machine.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Shards to mark at a time; default: by the number of cores.")
    ] = None,
    opener: Annotated[
        str | None, typer.Option(help="What opens the key: file:PATH, environment:NAME, or a plugin's NAME:REST.")
    ] = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    again: Annotated[
        bool, typer.Option("--again", help="Mark vectors that carry a mark already, by the manifest beside them.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Mark embeddings in bulk: Parquet, Arrow, .npy, Hugging Face or Lance in, marked Parquet out; resumes.

    With --database the mark is the one that the gateway gives the tenant, so that trace --database finds it.

    Example: regionmarker mark --key serving.rmkey vectors/ served/
    """
    from regionmarker.bulk.job import Job
    from regionmarker.bulk.manifest import KeyLabel
    from regionmarker.bulk.run import local_engine, run_job
    from regionmarker.keys.files import KeyReference
    from regionmarker.marking.marker import RegionMarker

    label = tenant_label(tenant, database)
    job = Job(source, target, column, label, tenant_column, normalise, on_bad_row, verify_output)
    if not again:
        _refuse_marked(source)
    reference = KeyReference(str(key), None if secret_file is None else str(secret_file), opener)
    _check_engine(engine, address, ask_passphrase)
    marker = RegionMarker.from_opened(reference.open(passphrase(ask_passphrase)))
    marker.set_params(normalise=normalise or marker.normalise)
    job = replace(job, normalise=marker.normalise)  # the key may say so
    with _job_progress(quiet=json) as job_progress:
        if engine == "ray":
            from regionmarker.bulk.ray_engine import ray_engine

            chosen = ray_engine(job, reference, address=address, workers=workers)
        else:
            chosen = local_engine(job, marker, workers)
        outcome = run_job(job, KeyLabel.of(marker), chosen, force=force, progress=job_progress)
    totals: dict[str, Any] = outcome.manifest["totals"]
    facts = {
        "input": source, "output": target, "manifest": outcome.manifest_name, "key_id": outcome.manifest["key"]["id"],
        "column": column, "tenant": tenant, "label": label, **totals, "already_done": outcome.already_done,
        "refused_shards": {entry.shard: entry.reason for entry in outcome.refused},
    }  # fmt: skip
    if not json:
        facts["refused_shards"] = facts.pop("refused")  # how many; --json names them
    print_result(facts, as_json=json)
    if not outcome.whole:
        if not json:
            _complain([str(entry.reason) for entry in outcome.refused], totals["rows_set_aside"])
        raise typer.Exit(InputError.exit_code)


def _refuse_marked(source: str) -> None:
    """Refuse vectors that are marked: a second mark costs neighbours and proves nothing more."""
    from regionmarker.bulk.manifest import marked_by

    key_id = marked_by(source)
    if key_id is not None:
        raise InputError(
            f"{source} carries the mark of key {key_id} already, as the manifest says: mark the clean vectors, or give "
            "--again"
        )


def _check_engine(engine: str, address: str | None, ask_passphrase: bool) -> None:
    """Refuse options that do not go together."""
    if engine not in ("local", "ray"):
        raise InputError(f"--engine is {engine!r}, but must be local or ray")
    if address is not None and engine != "ray":
        raise InputError("--address goes with --engine ray")
    if ask_passphrase and engine == "ray":
        raise InputError(
            "a passphrase typed here does not reach Ray's workers, and must not travel to them: "
            "set REGIONMARKER_PASSPHRASE where they run, or use a secret file or --opener"
        )


@contextmanager
def _job_progress(*, quiet: bool) -> Iterator[JobProgress]:
    """Show a bar over the input's bytes, with the rows marked per second."""
    from regionmarker.bulk.run import JobProgress

    start, lock, rows = time.monotonic(), threading.Lock(), 0
    with progress("marking", quiet=quiet, in_bytes=True) as drawn:

        def on_plan(total_bytes: int, done_bytes: int) -> None:
            drawn.update(done_bytes, total_bytes)

        def on_rows(count: int) -> None:
            nonlocal rows
            with lock:
                rows += count
            drawn.note(f"{rows / max(time.monotonic() - start, 1e-3):,.0f} rows/s")

        def on_shard(shard: Shard, _entry: Entry) -> None:
            drawn.advance(shard.bytes)

        yield JobProgress(on_plan, on_rows, on_shard)


def _complain(reasons: list[str], rows_set_aside: int) -> None:
    for reason in reasons[:_SHOWN]:
        stderr.print(f"refused: {reason}")
    if len(reasons) > _SHOWN:
        stderr.print(f"refused: {len(reasons) - _SHOWN} more shards; the manifest names them")
    if rows_set_aside:
        stderr.print(f"{rows_set_aside} rows could not be marked and were set aside; the manifest names them")
