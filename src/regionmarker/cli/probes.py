"""``regionmarker probes``: write down the texts to ask, for suspects that can only be reached by hand."""

from __future__ import annotations

import json as jsonlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from regionmarker.cli.asking import DryRun, Price, check_price, print_quote
from regionmarker.cli.options import (
    AskPassphrase,
    Budget,
    Force,
    Json,
    KeyId,
    KeyPath,
    SecretFile,
    check_folder,
    check_new,
    load_ring,
)
from regionmarker.cli.output import print_result, stderr
from regionmarker.errors import InputError

FORMATS = (".jsonl", ".txt", ".parquet")


def probes(
    key: KeyPath,
    out: Annotated[Path, typer.Option(help="The file to write: .jsonl, .txt (one text per line) or .parquet.")],
    key_id: KeyId = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    price_per_million: Price = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the texts of every key of the file, to ask a suspect that can only be reached by hand.

    Example: regionmarker probes --key provider.rmkey --out probes.jsonl
    """
    from regionmarker.verification.questions import Cost, merged_texts, plan_all, plan_questions
    from regionmarker.verification.quote import quote

    check_price(price_per_million, dry_run=dry_run)
    _check_out(out, force)
    ring = load_ring(key, secret_file, ask_passphrase, key_id)
    plan = plan_all if budget is None else lambda one: plan_questions(one, budget)
    texts = merged_texts([plan(one) for one in ring])
    if dry_run:
        found = quote(lambda asked: asked, texts)  # by whatever way: nobody knows yet whom
        print_quote(found, price_per_million, as_json=json, before={"keys": len(ring)})
        return
    write_texts(out, texts)
    cost = Cost.of(texts)
    same = ("" if key_id is None else f" --key-id {key_id}") + ("" if budget is None else f" --budget {budget}")
    then = f"regionmarker verify --key {shlex.quote(str(key))} --suspect file:answers.parquet{same}"
    facts = {
        "output": str(out),
        "keys": len(ring),
        **vars(cost),
        "tokens_are": "estimated: one token per four bytes",
    }
    if json:
        print_result({**facts, "then": then}, as_json=True)
        return
    print_result(facts, as_json=False, title="Texts to ask")
    stderr.print(
        "\nAsk the suspect for the embedding of every text, in any order, and write text and embedding into "
        "answers.parquet (or .jsonl).\nThe file says nothing about the key, but show it to nobody before. Then:\n\n"
        f"  {then}",
        soft_wrap=True,  # a command that is broken into lines cannot be copied
    )


def write_texts(path: Path, texts: Sequence[str]) -> None:
    """Write texts whole or not at all, in the format that the file's name says."""
    from regionmarker.files import atomic_path

    if path.suffix == ".txt" and any("\n" in text or "\r" in text for text in texts):
        raise InputError(f"{path} cannot hold texts with line breaks, and this key has some: write .jsonl instead")
    with atomic_path(path) as temporary:
        if path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), temporary)
            return
        lines = (
            texts if path.suffix == ".txt" else [jsonlib.dumps({"text": text}, ensure_ascii=False) for text in texts]
        )
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _check_out(out: Path, force: bool) -> None:
    if out.suffix not in FORMATS:
        raise InputError(f"{out} must end in {', '.join(FORMATS)}")
    check_new(out, force)
    check_folder(out)
