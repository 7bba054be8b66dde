"""``regionmarker keygen``: make a key from a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regionmarker.cli.asking import DryRun, Price, check_price, print_quote, quote_corpus
from regionmarker.cli.options import (
    AskPassphrase,
    Corpus,
    EmbeddingCache,
    EmbeddingColumn,
    EncoderSpec,
    Force,
    Json,
    SecretFile,
    TextColumn,
    check_folder,
    check_new,
    new_passphrase,
    open_encoder,
    read_corpus,
)
from regionmarker.cli.output import print_result, progress, stderr

if TYPE_CHECKING:
    from regionmarker.corpus import EmbeddedBlock
    from regionmarker.progress import Bar

RESERVOIR = 4096  # marks.graded_settings.RESERVOIR, which would load numpy to print help


def _published(words: str) -> Any:
    """Return an option that makes the published mark."""
    return typer.Option(help=f"{words} (makes the published mark).", show_default=False)


def keygen(
    corpus: Corpus,
    out: Annotated[Path, typer.Option(help="The key file to write.")],
    encoder: EncoderSpec = None,
    text_column: TextColumn = None,
    embedding_column: EmbeddingColumn = None,
    kept: Annotated[
        float | None,
        typer.Option(help="Share of ten nearest neighbours that stays; default: 0.93.", show_default=False),
    ] = None,
    tenants: Annotated[bool, typer.Option(help="Give every tenant a mark of its own beside the provider's.")] = True,
    reservoir: Annotated[
        int | None, typer.Option(help="Texts kept as probes; default: 4,096.", show_default=False)
    ] = None,
    dimension: Annotated[int | None, _published("Number of hyperplanes d; they cut 2^d regions")] = None,
    ratio: Annotated[float | None, _published("Share of regions with the provider's mark")] = None,
    tenant_ratio: Annotated[float | None, _published("Share of regions with the tenant's own mark")] = None,
    strength: Annotated[float | None, _published("Weight of the target in a marked vector")] = None,
    subspace: Annotated[int | None, _published("Draw the hyperplanes inside the top k components")] = None,
    pool: Annotated[int | None, _published("Texts kept as possible targets")] = None,
    reducer: Annotated[
        str, typer.Option(help="pca or svd; of the published mark also autoencoder, umap or none.")
    ] = "pca",
    level: Annotated[float, typer.Option(help="False-positive rate of a verdict with this key.")] = 1e-3,
    grid: Annotated[
        str | None, typer.Option(help="float16, bfloat16 or float32; default: found in the corpus.")
    ] = None,
    normalise: Annotated[bool, typer.Option(help="Accept embeddings of any length and scale them.")] = False,
    cache: EmbeddingCache = None,
    dry_run: DryRun = False,
    price_per_million: Price = None,
    seed: Annotated[int | None, typer.Option(help="Make a TEST key, which production refuses.")] = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Make a secret key from a corpus.

    Say with --kept how many neighbours marking shall leave; the strength is found. A mark begins with a version of the
    model: whoever holds clean and marked vectors of the same texts can remove it.

    Example: regionmarker keygen --corpus texts.parquet --encoder wordllama --kept 0.95 --out provider.rmkey
    """
    from regionmarker.marking.marker import RegionMarker

    check_price(price_per_million, dry_run=dry_run)
    check_new(out, force)
    check_folder(out)
    marker = RegionMarker(
        dimension=dimension, ratio=ratio, strength=strength, reducer=reducer, subspace=subspace, seed=seed, kept=kept,
        tenants=tenants, tenant_ratio=tenant_ratio, pool=pool, reservoir=reservoir, level=level, grid=grid,
        normalise=normalise,
    )  # fmt: skip
    loaded = open_encoder(encoder, cache)
    if dry_run:
        found = quote_corpus(corpus, loaded, text_column)
        print_quote(found, price_per_million, as_json=json, before={"encoder": encoder})
        return
    phrase = new_passphrase(ask_passphrase, secret_file)
    name = loaded.name if loaded is not None else "precomputed"
    with progress("reading", quiet=json) as drawn:
        blocks = read_corpus(corpus, loaded, text_column, embedding_column, on_texts=drawn.advance)
        marker.fit_blocks(_then_search(blocks, drawn), encoder_name=name, progress=drawn.update)
    made = marker.save(out, passphrase=phrase, secret_file=secret_file, overwrite=force)
    facts = {"key_file": str(out), "secret_file": None if made is None else str(made), **marker.key_.describe()}
    print_result(facts, as_json=json, title="A new key")
    if json:
        return
    if made is not None:
        stderr.print(f"\nThe key opens with {made}. Keep the two apart: whoever has both has the mark.")
    if len(marker.key_.reservoir) < (reservoir or RESERVOIR):
        stderr.print(
            f"\nNote: the corpus is small, so this key has {len(marker.key_.reservoir)} probes and "
            f"{len(marker.key_.pool)} candidates. Good copies are still found; poor ones, and copies that were "
            "rotated, may not be: regionmarker plan says what this key would catch."
        )


def _then_search(blocks: Iterator[EmbeddedBlock], drawn: Bar) -> Iterator[EmbeddedBlock]:
    """Yield the blocks; after the last, the bar counts the search for the strength."""
    yield from blocks
    drawn.note("finding the strength")
