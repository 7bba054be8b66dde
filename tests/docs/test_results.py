"""Pages tell what the committed results say: a number changed by hand is found."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from regionmarker.benchmark.defenses import look_of
from regionmarker.benchmark.grid import Grid
from regionmarker.benchmark.tables import Results
from regionmarker.benchmark.tables.results import shown_p
from regionmarker.benchmark.tables.results_file import MEANINGS, read_results, results_schema
from regionmarker.benchmark.tables.summary import Tally
from regionmarker.cli import main
from regionmarker.errors import InputError
from studies.results import NUMBERS, Book

ROOT = Path(__file__).parents[2]
TYPES = {"string": "string", "int64": "int64", "double": "float64", "bool": "bool"}


@pytest.fixture(scope="module")
def book():
    return Book.open()


@pytest.fixture
def small(tmp_path, rows):
    """A book of one page with a number and a table, of rows that were made up."""
    (tmp_path / "results").mkdir()
    selections = (
        '[wet]\nwhere.scheme = ["wet"]\ntables = "docs/all"\nfigures = "docs/all"\n[none]\nwhere.seed = ["9"]\n'
    )
    (tmp_path / "results" / "selections.toml").write_text(selections)
    (tmp_path / "README.md").write_text(
        "Caught: <!-- result: wet.caught -->?<!-- /result -->.\n<!-- result: wet.summary --><!-- /result -->\n"
        "```\n<!-- result: as.it.is --> stays\n```\n"
    )
    return Book.open(tmp_path, rows)


def test_the_reference_has_the_schema():
    page = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    fields = [(field.name, TYPES.get(str(field.type), "list of strings")) for field in results_schema()]
    assert told == [(name, kind, MEANINGS[name]) for name, kind in fields]
    assert [name for name in NUMBERS if f"`{name}`" not in page] == []


def test_no_number_is_stale(book, tmp_path):
    assert [str(page.relative_to(ROOT)) for page, _ in [*book.renewed(), *book.made(tmp_path)]] == []


def test_the_page_knows_every_grid_and_how_many_cells_it_has():
    page = (ROOT / "docs" / "how-to" / "run-the-benchmark.md").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^\| `(\w[\w-]*\.toml)` \| (.*?) \|", page, re.MULTILINE))
    grids = {path.name: path for path in (ROOT / "studies" / "grids").glob("*.toml")}
    assert lines.keys() == grids.keys()
    cells = {name: re.search(r"([\d,]+) cells", line) for name, line in lines.items()}
    told = {name: int(found[1].replace(",", "")) for name, found in cells.items() if found}
    assert told == {name: len(Grid.read(grids[name]).cells) for name in told}
    assert len(told) > 5


def test_the_median_of_a_page_is_that_of_the_summary(rows):
    copy = next(row for row in rows if row["guilty"])
    tally = Tally(Results([{**copy, "seed": seed, "decoy_p": p} for seed, p in enumerate((1e-9, 1e-5, 1e-3, 0.5))]))
    assert NUMBERS["median-p"](tally) == shown_p(tally.numbers()["median_p"]) == shown_p((1e-5 + 1e-3) / 2)


def test_a_number_changed_by_hand_is_found(book):
    page = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    changed = page.replace("smoke.cells -->", "smoke.cells -->1", 1)
    assert changed != page
    assert book.filled(changed) == page


def test_the_committed_file_knows_no_machine():
    rows = read_results(ROOT / "results" / "cells.parquet").rows
    texts = {str(value) for row in rows for value in row.values() if isinstance(value, str | list)}
    assert [text for text in texts for place in ("work", "root", "tmp", "home") if f"/{place}/" in text] == []


def test_places_are_filled_once_and_for_all(small):
    ((page, text),) = small.renewed()
    assert page.name == "README.md"
    assert "Caught: <!-- result: wet.caught -->6 of 8<!-- /result -->." in text
    assert "\n\n| attack | caught |" in text
    assert "<!-- result: as.it.is --> stays" in text
    page.write_text(text)
    assert list(small.renewed()) == []


def test_folders_of_tables_and_figures_are_filled_once_and_for_all(small, tmp_path):
    made = dict(small.made(tmp_path / "first"))
    assert {"tables.md", "timing.csv", "attacks.svg"} <= {path.name for path in made}
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert dict(small.made(tmp_path / "second")) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- result: wet.caught -->", "not closed"),
        ("<!-- result: wet.caught --> <!-- result: wet.kept --><!-- /result -->", "wet.caught is not closed"),
        ("<!-- result: caught --><!-- /result -->", "write SELECTION.WHAT"),
        ("<!-- result: garlic.caught --><!-- /result -->", "write SELECTION.WHAT"),
        ("<!-- result: wet.garlic --><!-- /result -->", "no such number or table"),
        ("<!-- result: none.caught --><!-- /result -->", "no row of the results"),
    ],
)
def test_a_place_that_cannot_be_filled_is_told(small, text, message):
    with pytest.raises(InputError, match=message):
        small.filled(text)


def test_the_worked_example_of_a_rival_runs(tmp_path, monkeypatch, capsys):
    """The blocks of the page: the module, its entry point as pip leaves it, the grid, the commands."""
    page = (ROOT / "docs" / "how-to" / "add-a-defense.md").read_text(encoding="utf-8")
    blocks = dict.fromkeys(("python", "toml", "sh"), "")
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "toml" and "entry-points" in text:
            (point,) = tomllib.loads(text)["project"]["entry-points"].items()
        else:
            blocks[language] = text
    info = tmp_path / "kitchen-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kitchen\nVersion: 1.0\n")
    lines = "".join(f"{name} = {place}\n" for name, place in point[1].items())
    (info / "entry_points.txt").write_text(f"[{point[0]}]\n{lines}")
    (tmp_path / "kitchen.py").write_text(blocks["python"])
    (tmp_path / "garlic.toml").write_text(blocks["toml"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    look_of.cache_clear()
    for line in blocks["sh"].splitlines():
        with pytest.raises(SystemExit) as left:
            main(line.split()[1:])
        assert not left.value.code, line
    look_of.cache_clear()
    sys.modules.pop("kitchen", None)
    printed = capsys.readouterr().out
    assert re.search(r"^\d +Garlic ", printed, re.MULTILINE)
    assert re.search(r"^\d +WET ", printed, re.MULTILINE)


def test_one_place_shows_every_selection_with_a_title_that_has_the_table(small):
    selections = small.root / "results" / "selections.toml"
    selections.write_text(
        '[first]\ntitle = "One"\nwhere.scheme = ["wet"]\n'
        + selections.read_text()
        + '[marked]\ntitle = "All but one"\nwhere.scheme = ["wet", "warden"]\n'
    )
    (small.root / "README.md").write_text("<!-- result: every.summary -->old<!-- /result -->\nend\n")
    rows = [row for selection in small.selections.values() for row in selection.rows.rows]
    book = Book.open(small.root, rows)
    ((_, text),) = book.renewed()
    assert re.findall(r"^## (.*)\n\n(\d+) cells; corpus: ", text, re.MULTILINE) == [
        ("One", str(len(rows))),
        ("All but one", str(len(rows))),
    ]
    assert text.endswith("\n<!-- /result -->\nend\n")
    assert book.filled(text) == text
    with pytest.raises(InputError, match="no selection with a title has a table 'nothing'"):
        book.filled("<!-- result: every.nothing --><!-- /result -->")
