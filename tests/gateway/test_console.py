"""The operator's page: behind the token, without scripts, in a real browser."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from tests.support.browser import browsing
from tests.support.running import running

from regionmarker.errors import InputError
from regionmarker.gateway.console import LASTS_SECONDS, Sessions
from regionmarker.gateway.gateway import open_gateway
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.keys.commitment import commit, serving_with_commitment
from regionmarker.keys.files import save_serving
from regionmarker.keys.key import key_from_key

TOKEN = "correct horse battery staple"


@pytest.fixture
def now():
    return [1_000_000.0]


@pytest.fixture
def sessions(now):
    return Sessions(TOKEN, clock=lambda: now[0])


def test_a_cookie_lasts_its_hours(sessions, now):
    cookie = sessions.new()
    assert sessions.is_session(cookie)
    now[0] += LASTS_SECONDS - 1
    assert sessions.is_session(cookie)
    now[0] += 1
    assert not sessions.is_session(cookie)


def test_a_replica_with_the_same_token_takes_it_and_another_does_not(sessions, now):
    assert Sessions(TOKEN, clock=lambda: now[0]).is_session(sessions.new())
    assert not Sessions(TOKEN + "!", clock=lambda: now[0]).is_session(sessions.new())


def test_nobody_else_can_make_one(sessions):
    ends, _, mac = sessions.new().partition(".")
    for forged in (
        "", ".", ends, f"{ends}.", f"{int(ends) + 1}.{mac}", f"{ends}.{mac[:-1]}", f"0{ends}.{mac}", f"{ends}.{mac}x",
        f"{ends}.{'0' * 64}", f"{'9' * 5000}.{mac}", "\u0661.x", f"-{ends}.{mac}", "é.é",
    ):  # fmt: skip
        assert not sessions.is_session(forged), forged


def test_tokens(sessions):
    assert sessions.is_token(TOKEN)
    assert not any(sessions.is_token(wrong) for wrong in ("", TOKEN[:-1], TOKEN.upper(), "é", TOKEN + "\0"))
    assert TOKEN not in repr(vars(sessions))
    with pytest.raises(InputError, match="has 5 letters and needs 16: make one with openssl rand -hex 24"):
        Sessions("short")


def test_guessing_is_slow(sessions, now):
    assert [sessions.may_try() for _ in range(7)] == [True] * 5 + [False] * 2
    now[0] += 10
    assert [sessions.may_try() for _ in range(2)] == [True, False]


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
        "ready", key.id, commit(key), "wordllama", "everyone is marked", "vectors served", "200: 1", "acme", "77",
        "zenith", "newcomer", "not in the key", "tenant is not in the key", "not enough traffic yet",
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
    ended = house.ask("/console/logout", body=b"", cookie=cookie.split(";")[0])[1]["set-cookie"]
    assert "max-age=0" in ended.lower()


def test_every_answer_forbids_scripts_frames_and_keeping(house):
    for path in ("/console", "/console/style.css"):
        headers = house.ask(path, token=TOKEN)[1]
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'; form-action 'self'")
        assert headers["x-content-type-options"] == "nosniff"
    assert page(house)[0]["cache-control"] == "no-store"
    html = page(house)[1]
    assert not re.search(r"<script|<style|style=| on\w+=|https?://", html)


def test_other_sites_cannot_use_its_forms(house):
    for path in ("/console/login", "/console/logout", "/console/reload"):
        for site in ("cross-site", "same-site"):
            assert house.ask(path, body=b"", token=TOKEN, sec_fetch_site=site)[0] == 403


def test_names_and_reasons_stay_text(house):
    house.gateway.logger.error("a bad thing", reason="<script>alert(1)</script>")
    html = page(house)[1]
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>" not in html


def test_without_a_token_there_is_no_console(place):
    folder, _ = place
    with running(open_gateway(Settings(folder / "serving.rmkey"))) as house:
        assert house.ask("/console")[0] == 404


def test_guessing_is_stopped(place):
    folder, _ = place
    with running(open_gateway(Settings(folder / "serving.rmkey", admin_token=TOKEN))) as house:
        statuses = [log_in(house, "wrong")[0] for _ in range(12)]
        assert statuses[:5] == [401] * 5
        assert 429 in statuses
        assert b"wrong admin token" in house.ask("/console", token=TOKEN)[2]


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
        browser.open(trap.as_uri(), "document.body && document.body.innerText.includes('error')")
        assert "must be sent from the console itself" in browser.text()
    assert house.gateway.served_key.current().version == before
