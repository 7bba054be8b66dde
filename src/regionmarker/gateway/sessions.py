"""Who may see the operator's page: the admin token, or a cookie that only the admin token could have made.

The cookie holds the time at which it ends and a MAC of that time under a key derived from the token. Nothing is stored,
so it is good at every replica with the same token, and worthless once the token is changed.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable

from regionmarker.errors import InputError

COOKIE = "regionmarker_console"
LASTS_SECONDS = 8 * 3600
LEAST_LETTERS = 16
_TRIES = 5  # wrong tokens in a row, refilled at one in so many seconds
_REFILL_SECONDS = 10.0


class Sessions:
    """Lets the operator in.

    Parameters
    ----------
    token
        The admin token, at least sixteen letters long.
    clock
        Seconds since 1970.

    Examples
    --------
    >>> sessions = Sessions("a token of sixteen letters or more")
    >>> sessions.is_token("guess"), sessions.is_session(sessions.new()), sessions.is_session("1.2")
    (False, True, False)
    """

    def __init__(self, token: str, clock: Callable[[], float] = time.time) -> None:
        check_token(token)
        self._token = hashlib.sha256(token.encode()).digest()
        self._key = hmac.digest(token.encode(), b"regionmarker console session", "sha256")
        self._clock = clock
        self._tries = float(_TRIES)
        self._tried_at = clock()

    def is_token(self, given: str) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(hashlib.sha256(given.encode()).digest(), self._token)

    def may_try(self) -> bool:
        """Count one attempt to log in; false when there were too many lately."""
        now = self._clock()
        self._tries = min(float(_TRIES), self._tries + (now - self._tried_at) / _REFILL_SECONDS)
        self._tried_at = now
        if self._tries < 1.0:
            return False
        self._tries -= 1.0
        return True

    def new(self) -> str:
        """Return the value of a fresh cookie."""
        return self._signed(int(self._clock()) + LASTS_SECONDS)

    def is_session(self, value: str) -> bool:
        """Tell whether a cookie is ours and has not ended."""
        ends = value.partition(".")[0]
        if not (ends.isascii() and ends.isdigit() and len(ends) <= 12):
            return False
        return hmac.compare_digest(self._signed(int(ends)).encode(), value.encode()) and self._clock() < int(ends)

    def _signed(self, ends: int) -> str:
        return f"{ends}.{hmac.new(self._key, str(ends).encode(), 'sha256').hexdigest()}"


def check_token(token: str) -> None:
    """Refuse an admin token that could be guessed."""
    if len(token) < LEAST_LETTERS:
        raise InputError(
            f"the admin token has {len(token)} letters and needs {LEAST_LETTERS}: make one with openssl rand -hex 24"
        )
