"""One page to browse: tables to sort and filter, figures, every cell. It asks nobody for anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from regionmarker._version import __version__
from regionmarker.benchmark.grid.cell import PORTRAIT
from regionmarker.benchmark.tables import make_tables
from regionmarker.benchmark.tables.results import corpus_title, label
from regionmarker.errors import MissingExtraError
from regionmarker.files import write_whole

_CELLS = {
    "corpus": "corpus", "defense": "defense", "attack": "attack", "suspect": "suspect", "seed": "seed",
    "queries": "queries", "fidelity": "fidelity", "decoy_p": "decoy p",
    "published_p": "published p", "published_copy": "called a copy",
    "delta_cos": "Δcos", "served_accuracy": "served accuracy", "stolen_accuracy": "stolen accuracy",
    "overlap": "neighbours kept", "error": "error",
}  # fmt: skip

__all__ = ["render_page", "write_page"]


def render_page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page; the same rows give the same bytes."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError.for_module("jinja2", "report") from None
    from regionmarker.benchmark.figures import make_figures
    from regionmarker.plots import inline

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    cells = [row for row in rows if row["suspect"] != PORTRAIT]
    return environment.from_string(_own("page.html.jinja")).render(
        tables=make_tables(rows),
        figures=[
            (picture.name, picture.caption, Markup(inline(picture.svg, picture.name)))  # noqa: S704 - drawn here
            for picture in make_figures(rows)
        ],
        heads=list(_CELLS.values()),
        cells=[[_shown(row, name) for name in _CELLS] for row in cells],
        corpora=sorted({corpus_title(row["corpus"]) for row in rows}),
        failed=sum(row["error"] is not None for row in rows),
        count=len(rows),
        style=Markup(_own("page.css")),  # noqa: S704 - our own file
        script=Markup(_own("page.js")),  # noqa: S704 - our own file
        version=__version__,
    )


def write_page(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write index.html into a folder; return what was written."""
    html = render_page(rows)
    folder.mkdir(parents=True, exist_ok=True)
    return [write_whole(folder / "index.html", html)]


def _shown(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if name == "defense":
        return label(value)
    if name == "corpus":
        return corpus_title(str(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    return value if isinstance(value, str) else str(value)


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
