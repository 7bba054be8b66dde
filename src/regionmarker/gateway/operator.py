"""The operator: the one admin token, who may try it how often, and the sessions of browsers.

Wrong tokens are counted by the address that they come from, wherever they are given: the form, ``/console`` and
``/metrics`` alike. An address with too many is not listened to for a while; the operator, who sits elsewhere, notices
nothing. Behind a proxy that is not trusted everybody has the proxy's address: name it with ``--trusted-proxy``.

A browser's cookie holds the time at which it ends, a number of its own, and a MAC of both under a key derived from the
token. So it is good at every replica with the same token, and worthless once the token is changed. Who logs out ends
its number: in the tenants' database, which all replicas read, or, where there is none and so no replica, in memory.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter
from structlog.typing import FilteringBoundLogger

from regionmarker.gateway.connections import network_of
from regionmarker.gateway.errors import ApiError, retry_headers
from regionmarker.gateway.settings import check_token

LASTS_SECONDS = 8 * 3600
_TRIES = 5  # wrong tokens in a row; one more every _REFILL_SECONDS
_REFILL_SECONDS = 10.0
_KEPT = 10_000  # addresses


class Guesses:
    """How many wrong tokens an address may still give.

    Examples
    --------
    >>> guesses = Guesses(clock=lambda: 0.0)
    >>> for _ in range(5):
    ...     guesses.spend("192.0.2.1")
    >>> guesses.are_left("192.0.2.1"), guesses.are_left("192.0.2.2")
    (False, True)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # address -> tries, at what time
        self._most = _KEPT  # addresses, before those that need not be remembered are looked for

    def are_left(self, address: str) -> bool:
        return self._now(network_of(address)) >= 1.0

    def spend(self, address: str) -> None:
        place = network_of(address)
        if len(self._left) >= self._most:  # those who may try as often as anybody need not be remembered
            self._left = {one: kept for one, kept in self._left.items() if self._now(one) < _TRIES}
            self._most = max(_KEPT, 2 * len(self._left))  # not again for every guess, where thousands guess
        self._left[place] = (self._now(place) - 1.0, self._clock())

    def _now(self, place: str) -> float:
        left, then = self._left.get(place, (float(_TRIES), 0.0))
        return min(float(_TRIES), left + (self._clock() - then) / _REFILL_SECONDS)


class Operator:
    """Lets in who has the token.

    Parameters
    ----------
    token
        The admin token, at least sixteen letters long.
    logger, registry
        Where wrong ones are told and counted.
    clock
        Seconds that only go forward.
    """

    def __init__(
        self,
        token: str,
        logger: FilteringBoundLogger,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_token(token)
        self._token = hashlib.sha256(token.encode()).digest()
        self._logger = logger
        self._guesses = Guesses(clock)
        self._wrong = Counter(
            "regionmarker_operator_refused", "Wrong admin tokens, and tries after too many of them.", ["reason"],
            registry=registry,
        )  # fmt: skip

    def admit(self, given: str, address: str, path: str) -> None:
        """Return if this is the token, and refuse otherwise; who guessed too often is not even compared."""
        if not self._guesses.are_left(address):
            self._wrong.labels("limited").inc()
            raise ApiError(
                429, "rate_limit_exceeded", "too many wrong admin tokens: wait a minute",
                headers=retry_headers(_REFILL_SECONDS), kind="guesses",
            )  # fmt: skip
        if not given:
            raise ApiError(401, "invalid_api_key", "the admin token is needed, as a bearer token")
        if not hmac.compare_digest(hashlib.sha256(given.encode()).digest(), self._token):
            self._guesses.spend(address)
            self._wrong.labels("wrong").inc()
            self._logger.warning("somebody gave a wrong admin token", path=path, address=address)
            raise ApiError(401, "invalid_api_key", "that is not the admin token")


class Sessions:
    """Cookies of browsers that have logged in.

    Parameters
    ----------
    token
        The admin token.
    alone
        Whether this process is the only one: its cookies then end with it.
    clock
        Seconds since 1970.

    Examples
    --------
    >>> sessions = Sessions("a token of sixteen letters or more")
    >>> cookie = sessions.new()
    >>> sessions.is_session(cookie), sessions.is_session("1.2.3")
    (True, False)
    >>> sessions.end(cookie)
    >>> sessions.is_session(cookie)
    False
    """

    def __init__(self, token: str, *, alone: bool = False, clock: Callable[[], float] = time.time) -> None:
        check_token(token)
        salt = secrets.token_bytes(16) if alone else b""
        self._key = hmac.digest(token.encode(), b"regionmarker console session" + salt, "sha256")
        self._clock = clock
        self._ended: dict[str, int] = {}  # number -> when it would have ended by itself

    def new(self) -> str:
        return self._signed(int(self._clock()) + LASTS_SECONDS, secrets.token_hex(16))

    def is_session(self, value: str) -> bool:
        ends, number, _ = (*value.split("."), "", "", "")[:3]
        if not (ends.isascii() and ends.isdigit() and len(ends) <= 12):
            return False
        genuine = hmac.compare_digest(self._signed(int(ends), number).encode(), value.encode())
        return genuine and self._clock() < int(ends) and number not in self._ended

    def end(self, value: str) -> None:
        """Make a session worthless."""
        if self.is_session(value):
            number, ends = self.identify(value)
            now = self._clock()
            self._ended = {one: end for one, end in self._ended.items() if end > now} | {number: ends}

    @staticmethod
    def identify(value: str) -> tuple[str, int]:
        """Return the number of a session, and when it ends."""
        ends, number, _ = value.split(".")
        return number, int(ends)

    def _signed(self, ends: int, number: str) -> str:
        what = f"{ends}.{number}"
        return f"{what}.{hmac.new(self._key, what.encode(), 'sha256').hexdigest()}"
