"""The operator's page: behind the token, without scripts, in a real browser."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from tests.support.browser import browsing
from tests.support.running import running

from regionmarker.gateway.gateway import open_gateway
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.keys.commitment import commit, serving_with_commitment
from regionmarker.keys.files import save_serving
from regionmarker.keys.key import key_from_key

TOKEN = "canary-of-the-operator-42"


@pytest.fixture(scope="module")
def key(sentences, embeddings):
    from regionmarker import RegionMarker

    return RegionMarker(pool=64, reservoir=256).fit(sentences[:2000], embeddings=embeddings[:2000]).key_


@pytest.fixture(scope="module")
def place(tmp_path_factory, key):
    """A key file and a database with three tenants, one of which the key lacks."""
    folder = tmp_path_factory.mktemp("console")
    save_serving(folder / "serving.rmkey", serving_with_commitment(key, ["acme", "zenith"]), None)
    accounts = Accounts.open(str(folder / "t.db"))
    folder_keys = {name: accounts.add(name) for name in ("acme", "zenith", "newcomer")}
    accounts.change("acme", limits={"requests_per_minute": 77})
    accounts.close()
    return folder, folder_keys


@pytest.fixture(scope="module")
def house(place):
    folder, keys = place
    settings = Settings(folder / "serving.rmkey", database=str(folder / "t.db"), admin_token=TOKEN)
    with running(open_gateway(settings)) as open_house:
        open_house.embed(["one", "two"], keys["acme"])
        question = {"model": "wordllama", "input": "a text"}
        assert open_house.ask("/v1/embeddings", token=keys["newcomer"], body=question)[0] == 503
        yield open_house


def log_in(house, token=TOKEN, **headers):
    form = urlencode({"token": token}).encode()
    return house.ask("/console/login", body=form, content_type="application/x-www-form-urlencoded", **headers)


def page(house):
    status, headers, body = house.ask("/console", token=TOKEN)
    assert status == 200
    return headers, body.decode()


def test_it_shows_what_the_operator_needs(house, key):
    html = page(house)[1]
    for part in (
        "ready", key.id, commit(key), "wordllama", "everyone is marked", "vectors served", "answered with 200", "acme",
        "77", "zenith", "newcomer", "not in the key", "tenant is not in the key", "not enough traffic yet",
    ):  # fmt: skip
        assert part in html, part


def test_it_shows_no_secret(house, place):
    html = page(house)[1]
    for secret in (TOKEN, *place[1].values(), *(key.split("-", 2)[2] for key in place[1].values()), "a text"):
        assert secret not in html


def test_strangers_see_a_form_and_nothing_else(house, key):
    for headers in ({}, {"token": "rm-wrong"}, {"cookie": "regionmarker_console=1.2"}):
        token = headers.pop("token", "")
        status, _, body = house.ask("/console", token=token, **headers)
        assert status == 200
        assert b"Admin token" in body
        assert key.id.encode() not in body
    assert house.ask("/console/reload", body=b"")[0] == 401


def test_the_cookie_is_for_browsers_and_for_this_page_alone(house):
    status, headers, _ = log_in(house)
    assert (status, headers["location"]) == (303, "/console")
    cookie = headers["set-cookie"]
    assert {part.strip().lower() for part in cookie.split(";")[1:]} >= {"httponly", "samesite=strict", "path=/console"}
    assert "secure" not in cookie.lower()  # plain http on this machine; a cookie for https would never come back
    assert b"Recent errors" in house.ask("/console", cookie=cookie.split(";")[0])[2]
    behind = log_in(house, x_forwarded_proto="https")[1]["set-cookie"]
    assert "secure" in behind.lower()


def test_logging_out_ends_the_cookie_at_every_replica(house, place):
    folder, _ = place
    cookies = [log_in(house)[1]["set-cookie"].split(";")[0] for _ in range(2)]
    settings = Settings(folder / "serving.rmkey", database=str(folder / "t.db"), admin_token=TOKEN)
    with running(open_gateway(settings)) as replica:
        for one in (house, replica):
            assert b"Recent errors" in one.ask("/console", cookie=cookies[0])[2]
        ended = house.ask("/console/logout", body=b"", cookie=cookies[0])[1]["set-cookie"]
        assert "max-age=0" in ended.lower()
        for one in (house, replica):
            assert b"Admin token" in one.ask("/console", cookie=cookies[0])[2]
            assert one.ask("/console/reload", body=b"", cookie=cookies[0])[0] == 401
            assert b"Recent errors" in one.ask("/console", cookie=cookies[1])[2]  # another browser's


def test_logging_out_ends_the_cookie_without_a_database(place):
    folder, _ = place
    settings = Settings(folder / "serving.rmkey", admin_token=TOKEN)
    with running(open_gateway(settings)) as house:
        first, second = (log_in(house)[1]["set-cookie"].split(";")[0] for _ in range(2))
        house.ask("/console/logout", body=b"", cookie=first)
        assert b"Admin token" in house.ask("/console", cookie=first)[2]
        assert b"Recent errors" in house.ask("/console", cookie=second)[2]
    with running(open_gateway(settings)) as house:  # what the first process knew is gone: so are its sessions
        assert all(b"Admin token" in house.ask("/console", cookie=one)[2] for one in (first, second))


def test_every_answer_forbids_scripts_frames_and_keeping(house):
    for path in ("/console", "/console/style.css"):
        headers = house.ask(path, token=TOKEN)[1]
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'; form-action 'self'")
        assert headers["x-content-type-options"] == "nosniff"
    assert page(house)[0]["cache-control"] == "no-store"
    html = page(house)[1]
    assert not re.search(r"<script|<style|style=| on\w+=|https?://", html)
    assert "<svg" in html  # inline: nothing is fetched for the charts


def test_other_sites_cannot_use_its_forms(house):
    for path in ("/console/login", "/console/logout", "/console/reload"):
        for site in ("cross-site", "same-site"):
            assert house.ask(path, body=b"", token=TOKEN, sec_fetch_site=site)[0] == 403


def test_names_and_reasons_stay_text(house):
    house.gateway.logger.error("a bad thing", reason="<script>alert(1)</script>")
    html = page(house)[1]
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>" not in html


def test_errors_are_errors_and_warnings_stand_apart(house):
    house.gateway.logger.error("a bad thing")
    for number in range(60):  # more than are kept
        house.gateway.logger.warning(f"a mild thing {number}")
    errors, warnings = page(house)[1].split("<summary>Recent warnings")
    errors = errors.split("<h2>Recent errors")[1]
    assert "a bad thing" in errors
    assert "request failed" in errors  # the newcomer's 503
    assert "mild" not in errors
    assert warnings.count("a mild thing") == 50


def test_charts_and_numbers_count_what_was_answered(place):
    folder, keys = place
    settings = Settings(folder / "serving.rmkey", database=str(folder / "t.db"), admin_token=TOKEN)
    with running(open_gateway(settings)) as house:
        assert "nothing was served in the last hour" in page(house)[1]
        for _ in range(3):
            house.embed(["one"], keys["acme"])
        question = {"model": "wordllama", "input": "a text"}
        assert house.ask("/v1/embeddings", token="rm-wrong", body=question)[0] == 401
        assert house.ask("/v1/embeddings", token=keys["newcomer"], body=question)[0] == 503
        html = page(house)[1]
    assert "3 in the last hour" in html
    assert "1 refused, 1 failed in the last hour" in html
    assert re.search(r"last: half within [\d.]+ m?s, 95 % within", html)
    for kind in ("served", "refused", "failed", "median", "slowest"):
        assert f'<rect class="{kind}" x=' in html, kind
    assert '<th scope="row">answered with 200</th><td class="number">3</td>' in html
    assert re.search(r'<th scope="row">tenants in the key</th><td>\d+</td>', html)  # beside words, like a word


def test_the_page_loads_itself_again_as_long_as_the_operator_wants(house):
    def pace(query):
        html = house.ask(f"/console{query}", token=TOKEN)[2].decode()
        return re.findall(r'http-equiv="refresh" content="([^"]*)"', html)

    assert pace("") == pace("?refresh=10") == ["10"]
    assert pace("?refresh=60") == ["60"]
    assert pace("?refresh=off") == []
    assert pace("?refresh=0;url=https://evil.example") == ["10"]  # only what is on the list


def test_a_browser_gets_a_page_where_a_program_gets_json(house):
    for accept, shape in (("text/html,*/*", b"<h1>That was not done</h1>"), ("*/*", b'{"error":')):
        status, headers, body = house.ask("/console/reload", body=b"", accept=accept)
        assert status == 401
        assert shape in body
        assert "default-src 'none'" in headers.get("content-security-policy", "") or accept == "*/*"


def test_a_session_that_ended_says_so(house):
    assert b"the session has ended" in house.ask("/console", cookie="regionmarker_console=1.2")[2]
    assert b"the session has ended" not in house.ask("/console")[2]


def test_an_upstream_that_was_never_reached_is_an_alarm(house):
    house.gateway.upstream_seen = False
    try:
        assert "has not been reached yet: nothing can be served" in page(house)[1]
    finally:
        house.gateway.upstream_seen = True
    house.gateway.draining = True
    try:
        assert "This gateway is about to stop" in page(house)[1]
    finally:
        house.gateway.draining = False


def test_without_a_token_there_is_no_console(place):
    folder, _ = place
    with running(open_gateway(Settings(folder / "serving.rmkey"))) as house:
        assert house.ask("/console")[0] == 404


@pytest.mark.parametrize("page", ["/metrics", "/console", "/console/reload", "/console/login"])
def test_guessing_is_stopped_and_logged_wherever_it_is_tried(place, page):
    """Five wrong tokens from one address are enough; the operator, at another address, goes on."""
    folder, _ = place
    settings = Settings(folder / "serving.rmkey", admin_token=TOKEN)
    stranger = {"x_forwarded_for": "192.0.2.66"}
    with running(open_gateway(settings)) as house:

        def guess(token, **headers):
            if page == "/console/login":
                return log_in(house, token, **headers)[0]
            body = b"" if page == "/console/reload" else None
            return house.ask(page, token=token, body=body, **headers)[0]

        wrong = 200 if page == "/console" else 401  # a form
        assert [guess(f"wrong {n}", **stranger) for n in range(8)] == [wrong] * 5 + [429] * 3
        assert guess(TOKEN, **stranger) == 429  # not even the right one: nobody can tell that it was
        assert log_in(house, "wrong", **stranger)[0] == 429  # one count for all pages
        assert guess(TOKEN) in (200, 303)
        assert b"Recent errors" in house.ask("/console", cookie=log_in(house)[1]["set-cookie"].split(";")[0])[2]
        text = house.ask("/metrics", token=TOKEN)[2]
        assert b'regionmarker_operator_refused_total{reason="wrong"} 5.0' in text
        assert b'regionmarker_operator_refused_total{reason="limited"} 5.0' in text
        html = house.ask("/console", token=TOKEN)[2]
        assert html.count(b"somebody gave a wrong admin token") == 5
        assert b"192.0.2.66" in html


def test_who_gives_no_token_has_not_guessed(place):
    folder, _ = place
    with running(open_gateway(Settings(folder / "serving.rmkey", admin_token=TOKEN))) as house:
        assert [house.ask("/metrics")[0] for _ in range(9)] == [401] * 9
        assert house.ask("/metrics", token=TOKEN)[0] == 200


def test_alarms_stand_at_the_top(key, tmp_path):
    path = tmp_path / "serving.rmkey"
    save_serving(path, key.serving(), None)
    with running(open_gateway(Settings(path, unmarked="everyone", admin_token=TOKEN))) as house:
        house.embed(["one", "two", "three"], "any")
        path.write_bytes(b"broken")
        assert house.ask("/console/reload", body=b"", token=TOKEN)[0] == 303
        html = page(house)[1]
        assert "This gateway may serve UNMARKED vectors (--serve-unmarked everyone)" in html
        assert "The new key file is not used" in html
        assert "Served without a mark" in html
        assert "There is no tenants database" in html
        save_serving(path, key_from_key(key).serving(), None, overwrite=True)
        assert house.ask("/console/reload", body=b"", token=TOKEN)[0] == 303
        assert "The new key file is not used" not in page(house)[1]
        assert house.gateway.served_key.current().key_id != key.id


def test_a_real_browser_logs_in_and_out(house, key, program, tmp_path):
    from matplotlib.image import imread

    with browsing(program("chromium"), tmp_path / "profile") as browser:
        browser.open(f"{house.url}/console", "document.getElementById('token')")
        browser.evaluate("document.getElementById('token').value = 'a wrong one'; document.forms[0].submit()")
        browser.wait_for("document.body.innerText.includes('That is not the admin token')")
        browser.evaluate(f"document.getElementById('token').value = '{TOKEN}'; document.forms[0].submit()")
        browser.wait_for("document.body.innerText.includes('Recent errors')")
        shown = browser.text()
        assert key.id in shown
        assert "newcomer" in shown
        assert browser.evaluate("document.cookie") == ""  # no script may read it
        assert TOKEN not in browser.evaluate("document.documentElement.outerHTML")
        browser.screenshot(tmp_path / "console.png")
        pixels = imread(tmp_path / "console.png")[:, :, :3]
        assert (pixels.max(axis=2) < 0.5).mean() > 0.01  # there is text
        assert browser.evaluate("getComputedStyle(document.querySelector('table')).borderCollapse") == "collapse"
        before = house.gateway.served_key.current().version
        browser.evaluate("document.querySelector('form[action=\"/console/reload\"]').submit()")
        browser.wait_for(f"document.body.innerText.includes('version since the start\\t{before + 1}')")
        shown_at = "document.querySelector('header span').textContent"
        first = browser.evaluate(shown_at)
        browser.open(f"{house.url}/console?refresh=10", shown_at)
        browser.wait_for(f"{shown_at} > '{first}'")  # it loaded itself again
        browser.evaluate("document.querySelector('form[action=\"/console/logout\"]').submit()")
        browser.wait_for("document.getElementById('token')")


def test_a_real_browser_does_not_let_another_site_press_the_buttons(house, program, tmp_path):
    """A page of another origin that sends the form by itself: the browser says where it comes from."""
    before = house.gateway.served_key.current().version
    trap = tmp_path / "trap.html"
    trap.write_text(
        f"<form method=post action='{house.url}/console/reload'></form><script>document.forms[0].submit()</script>"
    )
    with browsing(program("chromium"), tmp_path / "profile") as browser:
        browser.open(trap.as_uri(), "document.body && document.body.innerText.includes('That was not done')")
        assert "must be sent from the console itself" in browser.text()
    assert house.gateway.served_key.current().version == before


NUMBERS_ALIGN = """[...document.querySelectorAll('table.cards')].every(table => {
    const heads = [...table.tHead.rows[0].cells];
    return [...table.tBodies[0].rows].every(row => [...row.cells].every((cell, place) =>
        getComputedStyle(cell).textAlign === getComputedStyle(heads[place]).textAlign))})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_real_browser_shows_it_at_every_width(house, place, program, tmp_path, width):
    """Nothing sticks out sideways, the charts are drawn in colour, and numbers stand under their headings."""
    house.embed(["one"], place[1]["acme"])
    house.gateway.logger.error("a long thing", reason="x" * 400)
    with browsing(program("chromium"), tmp_path / "profile") as browser:
        browser.resize(width, 900)
        browser.open(f"{house.url}/console", "document.getElementById('token')")
        assert browser.sticks_out() == []
        browser.evaluate(f"document.getElementById('token').value = '{TOKEN}'; document.forms[0].submit()")
        browser.wait_for("document.body.innerText.includes('Recent errors')")
        browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert browser.sticks_out() == []
        colours = "[...document.querySelectorAll('figure rect')].map(bar => getComputedStyle(bar).fill)"
        assert len(set(browser.evaluate(colours))) >= 3  # the style sheet reaches into the SVG
        assert browser.evaluate("document.querySelectorAll('figure svg').length") >= 3
        assert width < 800 or browser.evaluate(NUMBERS_ALIGN)
