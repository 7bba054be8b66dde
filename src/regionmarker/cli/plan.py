"""``regionmarker plan``: how many neighbours to keep, and would a thief be caught?"""  # noqa: D400

from __future__ import annotations

import json as jsonlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.cli.asking import DryRun, Price, check_price, print_quote, quote_corpus
from regionmarker.cli.options import (
    Corpus,
    EmbeddingCache,
    EmbeddingColumn,
    EncoderSpec,
    Json,
    TextColumn,
    open_encoder,
    read_corpus,
)
from regionmarker.cli.output import print_result, print_table, progress, stderr
from regionmarker.errors import OutsideError

if TYPE_CHECKING:
    from regionmarker.planning import Outcome, Plan, PlanningCorpus
    from regionmarker.vectors import Encoder
    from regionmarker.verification.power import CaughtShare

_TRIALS, _PLAN, _FIGURE = "trials.jsonl", "plan.json", "plan.svg"


def plan(
    corpus: Corpus,
    encoder: EncoderSpec = None,
    text_column: TextColumn = None,
    embedding_column: EmbeddingColumn = None,
    fidelity: Annotated[
        float, typer.Option(help="The thief to be caught: mean cosine to the clean vectors, both centred.")
    ] = 0.7,
    queries: Annotated[
        int | None,
        typer.Option(help="Texts that this thief buys; default: half the corpus, at most 4,000.", show_default=False),
    ] = None,
    budget: Annotated[int, typer.Option(help="Texts that a verdict asks.")] = 3000,
    level: Annotated[float, typer.Option(help="False-positive rate of a verdict.")] = 1e-3,
    kept: Annotated[
        list[float] | None,
        typer.Option(
            help="A share of neighbours to keep; may be repeated; default: 0.97, 0.95, 0.93, 0.90.", show_default=False
        ),
    ] = None,
    tenants: Annotated[
        bool | None, typer.Option(help="Only keys with marks for tenants, or only without; default: both.")
    ] = None,
    cache: EmbeddingCache = None,
    dry_run: DryRun = False,
    price_per_million: Price = None,
    seed: Annotated[int, typer.Option(help="Decides everything that is drawn.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for the plan, its picture and the trials; a second run continues the first."),
    ] = None,
    json: Json = False,
) -> None:
    """Say what a verdict would catch for each share of neighbours kept, before the first vector is marked.

    Simulated thieves of the fidelity that you name copy your own texts. The keygen line that follows is printed.

    Example: regionmarker plan --corpus texts.parquet --encoder wordllama --fidelity 0.7 --out plan
    """
    from regionmarker.planning import Choices, Goals
    from regionmarker.planning import plan as make
    from regionmarker.planning.trials import choose

    check_price(price_per_million, dry_run=dry_run)
    goals, usual = Goals(fidelity, budget, level), Choices()
    choices = Choices(tuple(kept or usual.kept), usual.tenants if tenants is None else (tenants,))
    loaded = open_encoder(encoder, cache)
    if dry_run:
        cost = quote_corpus(
            corpus, loaded, text_column, lambda texts: [texts[row] for row in choose(texts, queries, seed)[0]]
        )
        print_quote(cost, price_per_million, as_json=json, before={"encoder": encoder})
        return
    folder = _folder(out)
    divided = _divided(corpus, loaded, text_column, embedding_column, queries, seed, quiet=json)
    with progress("trials", quiet=json) as drawn:
        store = None if folder is None else folder / _TRIALS
        found = make(divided, goals, choices, store=store, progress=drawn.update)
    columns = {"--text-column": text_column, "--embedding-column": embedding_column}
    line = keygen_line(found, corpus, encoder, columns, level)
    document = {**found.to_dict(), "keygen": line}
    if folder is not None:
        _save(found, document, folder)
    if json:
        print_result(document, as_json=True)
    else:
        _show(found, line)


def _divided(
    corpus: Path,
    encoder: Encoder | None,
    text_column: str | None,
    embedding_column: str | None,
    queries: int | None,
    seed: int,
    *,
    quiet: bool,
) -> PlanningCorpus:
    """Divide a corpus; with an encoder, no more texts are embedded than the plan uses."""
    from regionmarker.corpus import TextSet, embed_in_blocks, read_texts
    from regionmarker.planning import PlanningCorpus

    if encoder is None or embedding_column is not None:
        found = TextSet.of_blocks(read_corpus(corpus, encoder, text_column, embedding_column))
        return PlanningCorpus(found.texts, found.embeddings, queries=queries, seed=seed)
    texts = read_texts(corpus, text_column=text_column)
    with progress("embedding", quiet=quiet) as drawn:
        return PlanningCorpus(
            texts, lambda chosen: embed_in_blocks(encoder, chosen, drawn.update), queries=queries, seed=seed
        )


