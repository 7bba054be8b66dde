"""``regionmarker bench``: run a grid, make its tables, figures and page; paraphrase a corpus."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from regionmarker.cli.options import Json
from regionmarker.cli.output import print_result, progress, stderr
from regionmarker.errors import InputError

Writer = Callable[[list[dict[str, Any]], Path], list[Path]]

app = typer.Typer(no_args_is_help=True, help="The benchmark: defenses against attacks, from grid file to page.")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The output folder of bench run.", show_default=False)]
Out = Annotated[
    Path | None, typer.Option(help="Where to write; default: a folder of that name in DIR.", show_default=False)
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
            say=lambda words: None if json else stderr.print(words), tick=drawn.update,
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
def table(folder: Folder, out: Out = None, json: Json = False) -> None:
    """Write every table that the results allow, as Markdown, LaTeX and CSV, the paper's numbers beside ours.

    Example: regionmarker bench table out/smoke
    """
    from regionmarker.benchmark.tables import write_tables

    _write(folder, out or folder / "tables", json, write_tables)


@app.command()
def figures(folder: Folder, out: Out = None, json: Json = False) -> None:
    """Draw every figure that the results allow, as SVG.

    Example: regionmarker bench figures out/smoke
    """
    from regionmarker.benchmark.figures import write_figures

    _write(folder, out or folder / "figures", json, write_figures)


@app.command()
def page(folder: Folder, out: Out = None, json: Json = False) -> None:
    """Write one page with all tables, figures and cells, to be opened in a browser; it needs no network.

    Example: regionmarker bench page out/smoke
    """
    from regionmarker.benchmark.page import write_page

    _write(folder, out or folder / "page", json, write_page)


def _write(folder: Path, out: Path, json: bool, write: Writer) -> None:
    from regionmarker.benchmark.grid import Store

    rows = Store.reading(folder).rows()
    if not rows:
        raise InputError(f"{folder} holds no finished cell yet: let regionmarker bench run finish some")
    files = write(rows, out)
    print_result({"cells": len(rows), "output": str(out), "files": [file.name for file in files]}, as_json=json)


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
