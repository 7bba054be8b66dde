"""``regionmarker bench``: run grids, collect and sum up their rows, make tables, figures and a page; paraphrase."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from regionmarker.cli.options import Json
from regionmarker.cli.output import print_result, print_table, progress, stderr
from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.benchmark.tables import Table

Writer = Callable[[list[dict[str, Any]], Path], list[Path]]

_WIDE = 120
"""The columns from which on a terminal gets whole tables."""

app = typer.Typer(no_args_is_help=True, help="The benchmark: defenses against attacks, from grid file to page.")

Source = Annotated[
    Path,
    typer.Argument(metavar="RESULTS", help="The output folder of bench run, or a file of bench collect.",
                   show_default=False),
]  # fmt: skip
Out = Annotated[
    Path | None,
    typer.Option(help="Where to write; default: a folder of that name in RESULTS.", show_default=False),
]


@app.command()
def run(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="A grid file (TOML).", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder for the results; a stopped run continues there.")],
    engine: Annotated[str, typer.Option(help="Who computes: processes, or here (this process).")] = "processes",
    workers: Annotated[int | None, typer.Option(help="How many workers; default: one per processor.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The folder of the corpora; default: REGIONMARKER_DATA.")
    ] = None,
    encoder: Annotated[
        list[str] | None, typer.Option(help="NAME=SPEC: what to load for an encoder that the grid names.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Compute failed cells again.")] = False,
    json: Json = False,
) -> None:
    """Compute every cell of a grid that is not in the output folder yet.

    Example: regionmarker bench run studies/grids/smoke.toml --out out/smoke
    """
    from regionmarker.benchmark.grid import Grid, run_grid

    cells = Grid.read(grid).with_encoders(_named(encoder or []))
    with progress("cells", len(cells.cells), quiet=json) as drawn:
        summary = run_grid(
            cells, out, data_dir=data_dir, engine=engine, workers=workers or os.cpu_count() or 1, retry=retry,
            say=lambda words: None if json else stderr.print(words), tick=drawn.part("cells"),
            embedded=drawn.part("texts"),
        )  # fmt: skip
    print_result({**vars(summary), "results": str(summary.results)}, as_json=json)


def _named(given: list[str]) -> dict[str, str]:
    """Read NAME=SPEC options."""
    found = {}
    for entry in given:
        name, equals, spec = entry.partition("=")
        if not (name and equals and spec):
            raise InputError(f"--encoder {entry!r}: write NAME=SPEC, such as minilm=sentence-transformers:FOLDER")
        found[name] = spec
    return found


@app.command()
def collect(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS...", help="Output folders of bench run, and files of bench collect.",
                       show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="The file to write (.parquet).")],
    json: Json = False,
) -> None:  # fmt: skip
    """Put the rows of several grids into one file: each cell once, checked against the schema, in a fixed order.

    Where folders hold a cell that was computed from different inputs, the one named first counts.

    Example: regionmarker bench collect out/smoke --out results.parquet
    """
    from regionmarker.benchmark.tables.results_file import collect as merge
    from regionmarker.benchmark.tables.results_file import write_results

    if out.suffix != ".parquet":
        raise InputError(f"--out {out} must end in .parquet")
    found = merge(sources)
    if not found.rows:
        raise InputError(f"{sources[0]} holds no finished cell yet: let regionmarker bench run finish some")
    write_results(found.rows, out)
    failed = sum(row["error"] is not None for row in found.rows)
    print_result(
        {"cells": len(found.rows), "failed": failed, "not_computed_yet": found.missing, "replaced": found.replaced,
         "output": str(out)},
        as_json=json,
    )  # fmt: skip


@app.command()
def summary(
    source: Source,
    by: Annotated[
        str, typer.Option(help="Columns that lines are kept apart by.")
    ] = "defense,provider,stealer,queries,attack",
    where: Annotated[
        list[str] | None, typer.Option(help="COLUMN=VALUE: these rows alone; the same column twice: either.")
    ] = None,
    level: Annotated[float, typer.Option(help="A copy is caught where p is at most this.")] = 1e-3,
    json: Json = False,
) -> None:
    """Sum up copies caught, with intervals, blameless suspects beside them, p-values and what marking costs.

    Example: regionmarker bench summary out/smoke --by attack --where scheme=wet
    """
    from regionmarker.benchmark.tables.results import without_seeds
    from regionmarker.benchmark.tables.summary import BRIEF, HEADS, Tally, chosen, groups
    from regionmarker.benchmark.tables.summary import summary as tables_of

    if not 0 < level < 1:
        raise InputError(f"--level must lie between 0 and 1, but is {level:g}")
    columns = [name.strip() for name in by.split(",") if name.strip()]
    if not columns:
        raise InputError("--by names no column: give some, such as defense,attack")
    rows = chosen(without_seeds(_rows(source)), _wanted(where or []))
    if json:
        lines = [
            {**dict(zip(columns, key, strict=True)), **Tally(some, level).numbers()}
            for key, some in groups(rows, columns).items()
        ]
        print_result({"level": level, "lines": lines}, as_json=True)
        return
    tables = list(tables_of(rows, columns, level))
    if not tables:
        raise InputError(f"no row of {source} that a stealer made is left: look at --where")
    for table in tables:
        _print(table, set(HEADS) - set(BRIEF))
        stderr.print(table.note)


def _print(table: Table, details: Collection[str]) -> None:
    """Print a table; a narrow terminal gets it without its details, a file all of it on lines of any length."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=1000)
    elif console.width < _WIDE and details:
        table = table.without(*details)
        stderr.print(f"left out for want of room: {', '.join(sorted(details))}; all on {_WIDE} columns, or with --json")
    print_table(table.columns, table.rows, console=console)