def keygen_line(found: Plan, corpus: Path, encoder: str | None, columns: dict[str, str | None], level: float) -> str:
    """Return the command that makes the recommended key."""
    given: dict[str, object] = {"--corpus": corpus, "--encoder": encoder, **columns}
    named = [word for name, value in given.items() if value is not None for word in (name, shlex.quote(str(value)))]
    strict = [] if level == 1e-3 else ["--level", f"{level:g}"]
    words = ["regionmarker", "keygen", *named, found.recommended.choice.options, *strict, "--out", "provider.rmkey"]
    return " ".join(words)


def _folder(out: Path | None) -> Path | None:
    if out is not None:
        try:
            out.mkdir(exist_ok=True)
        except OSError as error:
            raise OutsideError(f"cannot make the folder {out}: {error.strerror}") from None
    return out


def _save(found: Plan, document: dict[str, object], folder: Path) -> None:
    from regionmarker.files import atomic_path

    with atomic_path(folder / _PLAN) as temporary:
        temporary.write_text(jsonlib.dumps(document, indent=1) + "\n", encoding="utf-8")
    try:
        from regionmarker.planning import draw_plan
    except ImportError as error:  # the picture is a courtesy
        stderr.print(f"no picture: {error}")
        return
    with atomic_path(folder / _FIGURE) as temporary:
        draw_plan(temporary, found)


_ANSWERS = {
    "both": "yes, rotated or not",
    "unrotated": "yes, unless it rotates its copy",
    "neither": "not reliably",
}


def _show(found: Plan, line: str) -> None:
    goals, best = found.goals, found.recommended
    headings = ("kept", "tenants", "strength", "caught", "95 % interval", "rotated", "95 % interval")
    title = f"Copies of fidelity {found.fidelity:.2f} that a verdict catches at p <= {goals.level:g}"
    print_table(headings, [_cells(one) for one in found.outcomes], title=title, right=True, console=stderr)
    if not found.met:
        reached = sorted({f"{found.lowest_fidelity:.2f}", f"{found.highest_fidelity:.2f}"})
        stderr.print(
            f"\nFidelity {goals.fidelity:g} could not be met: from {found.queries} queries the simulated thieves reach "
            f"{' to '.join(reached)}, and this is what the table is about. Give more with --queries, or a larger "
            "corpus."
        )
    print_result(
        {
            "recommended": str(best.choice),
            "would_you_catch_it": _ANSWERS[found.catches],
            "caught": _by_kind(best, "unrotated"),
            "caught_if_rotated": _by_kind(best, "rotated"),
            "thief": f"fidelity {found.fidelity:.2f} ({found.plain_fidelity:.2f} before centring), buys from "
            f"{found.queries} texts",
            "verdict": f"asks {found.asked} texts, level {goals.level:g}",
            "rests_on": f"{found.sets} simulated thieves, half of them networks, half linear; wanted are "
            f"{goals.power:.0%}, by the lower end of the worse kind",
        },
        as_json=False,
        title="\nPlan",
    )
    typer.echo(f"\nThe key that follows from it:\n\n  {line}")  # one line: a broken command cannot be copied


def _by_kind(outcome: Outcome, name: str) -> str:
    shares = {kind: found[name] for kind, found in outcome.by_kind.items()}
    return "; ".join(f"{kind} copies {share.detected:.0%} ({_interval(share)})" for kind, share in shares.items())


def _interval(share: CaughtShare) -> str:
    return f"{share.low:.0%} to {share.high:.0%}"


def _cells(outcome: Outcome) -> tuple[str, ...]:
    choice, plain, rotated = outcome.choice, outcome.unrotated, outcome.rotated
    return (
        f"{choice.kept:g}",
        "on" if choice.tenants else "off",
        f"{outcome.strength:.3f}",
        f"{plain.detected:.0%}",
        _interval(plain),
        f"{rotated.detected:.0%}",
        _interval(rotated),
    )
