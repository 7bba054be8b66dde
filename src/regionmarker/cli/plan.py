"""``regionmarker plan``: which settings, and would a thief be caught?"""  # noqa: D400

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    from regionmarker.planning import Plan
    from regionmarker.planning.search import Outcome

_TRIALS, _PLAN, _FIGURE = "trials.jsonl", "plan.json", "plan.svg"


def plan(
    corpus: Corpus,
    encoder: EncoderSpec = None,
    text_column: TextColumn = None,
    embedding_column: EmbeddingColumn = None,
    utility_loss: Annotated[
        float, typer.Option(help="Share of a text's ten nearest neighbours that marking may change, on average.")
    ] = 0.1,
    fidelity: Annotated[float, typer.Option(help="The thief to be caught: mean cosine to what it was served.")] = 0.8,
    query_share: Annotated[float, typer.Option(help="The share of the corpus that this thief asks.")] = 0.5,
    level: Annotated[float, typer.Option(help="False-positive rate of a verdict.")] = 1e-3,
    dimension: Annotated[list[int] | None, typer.Option(help="A dimension to try; may be repeated.")] = None,
    ratio: Annotated[list[float] | None, typer.Option(help="A ratio to try; may be repeated.")] = None,
    strength: Annotated[list[float] | None, typer.Option(help="A strength to try; may be repeated.")] = None,
    subspace: Annotated[
        list[int] | None,
        typer.Option(help="A subspace to try; may be repeated; the first is combined with all other settings."),
    ] = None,
    keys: Annotated[int, typer.Option(help="Keys per choice of settings.")] = 3,
    confirm: Annotated[int, typer.Option(help="Fresh keys for the recommended settings.")] = 12,
    cache: EmbeddingCache = None,
    seed: Annotated[int, typer.Option(help="Decides everything that is drawn.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for the plan, its curves and the trials; a second run continues the first."),
    ] = None,
    json: Json = False,
) -> None:
    """Recommend settings for a key from simulated thieves on your own texts, before the first vector is marked.

    Example: regionmarker plan --corpus texts.parquet --encoder wordllama --fidelity 0.8 --out plan
    """
    from regionmarker.corpus import TextSet
    from regionmarker.planning import Choices, Goals, PlanningCorpus
    from regionmarker.planning import plan as make

    goals = Goals(utility_loss, fidelity, query_share, level)
    usual = Choices()
    choices = Choices(
        tuple(dimension or usual.dimensions),
        tuple(ratio or usual.ratios),
        tuple(strength or usual.strengths),
        tuple(subspace or usual.subspaces),
    )
    folder = _folder(out)
    texts = TextSet.of_blocks(read_corpus(corpus, open_encoder(encoder, cache), text_column, embedding_column))
    divided = PlanningCorpus(texts.texts, texts.embeddings, query_share=query_share, seed=seed)
    with progress("trials", quiet=json) as drawn:
        found = make(
            divided,
            goals,
            choices,
            keys=keys,
            confirm=confirm,
            store=None if folder is None else folder / _TRIALS,
            progress=drawn.update,
        )
    if folder is not None:
        _save(found, folder)
    if json:
        print_result(found.to_dict(), as_json=True)
    else:
        _show(found)


def _folder(out: Path | None) -> Path | None:
    if out is not None:
        try:
            out.mkdir(exist_ok=True)
        except OSError as error:
            raise OutsideError(f"cannot make the folder {out}: {error.strerror}") from None
    return out


def _save(found: Plan, folder: Path) -> None:
    from regionmarker.files import atomic_path

    with atomic_path(folder / _PLAN) as temporary:
        temporary.write_text(jsonlib.dumps(found.to_dict(), indent=1) + "\n", encoding="utf-8")
    try:
        from regionmarker.planning import draw_plan
    except ImportError as error:  # the picture is a courtesy
        stderr.print(f"no picture: {error}")
        return
    with atomic_path(folder / _FIGURE) as temporary:
        draw_plan(temporary, found)


def _show(found: Plan) -> None:
    _print_outcomes("Settings against the wanted thief", found.tried)
    goals, best = found.goals, found.recommended
    if best is None and all(one.failed for one in found.tried):
        stderr.print(f"\nNone of these keys can be made from this corpus: {found.tried[0].failed}")
        return
    if best is None:
        stderr.print(
            f"\nNo settings cost at most {goals.utility_loss:.0%} of the nearest neighbours: allow more with "
            "--utility-loss, or try smaller ones with --strength or --ratio."
        )
        return
    _print_outcomes("The recommended settings against worse thieves", found.by_fidelity)
    _print_outcomes("The recommended settings against thieves that ask less", found.by_queries)
    low, high = found.interval
    print_result(
        {
            "recommended": str(best.candidate),
            "would_you_catch_it": "yes" if found.catches else "not reliably",
            "caught": f"{best.caught:.0%} of {best.trials} fresh keys (95 % interval {low:.0%} to {high:.0%})",
            "level": f"p <= {goals.level:g}",
            "innocents_convicted": f"{found.innocents:.2%} of target draws, on a copy of unmarked vectors",
            "neighbours_changed": f"{best.utility_loss:.1%} (allowed {goals.utility_loss:.1%})",
            "mean_cosine": f"{best.cosine:.4f}",
            "thief": f"fidelity {best.fidelity:.2f}, {best.queries} texts asked; {found.thief}",
        },
        as_json=False,
        title="\nPlan",
    )


def _print_outcomes(title: str, outcomes: tuple[Outcome, ...]) -> None:
    headings = ("d", "ratio", "strength", "k", "fidelity", "asked", "changed", "signal", "caught")
    print_table(headings, [_cells(one) for one in outcomes], title=title, right=True, console=stderr)


def _cells(outcome: Outcome) -> tuple[str, ...]:
    chosen = outcome.candidate
    settings = (str(chosen.dimension), f"{chosen.ratio:g}", f"{chosen.strength:g}", str(chosen.subspace))
    if outcome.failed:
        return (*settings, "", "", "", "", "no such key")
    error = f" ± {outcome.error:.1f}" if outcome.error == outcome.error else ""  # one trial has no error
    return (
        *settings,
        f"{outcome.fidelity:.2f}",
        str(outcome.queries),
        f"{outcome.utility_loss:.1%}",
        f"{outcome.signal:.1f}{error}",
        f"{outcome.caught:.0%} of {outcome.trials}",
    )
