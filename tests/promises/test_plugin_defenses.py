"""A defense of another package appears in every table and every figure, with its own title, colour and place."""

from __future__ import annotations

import json
import sys

import pytest

from regionmarker.benchmark.defenses import look_of
from regionmarker.benchmark.figures import make_figures
from regionmarker.benchmark.page import render_page
from regionmarker.benchmark.tables import make_tables

ABOUT_REGIONMARKER = {"claims", "dimension-wise", "ablations", "reducers"}  # the paper's, of its own scheme alone
ABOUT_NO_DEFENSE = {"framework", "region-balance"}  # a diagram, and what the reductions do to a corpus
COLOUR = "#0b7a75"


MODULE = f'''
from regionmarker.benchmark.defenses.wet import Wet

class Garlic(Wet):
    scheme = "garlic"
    title, colour, order = "Garlic Marker", "{COLOUR}", 45  # between WET and GeoMark

class Onion:
    """It says nothing of how it is shown."""
'''
ENTRY_POINTS = "[regionmarker.defenses]\ngarlic = kitchen:Garlic\nonion = kitchen:Onion\n"


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Another package with two defenses, as pip would leave it."""
    (tmp_path / "kitchen.py").write_text(MODULE)
    (tmp_path / "kitchen-1.0.dist-info").mkdir()
    (tmp_path / "kitchen-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: kitchen\nVersion: 1.0\n")
    (tmp_path / "kitchen-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    look_of.cache_clear()
    yield
    look_of.cache_clear()
    sys.modules.pop("kitchen", None)


@pytest.fixture
def results(rows, result_row):
    """The usual rows, with two defenses of other packages in whatever a grid may hold."""
    portrait = next(row for row in rows if row["suspect"] == "portrait")
    more = []
    for name in ("garlic", "onion"):
        for row in rows:
            if row["defense"] == "wet":
                more.append({**row, "defense": name, "digest": name + row["digest"]})
        for bite in (1, 2):
            more.append(result_row(f"{name}:bite={bite}", parameters=json.dumps({"bite": bite}), p=10.0**-bite))
            more.append(result_row(name, queries=1000 * bite, p=10.0**-bite))
        more.append({**result_row(name), "attacks": ["finetune:limit=9,enron"], "attack": "finetune:limit=9,enron"})
        more.append({**portrait, "defense": name})
        more.append(result_row(name, "cse", error="no vampires here", error_kind="failed", decoy_p=None, seed=7))
    return [*rows, *more]


def titles_in(table):
    return " ".join([table.title, *table.columns, *(entry for row in table.rows for entry in row)])


@pytest.mark.parametrize("title", ["Garlic Marker", "onion"])
def test_it_is_in_every_table(installed, results, result_row, title):
    several = [result_row(name, stealer=stealer) for name in ("garlic", "onion") for stealer in ("head", "tokens")]
    tables = {table.name: table for table in [*make_tables(several), *make_tables(results)]}
    assert {"leaderboard", "main-sst2", "motivation", "timing", "stealers", "fine-tuning", "errors"} <= tables.keys()
    for name, table in tables.items():
        if name not in ABOUT_REGIONMARKER and not name.startswith("sweep-"):
            assert title in titles_in(table), name
    swept = [table for name, table in tables.items() if name.startswith("sweep-") and title in table.title]
    assert {table.columns[2] for table in swept} == {"bite", "queries"}


@pytest.mark.parametrize(("title", "scheme"), [("Garlic Marker", "garlic"), ("onion", "onion")])
def test_it_is_in_every_figure_in_its_colour(installed, results, title, scheme):
    pictures = {picture.name: picture for picture in make_figures(results)}
    for name, picture in pictures.items():
        if name not in ABOUT_NO_DEFENSE and not name.startswith("sweep-"):
            assert title in picture.svg, name
    for name in ("fidelity", "trade-off"):
        assert look_of(scheme).colour in pictures[name].svg
    assert look_of("garlic").colour == COLOUR
    assert {f"sweep-{scheme}-bite", f"sweep-{scheme}-queries"} <= pictures.keys()
    assert title in pictures[f"sweep-{scheme}-bite"].caption


def test_it_stands_where_it_says(installed, results):
    (table,) = [table for table in make_tables(results) if table.name == "attacks-sst2"]
    shown = [head for head in table.columns[4:] if head != "blameless caught"]
    assert shown == ["no defense", "WARDEN", "WET", "Garlic Marker", "RegionMarker 0.1", "onion"]


def test_it_is_on_the_page(installed, results):
    assert "Garlic Marker" in render_page(results)


def test_a_defense_that_is_not_installed_is_called_by_its_name(results):
    (table,) = [table for table in make_tables(results) if table.name == "leaderboard"]
    assert {"garlic", "onion"} <= {line[1] for line in table.rows}
