"""Who may see the operator's page."""

from __future__ import annotations

import pytest

from regionmarker.errors import InputError
from regionmarker.gateway.console import LASTS_SECONDS, Sessions

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
