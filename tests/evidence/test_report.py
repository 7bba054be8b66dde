"""The report: plain words, the same bytes, no requests, and a real browser shows it."""

from __future__ import annotations

import http.server
import re
import subprocess
import threading
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.support.browser import browsing

from regionmarker.evidence.disclosure import disclose
from regionmarker.evidence.report import odds, render_report
from regionmarker.verification.paper_statistics import CANNOT_SAY
from regionmarker.verification.verdict import OtherKey

VOID = {"meta", "link", "br", "img"}


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.ids, self.text = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module", params=["summary", "expert", "court"])
def html(request, saved) -> str:
    return (saved[request.param] / "report.html").read_text(encoding="utf-8")


def test_it_asks_nobody_for_anything(html):
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    links = [value for name, value in page.attributes if name in ("src", "href", "xlink:href", "action", "data")]
    assert all(link.startswith("#") for link in links)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not re.findall(r"url\((?!['\"]?#)|@import", html)
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert ("content", policy) in page.attributes


def test_names_from_outside_stay_text(html):
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_every_id_is_used_once(html):
    ids = Page(html).ids
    assert sorted(ids) == sorted(set(ids))


def test_it_says_what_it_must(html, verdict):
    words = " ".join(" ".join(Page(html).text).split())
    for part in (
        "once in ",
        "look with this key",
        CANNOT_SAY,
        "docs/why/verdict.md",
        "could frame",
        "Public data sets",
        "A proxy is not a copy",
        "The draw is taken on trust",
        "Copies of fidelity 0.6 and above",
        "500: the whole pool of 128, and 372 probes",
        "2026-01-02 03:04:05 UTC",
        verdict.key_id,
        verdict.scores_digest,
        verdict.answers_digest,
    ):
        assert part in words
    disclosure = re.search(r"disclosure (\w+)", words).group(1)
    assert ("Where the probes lie" in words) == (disclosure != "summary")
    assert ("Which tenant" in words) == (disclosure == "court")
    assert ("So is the key" in words) == (disclosure == "court")
    assert ("Exact cosines are left out" in words) == (disclosure == "summary")


def test_the_other_outcomes(verdict_on, answer_as):
    innocent = verdict_on(answer_as(guilty=False))
    power = replace(innocent.power, detected=(0.0, 0.0, 0.0), caught=None)
    for found, sentence in (
        (innocent, "give no evidence that it was trained"),
        (replace(innocent, outcome="inconclusive", power=power), "would have missed good copies too often"),
        (replace(innocent, power=None), "Power was not estimated"),
    ):
        assert sentence in render_report(disclose(found, "summary"))


def test_the_other_keys_of_a_ring_are_named(verdict):
    found = replace(verdict, other_keys=(OtherKey("ab" * 8, 0.25, 1, 0.5, False, "cd" * 32),))
    words = " ".join(" ".join(Page(render_report(disclose(found, "summary"))).text).split())
    assert "2 keys of one ring judged the same answers" in words
    assert f"{'ab' * 8} p = 0.25, corrected 0.5" in words


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.0, "100 times in 100"), (0.5, "50 times in 100"), (3.2e-4, "3.2 times in 10,000"), (5e-5, "once in 20 th")],
)
def test_odds(value, words):
    assert odds(value).startswith(words)


# ---- a real browser


@pytest.fixture(scope="module")
def chromium(program):
    path = program("chromium")

    def run(page, profile, *options):
        command = [path, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
        command += ["--disable-background-networking", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
        subprocess.run([*command, *options, page.as_uri()], capture_output=True, timeout=120, check=True)

    return run


def test_a_browser_shows_it(saved, chromium, tmp_path):
    from matplotlib.image import imread

    picture = tmp_path / "report.png"
    page = saved["expert"] / "report.html"
    chromium(page, tmp_path / "profile", f"--screenshot={picture}", "--window-size=1000,2600")
    pixels = imread(picture)[:, :, :3]  # (2600, 1000, 3)
    assert pixels.shape[:2] == (2600, 1000)
    dark = (pixels.max(axis=2) < 0.5).mean(axis=1)  # text and lines, by row
    assert dark.max() > 0.05
    assert [band.max() > 0.01 for band in np.array_split(dark, 10)] == [True] * 10  # no blank stretch
    red = (pixels[:, :, 0] > 0.7) & (pixels[:, :, 1] < 0.4)
    assert red.sum() > 500  # the outcome and the marked total


def test_it_prints(saved, chromium, tmp_path):
    printed = tmp_path / "report.pdf"
    chromium(
        saved["summary"] / "report.html", tmp_path / "profile", f"--print-to-pdf={printed}", "--no-pdf-header-footer"
    )
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 7


def test_the_policy_stops_what_somebody_adds(saved, chromium, tmp_path):
    """The same picture is fetched from a page without the policy, so the silence of the report means something."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        html = (saved["summary"] / "report.html").read_text(encoding="utf-8")
        added = f'<img src="{address}/NAME"><script src="{address}/NAME"></script></main>'
        for name, source in (("with", html), ("without", re.sub(r"<meta http-equiv[^>]*>", "", html))):
            page = tmp_path / f"{name}.html"
            page.write_text(source.replace("</main>", added.replace("NAME", name)), encoding="utf-8")
            chromium(page, tmp_path / "profile", f"--screenshot={tmp_path / name}.png")
        assert set(asked) == {"/without"}
    finally:
        server.shutdown()
        server.server_close()


def test_it_fits_a_phone(saved, program, tmp_path):
    with browsing(program("chromium"), tmp_path / "profile") as browser:
        for width in (390, 1280):
            browser.resize(width, 900)
            for name, bundle in saved.items():
                browser.open((bundle / "report.html").as_uri(), "document.querySelector('h1')")
                assert browser.sticks_out() == [], (width, name)