def _wanted(given: list[str]) -> dict[str, list[str]]:
    """Read COLUMN=VALUE options."""
    found: dict[str, list[str]] = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        if not (name and equals):
            raise InputError(f"--where {entry!r}: write COLUMN=VALUE, such as attack=cse")
        found.setdefault(name, []).append(value)
    return found


@app.command()
def table(source: Source, out: Out = None, json: Json = False) -> None:
    """Print the leaderboard, and write every table that the results allow, the paper's numbers beside ours.

    Tables are Markdown, LaTeX and CSV. Of one defense there is no leaderboard.

    Example: regionmarker bench table out/smoke
    """
    from regionmarker.benchmark.tables import make_tables, write_tables
    from regionmarker.benchmark.tables.leaderboard import BRIEF

    rows, out = _rows(source), out or _beside(source, "tables")
    files = write_tables(rows, out)
    board = next((found for found in make_tables(rows) if found.name == "leaderboard"), None)
    if json:
        lines = [] if board is None else [dict(zip(board.columns, line, strict=True)) for line in board.rows]
        _told(rows, out, files, leaderboard=lines)
        return
    if board is None:
        stderr.print(f"no leaderboard: the results have no two defenses after the same attacks; "
                     f"regionmarker bench summary {source} sums up")  # fmt: skip
    else:
        _print(board, set(board.columns) - set(BRIEF))
        stderr.print(board.note)
    stderr.print(f"{len(files)} files in {out}; begin with {out / 'tables.md'}")


def _told(rows: list[dict[str, Any]], out: Path, files: list[Path], **more: object) -> None:
    names = [file.name for file in files]
    print_result({"cells": len(rows), "output": str(out), "files": names, **more}, as_json=True)


@app.command()
def figures(source: Source, out: Out = None, json: Json = False) -> None:
    """Draw every figure that the results allow, as SVG.

    Example: regionmarker bench figures out/smoke
    """
    from regionmarker.benchmark.figures import write_figures

    _write(source, out or _beside(source, "figures"), json, write_figures)


