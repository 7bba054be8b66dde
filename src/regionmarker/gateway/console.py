"""Who may see the operator's page: the admin token, or a cookie that only the admin token could have made.

The cookie holds the time at which it ends and a MAC of that time under a key derived from the token. Nothing is stored,
so it is good at every replica with the same token, and worthless once the token is changed.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from regionmarker.errors import InputError
from regionmarker.gateway.errors import ApiError

if TYPE_CHECKING:
    from regionmarker.gateway.operations import Operations

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


# ``/console``: the operator's page, plain HTML behind the admin token.  Status, traffic, tenants, the key's public
# name and commitment, recent errors. No script; a policy that forbids any; a cookie that no script and no other site
# can use. Browsers log in with a form, programs send the token as a bearer.

_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_FORM_BYTES = 4096
_OURS = ("same-origin", "none", "")  # what a browser says of a request that no other site has made


class Console:
    """The pages under ``/console``."""

    def __init__(self, operations: Operations, token: str) -> None:
        from jinja2 import Environment, StrictUndefined

        self._operations = operations
        self._sessions = Sessions(token)
        self._pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        self._style = _template("console.css")

    def routes(self) -> list[BaseRoute]:
        """Return what is added to the gateway's routes."""
        return [
            Route("/console", self.show, methods=["GET"]),
            Route("/console/style.css", self.style, methods=["GET"]),
            Route("/console/login", self.log_in, methods=["POST"]),
            Route("/console/logout", self.log_out, methods=["POST"]),
            Route("/console/reload", self.reload, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Show the page, or the form to log in."""
        if not self._is_operator(request):
            return self._login_form("")
        return self._page("console.html.jinja", await self._operations.facts())

    async def style(self, request: Request) -> Response:  # noqa: ARG002
        """Return the style sheet, which holds nothing secret."""
        return Response(self._style, media_type="text/css", headers={**_HEADERS, "cache-control": "max-age=3600"})

    async def log_in(self, request: Request) -> Response:
        """Exchange the token for a cookie."""
        _same_site(request)
        if not self._sessions.may_try():
            return self._login_form("Too many attempts: wait a minute.", 429)
        if not self._sessions.is_token(await _field(request, "token")):
            self._operations.gateway.logger.warning("somebody gave a wrong admin token")
            return self._login_form("That is not the admin token.", 401)
        answer = RedirectResponse("/console", 303, headers=_HEADERS)
        answer.set_cookie(
            COOKIE, self._sessions.new(), max_age=LASTS_SECONDS, path="/console", httponly=True, samesite="strict",
            secure=_is_https(request),
        )  # fmt: skip
        return answer

    async def log_out(self, request: Request) -> Response:
        """Take the cookie back."""
        _same_site(request)
        answer = RedirectResponse("/console", 303, headers=_HEADERS)
        answer.delete_cookie(COOKIE, path="/console", httponly=True, samesite="strict")
        return answer

    async def reload(self, request: Request) -> Response:
        """Load the key file again; the page says what came of it."""
        _same_site(request)
        if not self._is_operator(request):
            raise ApiError(401, "invalid_api_key", "the admin token is needed")
        await self._operations.reload()
        return RedirectResponse("/console", 303, headers=_HEADERS)

    def _is_operator(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._sessions.is_token(given.strip())
        return self._sessions.is_session(request.cookies.get(COOKIE, ""))

    def _login_form(self, complaint: str, status: int = 200) -> Response:
        return self._page("login.html.jinja", {"complaint": complaint}, status)

    def _page(self, name: str, facts: Mapping[str, Any], status: int = 200) -> Response:
        html = self._pages.from_string(_template(name)).render(**facts)
        return Response(html, status, _HEADERS, media_type="text/html")


def _same_site(request: Request) -> None:
    """Refuse what another site's page sends; the cookie's own rule is the first line, this is the second."""
    if request.headers.get("sec-fetch-site", "") not in _OURS:
        raise ApiError(403, "forbidden", "this form must be sent from the console itself")


async def _field(request: Request, name: str) -> str:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _FORM_BYTES:
            raise ApiError(413, "request_too_large", "the form is too large")
    return parse_qs(body.decode("utf-8", "replace")).get(name, [""])[0]


def _is_https(request: Request) -> bool:
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"


def _template(name: str) -> str:
    return files("regionmarker.gateway").joinpath("templates", name).read_text(encoding="utf-8")
