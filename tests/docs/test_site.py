"""The documentation site: its order, its links, its API page, and tables that sort, without the generator itself."""

from __future__ import annotations

import re
import tomllib
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from docs.site.build import as_page, nav, notebook_page, stage, staged
from tests.support.browser import browsing

import regionmarker

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
OUTSIDE = re.compile(r"(?:https?:)?//(?!127\.0\.0\.1)[a-z]")


def leaves(entries: list[dict[str, Any]]) -> list[str]:
    found = []
    for entry in entries:
        for value in entry.values():
            found += leaves(value) if isinstance(value, list) else [value]
    return found


def test_every_page_has_one_place_in_the_order():
    ordered = leaves(nav())
    assert sorted(set(PAGES) - set(ordered)) == []
    assert len(ordered) == len(set(ordered))
    there = {*PAGES, "index.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
    assert [page for page in ordered if page not in there and not (ROOT / page.removesuffix(".md")).exists()] == []


def test_the_order_is_that_of_the_index(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(
        "# All\n\n**First**\n\n- [A](a.md): words\n  ([its tables](a/tables.md))\n\n**Then**\n\n*people*\n\n"
        "- Speed of [x](x.md), [y](y.md#part)\n"
    )
    first, then, project = nav(tmp_path)
    assert first["First"][2:] == [{"A": "docs/a.md"}, {"A: its tables": "docs/a/tables.md"}]
    assert then == {"Then": [{"people": [{"Speed of x": "docs/x.md"}, {"Speed of y": "docs/y.md"}]}]}
    assert leaves(project["Project"]) == ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]


@pytest.fixture
def small(tmp_path):
    """A repository of one page."""
    for name in ("docs/tables/rows.csv", "docs/picture.svg", "docs/other.md", "deploy/nginx.conf", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("some ``` text\n")
    return tmp_path


def test_no_link_leaves_the_site(small):
    page = small / "docs" / "page.md"
    page.write_text(
        "[a](other.md#x) [b](../README.md#y) [c](tables) [d](../deploy/nginx.conf) [e](#z) [f](https://example.com)\n"
        "![g](picture.svg)\n```\n[h](nowhere)\n```\n| `a\\|b` | c \\| d |\n"
    )
    text, needed = staged(page, small)
    assert text == (
        "[a](other.md#x) [b](../index.md#y) [c](tables/files.md) [d](../deploy/nginx.conf.md) [e](#z)"
        " [f](https://example.com)\n![g](picture.svg)\n```\n[h](nowhere)\n```\n| `a|b` | c \\| d |\n"
    )
    assert needed == {small / "docs" / "tables", small / "deploy" / "nginx.conf"}
    assert as_page(small / "docs" / "tables", small) == "# docs/tables\n\n- [rows.csv](rows.csv)\n"
    assert as_page(small / "deploy" / "nginx.conf", small).endswith("\n\n```` nginx\nsome ``` text\n````\n")


def test_a_hidden_folder_is_seen(small):
    (small / ".github").mkdir()
    (small / ".github" / "release.yml").write_text("on: push\n")
    page = small / "SECURITY.md"
    page.write_text("[a](.github/release.yml) [b](docs/../.github/release.yml)\n")
    assert staged(page, small)[0] == "[a](github/release.yml.md) [b](docs/../github/release.yml.md)\n"


def test_a_link_that_leads_nowhere_stops_the_build(small):
    page = small / "docs" / "page.md"
    page.write_text("[a](nowhere.md)\n")
    with pytest.raises(SystemExit, match=r"docs/page.md: nowhere.md leads nowhere: mend the link"):
        staged(page, small)


def test_a_notebook_becomes_a_page():
    picture = {"output_type": "display_data", "data": {"image/png": "abc\n", "text/plain": ["<Figure>"]}}
    said = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
    shown = {"output_type": "execute_result", "data": {"text/html": ["<table></table>"], "text/plain": ["x"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [said, shown, picture]},
    ]
    page = notebook_page({"cells": cells})
    assert page.startswith("# Title\nwords\n\n``` python\n1 + 1\n```\n\n``` text\none\ntwo\n```\n\n")
    assert '<div class="output"><table></table></div>' in page
    assert 'src="data:image/png;base64,abc"' in page


def test_everything_is_staged(tmp_path):
    stage(out=tmp_path)
    settings = tomllib.loads((tmp_path / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert [page for page in leaves(settings["nav"]) if not (tmp_path / "pages" / page).is_file()] == []
    named = [*settings["extra_css"], *settings["extra_javascript"], *settings["extra"]["polyfills"]]
    assert [name for name in named if not (tmp_path / "pages" / name).is_file()] == []
    assert list((tmp_path / "pages").rglob(".*")) == []
    assert [path for path in (tmp_path / "src").rglob("*.py") if re.search(r":[a-z]+:`", path.read_text())] == []


def test_nothing_is_fetched_from_elsewhere():
    settings = tomllib.loads((SITE / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert settings["theme"]["font"] is False
    assert any("iframe-worker" in path for path in settings["extra"]["polyfills"])  # or it comes from a network
    for path in [*SITE.glob("*.js"), *SITE.glob("*.css"), SITE / "zensical.toml"]:
        assert not OUTSIDE.search(path.read_text(encoding="utf-8")), path


def test_the_api_page_has_every_public_name():
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: (\S+)$", page, re.MULTILINE)
    for name in named:
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute).__doc__, name
    public = {f"regionmarker.{name}" for name in regionmarker.__all__} - {"regionmarker.__version__"}
    protocols = import_module("regionmarker.benchmark.protocols")
    plugged = {"Defense", "DataAttack", "ModelAttack", "Stealer"}
    assert all(getattr(getattr(protocols, name), "_is_protocol", False) for name in plugged)
    assert (public | {f"{protocols.__name__}.{name}" for name in plugged}) - set(named) == set()


def html_of(markdown: str) -> str:
    """The tables of a page as HTML, in a block that sorts."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines() if line[:1] == "|"]
    head, body = rows[0], rows[2:]
    cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    return f'<div class="sortable"><table><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table></div>'


def column(browser, number: int) -> list[str]:
    return list(browser.evaluate(f"[...document.querySelectorAll('tbody tr')].map(r => r.cells[{number}].textContent)"))


def test_the_leaderboard_sorts(program, tmp_path):
    """The committed page's first board, and one of entries that are hard to sort."""
    board = (ROOT / "docs" / "results" / "leaderboard.md").read_text(encoding="utf-8").partition("\n## ")[2]
    board = board.partition("\n## ")[0]
    hard = "| name | caught |\n|---|---|\n" + "".join(
        f"| {name} | {caught} |\n"
        for name, caught in [("b", "2 of 8"), ("A", "n/a"), ("c", "1,000 of 2,000 (0.4 to 0.6)"), ("d", "1 of 3")]
    )
    pages = {}
    for name, text in (("board", board), ("hard", hard)):
        pages[name] = tmp_path / f"{name}.html"
        css, script = (SITE / "site.css").as_uri(), (SITE / "table.js").as_uri()
        pages[name].write_text(
            f'<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="{css}">{html_of(text)}'
            f'<script src="{script}"></script>'
        )
    with browsing(program("chromium"), tmp_path / "profile") as browser:
        browser.open(pages["board"].as_uri(), "document.querySelector('th button')")
        heads = list(browser.evaluate("[...document.querySelectorAll('th')].map(h => h.textContent)"))
        ranks = column(browser, 0)
        assert ranks == [str(place) for place in range(1, len(ranks) + 1)]
        click = "document.querySelectorAll('th button')[{}].click()"
        browser.evaluate(click.format(heads.index("defense")))
        assert column(browser, 1) == sorted(column(browser, 1), key=str.lower)
        browser.evaluate(click.format(0))
        assert column(browser, 0) == ranks
        browser.evaluate(click.format(0))
        assert column(browser, 0) == ranks[::-1]
        assert browser.evaluate("document.querySelectorAll('[aria-sort]').length") == 1

        browser.open(pages["hard"].as_uri(), "document.querySelector('th button')")
        browser.evaluate(click.format(1))
        assert column(browser, 0) == ["c", "d", "b", "A"]  # the largest share first, what is missing last
        browser.evaluate(click.format(1))
        assert column(browser, 0) == ["b", "d", "c", "A"]
        browser.evaluate(click.format(0))
        assert column(browser, 0) == ["A", "b", "c", "d"]
        assert browser.evaluate("document.querySelector('[aria-sort]').ariaSort") == "ascending"
