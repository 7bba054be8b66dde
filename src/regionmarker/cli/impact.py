"""``regionmarker impact``: what switching the mark on would do to the provider's own texts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from regionmarker.cli.asking import DryRun, Price, check_price, print_quote, quote_corpus
from regionmarker.cli.options import (
    AskPassphrase,
    Corpus,
    EmbeddingCache,
    EmbeddingColumn,
    Json,
    KeyPath,
    SecretFile,
    TextColumn,
    check_tenant,
    open_encoder,
    passphrase,
    read_corpus,
)
from regionmarker.cli.output import print_result, progress, stderr

_MOST = 5000


def impact(
    key: KeyPath,
    corpus: Corpus,
    encoder: Annotated[
        str | None,
        typer.Option(help="The clean encoder; checked against the key. Without it, no retrieval is measured."),
    ] = None,
    text_column: TextColumn = None,
    embedding_column: EmbeddingColumn = None,
    tenant: Annotated[str, typer.Option(help="Whose vectors these would be; adds the tenant's own mark.")] = "",
    most: Annotated[int, typer.Option(min=1, help="How many texts to look at: the first of the corpus.")] = _MOST,
    cache: EmbeddingCache = None,
    dry_run: DryRun = False,
    price_per_million: Price = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Measure what marking would do to neighbours and retrieval on your own texts, before you switch it on.

    Example: regionmarker impact --key provider.rmkey --corpus texts.parquet --encoder wordllama
    """
    from regionmarker.corpus import TextSet
    from regionmarker.impact import measure_impact, texts_to_embed
    from regionmarker.marking.marker import RegionMarker
    from regionmarker.verification.judging import check_encoder

    check_price(price_per_million, dry_run=dry_run)
    marker = RegionMarker.load(key, passphrase=passphrase(ask_passphrase), secret_file=secret_file)
    check_tenant(marker, tenant)
    loaded = open_encoder(encoder, cache)
    if dry_run:
        cost = quote_corpus(corpus, loaded, text_column, lambda texts: texts_to_embed(texts[:most]))
        print_quote(cost, price_per_million, as_json=json, before={"encoder": encoder})
        return
    if loaded is not None and "key_" in vars(marker):  # a serving key has no texts to check it with
        check_encoder(marker.key_, loaded)
    with progress("embedding", most, quiet=json) as drawn:
        blocks = read_corpus(corpus, loaded, text_column, embedding_column, most=most, on_texts=drawn.advance)
        texts = TextSet.of_blocks(blocks)
    found = measure_impact(marker, texts.texts, texts.embeddings, tenant=tenant, encoder=loaded)
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


def _rounded(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value
