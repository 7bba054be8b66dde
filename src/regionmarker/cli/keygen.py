"""``regionmarker keygen``: make a key from a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from regionmarker.cli.describe import describe_key
from regionmarker.cli.options import AskPassphrase, Force, Json, SecretFile, passphrase
from regionmarker.cli.output import print_result, progress, stderr
from regionmarker.errors import InputError
from regionmarker.vectors import Encoder, Floats


def keygen(
    corpus: Annotated[
        Path, typer.Option(help="Texts like those customers send: .txt, .jsonl, .csv, .parquet, or a folder of them.")
    ],
    out: Annotated[Path, typer.Option(help="The key file to write.")],
    encoder: Annotated[
        str | None, typer.Option(help="Encoder spec; not needed where the corpus has an embedding column.")
    ] = None,
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
    cache: Annotated[
        Path | None, typer.Option(help="SQLite file in which embeddings are kept, so that none is paid for twice.")
    ] = None,
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

    if out.exists() and not force:
        raise InputError(f"{out} exists already: choose another name, or use --force")
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: the folder {out.parent} does not exist")
    phrase = passphrase(ask_passphrase, confirm=True)
    marker = RegionMarker(
        dimension=dimension, ratio=ratio, strength=strength, reducer=reducer, subspace=subspace, seed=seed,
        tenant_ratio=tenant_ratio, pool=pool, reservoir=reservoir, level=level, grid=grid, normalise=normalise,
    )  # fmt: skip
    loaded = _load_encoder(encoder, cache)
    name = loaded.name if loaded is not None else "precomputed"
    with progress("reading", quiet=json) as drawn:
        marker.fit_blocks(_blocks(corpus, loaded, on_texts=drawn.advance), encoder_name=name)
    made = marker.save(out, passphrase=phrase, secret_file=secret_file, overwrite=force)
    facts = {"key_file": str(out), "secret_file": None if made is None else str(made), **describe_key(marker.key_)}
    print_result(facts, as_json=json, title="A new key")
    if made is not None and not json:
        stderr.print(f"\nThe key opens with {made}. Keep the two apart: who has both has the mark.")


def _load_encoder(spec: str | None, cache: Path | None) -> Encoder | None:
    if spec is None:
        if cache is not None:
            raise InputError("--cache goes with --encoder")
        return None
    from regionmarker.encoders import CachedEncoder, load_encoder

    encoder = load_encoder(spec)
    return encoder if cache is None else CachedEncoder(encoder, cache)


def _blocks(
    corpus: Path, encoder: Encoder | None, on_texts: Callable[[int], None]
) -> Iterator[tuple[list[str], Floats]]:
    from regionmarker.corpus import read_blocks

    for texts, embeddings in read_blocks(corpus):
        on_texts(len(texts))
        if encoder is not None:
            yield texts, encoder.encode(texts)
        elif embeddings is not None:
            yield texts, embeddings
        else:
            raise InputError(f"{corpus} has no embedding column: give --encoder, for example --encoder wordllama")
