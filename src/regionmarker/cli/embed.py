"""``regionmarker embed``: texts in, vectors out, marked with a key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.cli.asking import DryRun, Price, check_price, print_quote, quote_corpus
from regionmarker.cli.options import (
    AskPassphrase,
    EmbeddingCache,
    Force,
    Json,
    LabelsDatabase,
    SecretFile,
    TextColumn,
    check_folder,
    check_new,
    check_tenant,
    open_encoder,
    passphrase,
    tenant_label,
)
from regionmarker.cli.output import print_result, progress, stderr
from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.marking.marker import RegionMarker
    from regionmarker.vectors import Encoder


def embed(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Texts: .txt, .jsonl, .csv, .parquet, or a folder.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write: .parquet, .npy or .jsonl.")],
    encoder: Annotated[str, typer.Option(help="Encoder spec, such as wordllama.", show_default=False)],
    key: Annotated[
        Path | None,
        typer.Option(help="The key file, or a serving key; without one, vectors carry no mark.", show_default=False),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Whose vectors these are; adds the tenant's own mark.")] = "",
    database: LabelsDatabase = None,
    text_column: TextColumn = None,
    cache: EmbeddingCache = None,
    dry_run: DryRun = False,
    price_per_million: Price = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Embed texts and mark their vectors; the output is there in full or not at all.

    With --cache, a run that was stopped goes on where it was: no text is paid for twice. With --database the mark is
    the one that the gateway gives the tenant.

    Example: regionmarker embed texts.csv vectors.parquet --encoder wordllama --key provider.rmkey --tenant acme
    """
    from regionmarker.bulk.text_file import check_target, embed_file

    check_price(price_per_million, dry_run=dry_run)
    check_target(target)
    check_new(target, force)
    check_folder(target)
    if key is None and (tenant or database is not None or secret_file is not None or ask_passphrase):
        raise InputError("--tenant, --database, --secret-file and --passphrase go with --key")
    label = tenant_label(tenant, database)
    loaded = open_encoder(encoder, cache)
    if dry_run:
        found = quote_corpus(source, loaded, text_column)
        print_quote(found, price_per_million, as_json=json, before={"encoder": encoder})
        return
    assert loaded is not None  # noqa: S101 - a spec was given
    marker = None if key is None else _marker(key, passphrase(ask_passphrase), secret_file, label, loaded)
    with progress("embedding", quiet=json) as drawn:
        count, width = embed_file(
            source, target, loaded, marker, tenant=label, text_column=text_column, progress=drawn.update
        )
    facts = {
        "output": str(target),
        "texts": count,
        "width": width,
        "encoder": encoder,
        "marked_by": None if marker is None else _key_id(marker),
        "tenant": tenant,
        "label": label,
    }
    print_result(facts, as_json=json, title="Vectors")
    if marker is None and not json:
        stderr.print(
            "\nThese vectors carry no mark. Give none of them away: clean and marked vectors of the same texts show "
            "the mark."
        )


def _marker(key: Path, phrase: str | None, secret_file: Path | None, tenant: str, encoder: Encoder) -> RegionMarker:
    """Open the key, and see that it can mark what this encoder gives."""
    from regionmarker.marking.marker import RegionMarker
    from regionmarker.verification.judging import check_encoder

    marker = RegionMarker.load(key, passphrase=phrase, secret_file=secret_file)
    check_tenant(marker, tenant)
    if "key_" in vars(marker):  # a serving key has no texts to check the encoder with
        check_encoder(marker.key_, encoder)
    return marker


def _key_id(marker: RegionMarker) -> str:
    return marker.key_.id if "key_" in vars(marker) else marker.serving_.id
