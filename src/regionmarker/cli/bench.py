"""``regionmarker bench``: run a grid, make its tables, figures and page."""

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


@app.command("list")
def list_parts(json: Json = False) -> None:
    """Name the corpora, defenses, attacks, stealers and encoders that a grid may use.

    Example: regionmarker bench list
    """
    from regionmarker.benchmark.attacks import known_attacks
    from regionmarker.benchmark.corpora import NAMES
    from regionmarker.benchmark.defenses import known_defenses
    from regionmarker.benchmark.stealers import known_stealers
    from regionmarker.encoders import known_encoders

    print_result(
        {
            "corpora": NAMES,
            "defenses": known_defenses(),
            "attacks": known_attacks(),
            "stealers": known_stealers(),
            "encoders": known_encoders(),
        },
        as_json=json,
    )
