"""The page: nothing from outside, harmless names, and a real browser sorts and filters it."""

from __future__ import annotations

import re
import subprocess

import pytest

from regionmarker.benchmark.page import render_page, write_page


@pytest.fixture(scope="module")
def html(rows):
    return render_page(rows)


def test_it_asks_nobody_for_anything(html):
    assert not re.findall(r"""(?:src|href|action)=["'](?!#)""", html)
    assert not re.findall(r"url\((?!['\"]?#)|@import|fetch\(|XMLHttpRequest", html)
    assert "default-src 'none'" in html


def test_names_from_outside_stay_text(html):
    assert "too few &lt;texts&gt;" in html
    assert "<texts>" not in html


def test_it_holds_tables_figures_and_every_cell(html, rows):
    assert html.count("<figure>") == 9
    cells = html[html.index('<section id="cells">') :]
    assert cells.count("<tr>") - 1 == sum(row["suspect"] != "portrait" for row in rows)


def test_every_id_is_used_once(html):
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert sorted(ids) == sorted(set(ids))


def test_a_browser_sorts_and_filters_it(rows, program, tmp_path):
    chromium = program("chromium")
    (page,) = write_page(rows, tmp_path / "page")

    def opened(fragment):
        run = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"{page.as_uri()}#{fragment}"],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        return run.stdout

    heads = ["corpus", "defense", "attack", "suspect", "seed", "queries", "fidelity", "decoy p"]
    dom = opened(f"sort=cells.{heads.index('decoy p')}")
    body = dom[dom.index('<section id="cells">') :]
    found = [re.findall(r"<td>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body, flags=re.DOTALL)]
    values = [float(cells[7]) for cells in found if cells and cells[7]]
    assert len(values) > 20
    assert values == sorted(values)
    dom = opened("filter=cells.WET cse")
    body = dom[dom.index('<section id="cells">') :]
    shown = [row for row in re.findall(r"<tr([^>]*)>(.*?)</tr>", body, flags=re.DOTALL) if "hidden" not in row[0]]
    assert len(shown) == 1 + 4  # the headings; two seeds, two suspects
    assert "4 of " in body
