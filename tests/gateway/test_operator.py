"""The operator's token and sessions: guessed slowly, ended for good."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry
from tests.support.gateways import Log

from regionmarker.errors import InputError
from regionmarker.gateway import operator
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.operator import LASTS_SECONDS, Guesses, Operator, Sessions

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
    assert not Sessions(TOKEN, alone=True, clock=lambda: now[0]).is_session(sessions.new())


def test_nobody_else_can_make_one(sessions):
    ends, number, mac = sessions.new().split(".")
    for forged in (
        "", ".", "..", "...", ends, f"{ends}.", f"{ends}.{mac}", f"{int(ends) + 1}.{number}.{mac}",
        f"{ends}.{number}.{mac[:-1]}", f"0{ends}.{number}.{mac}", f"{ends}.{number}.{mac}x", f"{ends}.{'0' * 32}.{mac}",
        f"{ends}.{number}.{'0' * 64}", f"{'9' * 5000}.{number}.{mac}", "\u0661.x.y", f"-{ends}.{number}.{mac}", "é.é.é",
        f"{ends}.{number}.{mac}.", f"{ends}.{number}x.{mac}",
    ):  # fmt: skip
        assert not sessions.is_session(forged), forged


def test_who_logs_out_has_logged_out(sessions, now):
    first, second = sessions.new(), sessions.new()
    assert first != second
    sessions.end(first)
    assert [sessions.is_session(one) for one in (first, second)] == [False, True]
    sessions.end("nonsense")
    now[0] += LASTS_SECONDS + 1
    sessions.end(sessions.new())
    assert len(sessions._ended) == 1  # what has ended by itself is forgotten


def test_tokens(now):
    log = Log()
    one = Operator(TOKEN, log, CollectorRegistry(), clock=lambda: now[0])
    one.admit(TOKEN, "192.0.2.1", "/metrics")
    for wrong in ("", TOKEN[:-1], TOKEN.upper(), "é", TOKEN + "\0"):
        with pytest.raises(ApiError) as refused:
            one.admit(wrong, "192.0.2.1", "/metrics")
        assert refused.value.status == 401
    assert TOKEN not in repr(vars(one))
    assert len(log.lines) == 4
    assert log.lines[0][1] == {"path": "/metrics", "address": "192.0.2.1"}
    with pytest.raises(InputError, match="has 5 letters and needs 16: make one with openssl rand -hex 24"):
        Sessions("short")


def test_guessing_is_slow(now):
    guesses = Guesses(clock=lambda: now[0])

    def try_often(address: str, times: int) -> int:
        done = 0
        for _ in range(times):
            if guesses.are_left(address):
                guesses.spend(address)
                done += 1
        return done

    assert (try_often("192.0.2.1", 9), try_often("192.0.2.2", 9)) == (5, 5)
    now[0] += 10
    assert try_often("192.0.2.1", 9) == 1
    assert (try_often("2001:db8::1", 9), try_often("2001:db8::2", 9)) == (5, 0)  # one customer's addresses


def test_addresses_do_not_fill_memory(now, monkeypatch):
    monkeypatch.setattr(operator, "_KEPT", 10)
    guesses = Guesses(clock=lambda: now[0])
    for number in range(1000):
        guesses.spend(f"192.0.2.{number % 250}")
        now[0] += 20.0
    assert len(guesses._left) <= 10


def test_guesses_from_thousands_of_addresses_cost_little_each(monkeypatch):
    """Looking through all addresses at every guess would keep everybody else waiting."""
    monkeypatch.setattr(operator, "_KEPT", 100)
    asked = 0

    def clock() -> float:
        nonlocal asked
        asked += 1
        return 0.0

    guesses = Guesses(clock=clock)
    for number in range(2000):
        guesses.spend(f"192.0.{number // 256}.{number % 256}")
    assert asked < 6 * 2000
    assert not any(guesses._left[f"192.0.0.{number}"][0] == 5.0 for number in range(100))  # all are remembered
