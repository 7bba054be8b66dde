"""``make test-docs``: the site that ``make docs`` built, opened from its folder in Chromium."""

from __future__ import annotations

import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.support.browser import browsing

SITE = Path(__file__).parents[2] / "out" / "docs" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
FETCHED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"?((?:https?:)?//[^\s\">]+)")


@pytest.fixture(scope="module")
def browser(program, tmp_path_factory):
    with browsing(program("chromium"), tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def show(browser, page: str) -> None:
    browser.open((SITE / page).as_uri(), "document.querySelector('article, h1')")


def column(browser, heading: str) -> list[str]:
    return list(
        browser.evaluate(
            f"""(() => {{ const table = document.querySelector('.sortable table');
            const place = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent === '{heading}');
            return [...table.tBodies[0].rows].map(row => row.cells[place].textContent); }})()"""
        )
    )


def test_the_site_is_there():
    assert {"index.html", "docs/reference/api.html", "docs/results/leaderboard.html"} <= set(PAGES)


def test_no_page_fetches_anything():
    fetched = {page: FETCHED.findall((SITE / page).read_text(encoding="utf-8")) for page in PAGES}
    assert {page: found for page, found in fetched.items() if found} == {}


def test_the_browser_asks_nobody_else(browser):
    """Served, too: Chromium tells what pages of a server ask for."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}/"
        browser.open(f"{here}docs/results/four-corpora.html", "document.querySelector('h1')")
        asked = browser.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
        server.shutdown()
    assert asked
    assert [name for name in asked if not name.startswith((here, "data:"))] == []


def test_the_leaderboard_sorts(browser):
    show(browser, "docs/results/leaderboard.html")
    ranks = column(browser, "rank")
    assert len(ranks) > 1
    click = "[...document.querySelectorAll('.sortable th')].find(head => head.textContent === '{}').firstChild.click()"
    browser.evaluate(click.format("defense"))
    assert column(browser, "defense") == sorted(column(browser, "defense"), key=str.lower)
    browser.evaluate(click.format("rank"))
    assert column(browser, "rank") == ranks
    browser.evaluate(click.format("rank"))
    assert column(browser, "rank") == ranks[::-1]


def test_the_api_has_signatures_and_docstrings(browser):
    show(browser, "docs/reference/api.html")
    text = browser.text()
    assert "reservoir: int | None = None" in text
    assert "Mark embeddings so that a model trained on them can be told from one that was not." in text
    assert ":::" not in text
    assert not re.search(r":(meth|class|func|mod):", text)


def test_search_finds_a_page_from_a_folder(browser):
    show(browser, "index.html")
    browser.evaluate("document.querySelector('.md-search__button').click()")
    room = "[...document.querySelectorAll('*')].find(one => one.shadowRoot)?.shadowRoot"
    browser.wait_for(f"{room}?.querySelector('input')")
    browser.evaluate(
        f"""(() => {{ const field = {room}.querySelector('input'); field.value = 'hostile';
        field.dispatchEvent(new Event('input', {{ bubbles: true, composed: true }})); }})()"""
    )
    browser.wait_for(f"[...{room}.querySelectorAll('a')].some(link => link.href.includes('hostile-files.html'))")


def test_it_can_be_dark(browser):
    show(browser, "index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    seen = set()
    for _ in range(3):
        seen.add(browser.evaluate(background))
        browser.evaluate("[...document.querySelectorAll('label[for^=__palette]')].find(one => !one.hidden).click()")
    assert len(seen) == 2


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_scrolls_sideways(browser, width):
    browser.resize(width, 900)
    wide = {}
    for page in PAGES:
        show(browser, page)
        if found := browser.sticks_out():
            wide[page] = found[:3]
    assert wide == {}