@app.command()
def page(source: Source, out: Out = None, json: Json = False) -> None:
    """Write one page with all tables, figures and cells, to be opened in a browser; it needs no network.

    Example: regionmarker bench page out/smoke
    """
    from regionmarker.benchmark.page import write_page

    _write(source, out or _beside(source, "page"), json, write_page)


def _beside(source: Path, name: str) -> Path:
    return (source if source.is_dir() else source.parent) / name


def _rows(source: Path) -> list[dict[str, Any]]:
    from regionmarker.benchmark.tables.results_file import read_results

    rows = read_results(source).rows
    if not rows:
        raise InputError(f"{source} holds no finished cell yet: let regionmarker bench run finish some")
    return rows


def _write(source: Path, out: Path, json: bool, write: Writer) -> None:
    rows = _rows(source)
    files = write(rows, out)
    if json:
        _told(rows, out, files)
    else:
        print_result({"cells": len(rows), "files": len(files), "output": str(out)}, as_json=False)


@app.command()
def paraphrase(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="A corpus by name, or a file of texts.", show_default=False)
    ],
    by: Annotated[str, typer.Option(help="The paraphraser, such as marian:FOLDER,FOLDER or chat:URL#MODEL.")],
    out: Annotated[Path, typer.Option(help="The table to write (.parquet); a stopped run continues there.")],
    most: Annotated[int, typer.Option(help="Different paraphrases of each text at the most.")] = 5,
    limit: Annotated[int | None, typer.Option(help="Texts at the most.")] = None,
    provider: Annotated[
        str | None, typer.Option(help="stored:NAME: the texts that it has vectors of; grids buy these.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Measures how near each paraphrase is to its text.")] = None,
    floor: Annotated[float, typer.Option(help="The cosine from which on a paraphrase passes.")] = 0.8,
    data_dir: Annotated[
        Path | None, typer.Option(help="The folder of the corpora; default: REGIONMARKER_DATA.")
    ] = None,
    json: Json = False,
) -> None:
    """Paraphrase the texts of a corpus once, for any number of runs: paraphrase:table:FILE in a grid.

    Example: regionmarker bench paraphrase python --by apertium:spa,cat --limit 100 --out paraphrases.parquet
    """
    from dataclasses import asdict

    from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser
    from regionmarker.benchmark.attacks.paraphrasers.paraphrase_file import keep_paraphrases
    from regionmarker.benchmark.corpora import texts_for_sale
    from regionmarker.encoders import load_encoder

    if out.suffix != ".parquet":
        raise InputError(f"--out {out} must end in .parquet")
    if most < 1 or (limit is not None and limit < 1) or not -1 <= floor <= 1:
        raise InputError("--most and --limit must be at least 1, and --floor a cosine")
    paraphraser = load_paraphraser(by)
    measure = None if encoder is None else load_encoder(encoder)
    texts = texts_for_sale(corpus, provider, data_dir)[:limit]
    with progress("texts", len(texts), quiet=json) as drawn:
        kept = keep_paraphrases(out, paraphraser, texts, most, encoder=measure, floor=floor, progress=drawn.update)
    found = {name: None if value != value else value for name, value in asdict(kept).items()}
    print_result({**found, "output": str(out)}, as_json=json)


@app.command("list")
def list_parts(json: Json = False) -> None:
    """Name the corpora, defenses, attacks, paraphrasers, stealers and encoders that a grid may use.

    Example: regionmarker bench list
    """
    from regionmarker.benchmark.attacks import known_attacks
    from regionmarker.benchmark.attacks.paraphrasers import PARAPHRASERS
    from regionmarker.benchmark.corpora import NAMES
    from regionmarker.benchmark.defenses import known_defenses
    from regionmarker.benchmark.stealers import known_stealers
    from regionmarker.encoders import known_encoders

    print_result(
        {
            "corpora": NAMES,
            "defenses": known_defenses(),
            "attacks": known_attacks(),
            "paraphrasers": PARAPHRASERS.known(),
            "stealers": known_stealers(),
            "encoders": known_encoders(),
        },
        as_json=json,
    )
