"""``regionmarker keygen``: make a key from a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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


def keygen(
    corpus: Corpus,
    out: Annotated[Path, typer.Option(help="The key file to write.")],
    encoder: EncoderSpec = None,
    text_column: TextColumn = None,
    embedding_column: EmbeddingColumn = None,
    dimension: Annotated[int, typer.Option(help="Number of hyperplanes d; they cut 2^d regions.")] = 4,
    ratio: Annotated[float, typer.Option(help="Share of regions with the provider's mark.")] = 0.2,
    tenant_ratio: Annotated[float, typer.Option(help="Share of regions with the tenant's own mark; 0 for none.")] = 0.2,
    strength: Annotated[float, typer.Option(help="Weight of the target in a marked vector.")] = 0.2,
    reducer: Annotated[str, typer.Option(help="pca, svd, autoencoder, umap or none.")] = "pca",
    subspace: Annotated[int | None, typer.Option(help="Draw the hyperplanes inside the top k components.")] = None,
    pool: Annotated[int, typer.Option(help="Texts kept as possible targets.")] = 1024,
    reservoir: Annotated[int, typer.Option(help="Texts kept as probes.")] = 4096,
    level: Annotated[float, typer.Option(help="False-positive rate of a verdict with this key.")] = 1e-3,
    grid: Annotated[
        str | None, typer.Option(help="float16, bfloat16 or float32; default: found in the corpus.")
    ] = None,
    normalise: Annotated[bool, typer.Option(help="Accept embeddings of any length and scale them.")] = False,
    cache: EmbeddingCache = None,
    seed: Annotated[int | None, typer.Option(help="Make a TEST key, which production refuses.")] = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Make a secret key from a corpus.

    Example: regionmarker keygen --corpus texts.parquet --encoder wordllama --out provider.rmkey
    """
    from regionmarker.marking.marker import RegionMarker

    check_new(out, force)
    check_folder(out)
    phrase = new_passphrase(ask_passphrase, secret_file)
    marker = RegionMarker(
        dimension=dimension, ratio=ratio, strength=strength, reducer=reducer, subspace=subspace, seed=seed,
        tenant_ratio=tenant_ratio, pool=pool, reservoir=reservoir, level=level, grid=grid, normalise=normalise,
    )  # fmt: skip
    loaded = open_encoder(encoder, cache)
    name = loaded.name if loaded is not None else "precomputed"
    with progress("reading", quiet=json) as drawn:
        blocks = read_corpus(corpus, loaded, text_column, embedding_column, on_texts=drawn.advance)
        marker.fit_blocks(blocks, encoder_name=name)
    made = marker.save(out, passphrase=phrase, secret_file=secret_file, overwrite=force)
    facts = {"key_file": str(out), "secret_file": None if made is None else str(made), **marker.key_.describe()}
    print_result(facts, as_json=json, title="A new key")
    if made is not None and not json:
        stderr.print(f"\nThe key opens with {made}. Keep the two apart: whoever has both has the mark.")
