"""``regionmarker impact``: what switching the mark on would do to the provider's own texts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.cli.options import AskPassphrase, Json, KeyPath, SecretFile, passphrase
from regionmarker.cli.output import print_result, progress, stderr
from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.marking.marker import RegionMarker
    from regionmarker.vectors import Encoder, Floats

_MOST = 5000


def impact(
    key: KeyPath,
    corpus: Annotated[
        Path, typer.Option(help="Texts like those customers send: .txt, .jsonl, .csv, .parquet, or a folder of them.")
    ],
    encoder: Annotated[
        str | None,
        typer.Option(help="The clean encoder; checked against the key. Without it, no retrieval is measured."),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Whose vectors these would be; adds the tenant's own mark.")] = "",
    most: Annotated[int, typer.Option(help="Texts to look at, at the most; the first of the corpus.")] = _MOST,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Measure what marking would do to neighbours and retrieval on your own texts, before you switch it on.

    Example: regionmarker impact --key provider.rmkey --corpus texts.parquet --encoder wordllama
    """
    from regionmarker.encoders import load_encoder
    from regionmarker.impact import measure_impact
    from regionmarker.marking.marker import RegionMarker

    marker = RegionMarker.load(key, passphrase=passphrase(ask_passphrase), secret_file=secret_file)
    loaded = None if encoder is None else load_encoder(encoder)
    if loaded is not None:
        _check_encoder(marker, loaded)
    texts, clean = _read(corpus, loaded, most, quiet=json)
    found = measure_impact(marker, texts, clean, tenant=tenant, encoder=loaded)
    facts = {"tenant": tenant, **asdict(found)}
    if json:
        print_result(facts, as_json=True)
        return
    retrieval = facts.pop("retrieval")
    print_result({name: _rounded(value) for name, value in facts.items()}, as_json=False, title="What marking would do")
    if retrieval is None:
        stderr.print("\nRetrieval was not measured: it needs --encoder, and texts of at least eight words.")
        return
    rows = {name: _rounded(value) for name, value in retrieval.items()}
    print_result(rows, as_json=False, title="\nRetrieval: does a text's first half find its second? nDCG@10")


def _check_encoder(marker: RegionMarker, encoder: Encoder) -> None:
    """Refuse an encoder that is not the key's; a serving key has no texts to check it with."""
    from regionmarker.verification.verdict import check_encoder

    if "key_" in vars(marker):
        check_encoder(marker.key_, encoder)


def _read(corpus: Path, encoder: Encoder | None, most: int, *, quiet: bool) -> tuple[list[str], Floats]:
    import numpy as np

    from regionmarker.corpus import read_blocks

    texts: list[str] = []
    rows: list[Floats] = []
    with progress("embedding", most, quiet=quiet) as drawn:
        for block, embeddings in read_blocks(corpus):
            taken = block[: most - len(texts)]
            if encoder is None and embeddings is None:
                raise InputError(f"{corpus} has no embedding column: give --encoder, for example --encoder wordllama")
            rows.append(encoder.encode(taken) if encoder is not None else np.asarray(embeddings)[: len(taken)])
            texts += taken
            drawn.advance(len(taken))
            if len(texts) >= most:
                break
    if not texts:
        raise InputError(f"{corpus} holds no texts")
    return texts, np.concatenate(rows)


def _rounded(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value
