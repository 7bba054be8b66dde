"""A grid of a few seconds: real texts, the embedded encoder, thieves in closed form."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from regionmarker.benchmark.grid import Grid, Store, run_grid
from regionmarker.benchmark.grid.cell import SECONDS

GRID = """
[encoders]
small = "wordllama"

[[block]]
corpora = ["CORPUS"]
provider = "wordllama"
defenses = ["none:pool=128,high=0.1", "embmarker:pool=128,high=0.1", "wet:pool=128,probes=64"]
attacks = ["none", "truncate:0.5", ["shift:10", "noise"]]
stealers = ["head:@small,hidden=0"]
public = "@small"
suspects = ["copy", "unmarked copy", "provider"]
queries = [300]
seeds = [3]
"""


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory, sentences) -> Path:
    """Sentences with a label that their vectors can tell: whether they speak of a class."""
    path = tmp_path_factory.mktemp("corpus") / "sentences.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows((text, "class" if "class" in text else "other") for text in sentences[:700])
    return path


@pytest.fixture(scope="session")
def grid_file(tmp_path_factory, corpus_file) -> Path:
    path = tmp_path_factory.mktemp("grid") / "tiny.toml"
    path.write_text(GRID.replace("CORPUS", str(corpus_file)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory, grid_file) -> Path:
    """The output folder of a run that nobody disturbed."""
    out = tmp_path_factory.mktemp("unbroken") / "out"
    run_grid(Grid.read(grid_file), out, engine="here")
    return out


@pytest.fixture(scope="session")
def comparable():
    """Return the rows of a folder without what differs from run to run; NaN as text, which equals itself."""

    def read(folder: Path) -> list[dict[str, object]]:
        return [
            {
                name: str(value) if isinstance(value, float) else value
                for name, value in row.items()
                if name not in SECONDS
            }
            for row in Store.reading(folder).rows()
        ]

    return read
