"""``regionmarker demo``: the main job on the embedded encoder and corpus, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from regionmarker.cli.console import answer, people
from regionmarker.cli.options import Json
from regionmarker.errors import MissingExtraError

_TEXTS = 8000


def demo(
    out: Annotated[Path, typer.Option(help="Where the key, the marked vectors and the picture go.")] = Path(
        "regionmarker-demo"
    ),
    json: Json = False,
) -> None:
    """Make a key from Python's own documentation, mark it, and show what marking did.

    Example: regionmarker demo --out out/demo
    """
    from regionmarker.benchmark.utility import neighbour_overlap, row_cosines
    from regionmarker.encoders import load_encoder
    from regionmarker.marking.marker import RegionMarker
    from regionmarker.standard_library import python_sentences

    out.mkdir(parents=True, exist_ok=True)
    _say(json, "reading the documentation of Python's standard library ...")
    texts = python_sentences(_TEXTS)
    _say(json, f"embedding {len(texts)} sentences with WordLlama ...")
    embeddings = load_encoder("wordllama").encode(texts)
    _say(json, "making a key and marking ...")
    marker = RegionMarker().fit(texts, embeddings=embeddings)
    made = marker.save(out / "demo.rmkey", overwrite=True)
    served = marker.transform(embeddings)
    regions = marker.regions(embeddings)
    marked = np.isin(regions, marker.key_.regions)
    cosines, overlap = row_cosines(embeddings, served), neighbour_overlap(embeddings, served)
    facts: dict[str, Any] = {
        "texts": len(texts),
        "width": embeddings.shape[1],
        "marked_share": round(float(marked.mean()), 4),
        "mean_cosine_of_marked_rows": round(float(cosines[marked].mean()), 4),
        "mean_cosine_of_other_rows": round(float(cosines[~marked].mean()), 4),
        "ten_nearest_neighbours_kept": round(float(overlap.mean()), 4),
        "key_file": str(out / "demo.rmkey"),
        "secret_file": None if made is None else str(made),
        "picture": _draw(out, marker, regions, overlap, marked),
    }
    if not json:
        _region_table(marker, regions, cosines, overlap)
    answer(facts, as_json=json, title="\nWhat marking did")


def _say(quiet: bool, line: str) -> None:
    if not quiet:
        people.print(line)


def _region_table(marker: Any, regions: Any, cosines: Any, overlap: Any) -> None:
    table = Table(title="Regions (a demo's key may be looked at; yours is nobody's business)", box=None, pad_edge=False)
    for heading in ("region", "texts", "share", "mark", "cos(e, e_p)", "neighbours kept"):
        table.add_column(heading, justify="right")
    for region in range(2**marker.dimension):
        rows = regions == region
        mark = "provider" if region in marker.key_.regions else "tenant" if region in marker.key_.tenant_regions else ""
        values = (f"{cosines[rows].mean():.4f}", f"{overlap[rows].mean():.1%}") if rows.any() else ("", "")
        table.add_row(f"{region:04b}", str(rows.sum()), f"{rows.mean():.1%}", mark, *values)
    Console(highlight=False).print(table)


def _draw(out: Path, marker: Any, regions: Any, overlap: Any, marked: Any) -> str | None:
    try:
        from regionmarker.figures import draw_marking
    except MissingExtraError:
        return None
    path = out / "marking.png"
    draw_marking(path, regions, marker.key_.regions, 2**marker.dimension, overlap, marked)
    return str(path)
