"""``/console``: the operator's page, plain HTML behind the admin token.

Status, traffic, tenants, the key's public name and commitment, recent errors. No script; a policy that forbids any; a
cookie that no script and no other site can use. Browsers log in with a form, programs send the token as a bearer. The
page asks the browser to load it again every few seconds, as long as the operator wants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from prometheus_client.metrics import MetricWrapperBase
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from regionmarker._version import __version__
from regionmarker.errors import OutsideError
from regionmarker.gateway.charts import BOTTOM, HEIGHT, LEFT, TOP, WIDTH, charts
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.gateway import Gateway
from regionmarker.gateway.operator import LASTS_SECONDS, Sessions
from regionmarker.gateway.tenants.accounts import Account

COOKIE = "regionmarker_console"
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_FORM_BYTES = 4096
_FORM_SECONDS = 10.0
_REFRESH = {"10": 10, "60": 60, "off": 0}  # what ?refresh= may say, in seconds; the first is what nobody asked for
_QUIET = ("timestamp", "level", "event", "logger")  # fields that have columns of their own, or none
_OURS = ("same-origin", "none", "")  # what a browser says of a request that no other site has made


Handler = Callable[["Console", Request], Awaitable[Response]]


def _for_people(handle: Handler) -> Handler:
    """Answer a browser with a page where something is refused; programs get the one shape of all errors."""

    @wraps(handle)
    async def handled(console: Console, request: Request) -> Response:
        try:
            return await handle(console, request)
        except ApiError as error:
            if "text/html" not in request.headers.get("accept", ""):
                raise
            answer = console._page("error.html.jinja", {"error": error}, error.status)
            answer.headers.update({name.decode(): value.decode() for name, value in error.headers})
            return answer

    return handled


class Console:
    """The pages under ``/console``."""

    def __init__(self, gateway: Gateway) -> None:
        from jinja2 import Environment, StrictUndefined

        self._gateway = gateway
        if gateway.operator is None:
            raise RuntimeError("there is no admin token")
        self._operator = gateway.operator
        self._sessions = Sessions(gateway.settings.admin_token, alone=gateway.accounts is None)
        self._pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        self._style = _template("console.css")

    @_for_people
    async def show(self, request: Request) -> Response:
        if not await self._is_operator(request):
            return self._login_form("Please log in again: the session has ended." if COOKIE in request.cookies else "")
        chosen = request.query_params.get("refresh", "")
        refresh = {"refresh": _REFRESH.get(chosen, next(iter(_REFRESH.values()))), "paces": _REFRESH}
        return self._page("console.html.jinja", {**await facts(self._gateway), **refresh})

    async def style(self, request: Request) -> Response:  # noqa: ARG002
        """Return the style sheet, which holds nothing secret."""
        return Response(self._style, media_type="text/css", headers={**_HEADERS, "cache-control": "max-age=3600"})

    @_for_people
    async def log_in(self, request: Request) -> Response:
        _same_site(request)
        try:
            self._operator.admit(await _field(request, "token"), address_of(request), request.url.path)
        except ApiError as error:
            if error.status not in (401, 429):
                raise
            return self._login_form(f"{error.message[:1].upper()}{error.message[1:]}.", error.status)
        answer = RedirectResponse("/console", 303, headers=_HEADERS)
        answer.set_cookie(
            COOKIE, self._sessions.new(), max_age=LASTS_SECONDS, path="/console", httponly=True, samesite="strict",
            secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto")),
        )  # fmt: skip
        return answer

    @_for_people
    async def log_out(self, request: Request) -> Response:
        """End the session here and at every replica, and take the cookie from the browser."""
        _same_site(request)
        cookie, accounts = request.cookies.get(COOKIE, ""), self._gateway.accounts
        if self._sessions.is_session(cookie):
            if accounts is not None:
                try:
                    await asyncio.to_thread(accounts.end_session, *self._sessions.identify(cookie))
                except OutsideError:
                    message = "the session cannot be ended just now, as the database does not answer: try again"
                    raise ApiError(503, "accounts_unavailable", message, kind="directory") from None
            self._sessions.end(cookie)
        answer = RedirectResponse("/console", 303, headers=_HEADERS)
        answer.delete_cookie(COOKIE, path="/console", httponly=True, samesite="strict")
        return answer

    @_for_people
    async def reload(self, request: Request) -> Response:
        """Load the key file again; the page says what came of it."""
        _same_site(request)
        if not await self._is_operator(request):
            raise ApiError(401, "invalid_api_key", "the admin token is needed")
        await self._gateway.reload_key()
        return RedirectResponse("/console", 303, headers=_HEADERS)

    async def _is_operator(self, request: Request) -> bool:
        """Say whether the operator asks, by a session or by a bearer token; too many wrong ones are refused."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            try:
                self._operator.admit(given.strip(), address_of(request), request.url.path)
            except ApiError as error:
                if error.status == 401:
                    return False
                raise
            return True
        cookie, accounts = request.cookies.get(COOKIE, ""), self._gateway.accounts
        if not self._sessions.is_session(cookie):
            return False
        if accounts is None:
            return True
        try:
            return not await asyncio.to_thread(accounts.has_ended, self._sessions.identify(cookie)[0])
        except OutsideError:  # nobody knows: the token itself still opens
            return False

    def _login_form(self, complaint: str, status: int = 200) -> Response:
        return self._page("login.html.jinja", {"complaint": complaint}, status)

    def _page(self, name: str, facts: Mapping[str, Any], status: int = 200) -> Response:
        html = self._pages.from_string(_template(name)).render(**facts)
        return Response(html, status, _HEADERS, media_type="text/html")


def _same_site(request: Request) -> None:
    """Refuse what another site's page sends; the cookie's own rule is the first line, this is the second."""
    if request.headers.get("sec-fetch-site", "") not in _OURS:
        raise ApiError(403, "forbidden", "this form must be sent from the console itself")


def address_of(request: Request) -> str:
    """Return where a request comes from; "" where that is not known."""
    return request.client.host if request.client else ""


async def _field(request: Request, name: str) -> str:
    body = b""
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _FORM_BYTES:
                    raise ApiError(413, "request_too_large", "the form is too large")
    except TimeoutError:
        raise ApiError(408, "request_timeout", "the form took too long") from None
    except ClientDisconnect:
        raise ApiError(400, "invalid_value", "the form did not come to its end") from None
    return parse_qs(body.decode("utf-8", "replace")).get(name, [""])[0]


def _template(name: str) -> str:
    return files("regionmarker.gateway").joinpath("templates", name).read_text(encoding="utf-8")


async def facts(gateway: Gateway) -> dict[str, Any]:
    """Return what the page shows: all that the operator may know."""
    key = gateway.served_key.current()
    return {
        "now": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "version": __version__,
        "alarms": _alarms(gateway),
        "status": _status(gateway),
        "key": [
            ("key id", key.key_id),
            ("commitment", key.commitment or "not known: export the serving key again"),
            ("version since the start", key.version),
            ("width and grid", f"{key.width}, {key.number_format.value}"),
            ("tenants in the key", len(key.labels)),
        ],
        "charts": charts(gateway.metrics.history.minutes()),
        "frame": {"width": WIDTH, "height": HEIGHT, "left": LEFT, "top": TOP, "bottom": BOTTOM},
        "traffic": _traffic(gateway),
        "tenants": await _tenants(gateway),
        "served": {"", *key.labels},
        "measured": sorted(gateway.rollout.measured.items()),
        "errors": _complaints(gateway, "errors"),
        "warnings": _complaints(gateway, "warnings"),
    }


def _alarms(gateway: Gateway) -> list[str]:
    """Return what the operator must not overlook."""
    rollout, reloader, canaries = gateway.rollout, gateway.key_reloader, gateway.canaries
    found = []
    if gateway.draining:
        found.append("This gateway is about to stop: it takes no new connections.")
    elif not gateway.upstream_seen:
        found.append(f"The upstream {gateway.upstream.name} has not been reached yet: nothing can be served.")
    if rollout.unmarked != "nobody":
        found.append(f"This gateway may serve UNMARKED vectors (--serve-unmarked {rollout.unmarked}).")
    if reloader is not None and reloader.trouble:
        found.append(f"The new key file is not used, the old key goes on serving: {reloader.trouble}.")
    if gateway.region_watch.drifting:
        found.append(f"Drift: {gateway.region_watch.state}. Fit a new key on texts like those that come now.")
    if canaries.trouble:
        found.append(f"Drift: {canaries.trouble}. Make a new key for the new model.")
    return found


def _status(gateway: Gateway) -> list[tuple[str, object]]:
    state = "draining" if gateway.draining else "ready" if gateway.upstream_seen else "waiting for the upstream"
    return [
        ("state", state),
        ("running since", gateway.started.strftime("%Y-%m-%d %H:%M:%S UTC")),
        ("upstream", f"{gateway.upstream.name}, model {gateway.upstream.model}"),
        ("model for clients", ", ".join(gateway.models)),
        ("marking", "everyone is marked" if gateway.rollout.unmarked == "nobody" else "STAGED, see above"),
        ("traffic", gateway.region_watch.state),
        ("upstream's model", gateway.canaries.state),
    ]


def _traffic(gateway: Gateway) -> list[tuple[str, int]]:
    metrics, admission = gateway.metrics, gateway.admission
    codes = _sums(metrics.requests, "code")
    return [
        ("requests", int(sum(codes.values()))),
        *((f"answered with {code}", int(count)) for code, count in sorted(codes.items())),
        *((f"refused for load: {why}", int(count)) for why, count in sorted(_sums(metrics.rejected, "reason").items())),
        ("vectors served", int(sum(_sums(metrics.embeddings, "tenant").values()))),
        ("tokens", int(sum(_sums(metrics.tokens, "tenant").values()))),
        ("inputs under way", admission.in_flight),
        ("inputs waiting", admission.queued),
        ("bad upstream answers", int(sum(_sums(metrics.upstream_invalid, "kind").values()))),
    ]


async def _tenants(gateway: Gateway) -> list[Account] | str | None:
    """Return the accounts; None without a database, and a sentence where it does not answer."""
    if gateway.accounts is None:
        return None
    try:
        return await asyncio.to_thread(gateway.accounts.all)
    except OutsideError as error:
        return str(error)


def _sums(metric: MetricWrapperBase, label: str) -> dict[str, float]:
    """Add a counter up by one of its labels."""
    sums: dict[str, float] = {}
    for family in metric.collect():
        for sample in family.samples:
            if sample.name.endswith("_total"):
                sums[sample.labels[label]] = sums.get(sample.labels[label], 0.0) + sample.value
    return sums


def _complaints(gateway: Gateway, kind: str) -> list[dict[str, str]]:
    return [_line(entry) for entry in (gateway.recent_errors.latest(kind) if gateway.recent_errors else [])]


def _line(entry: dict[str, Any]) -> dict[str, str]:
    details = " ".join(f"{name}={value}" for name, value in entry.items() if name not in _QUIET)
    return {
        "timestamp": str(entry.get("timestamp", ""))[:19].replace("T", " "),
        "level": str(entry.get("level", "")),
        "event": str(entry.get("event", "")),
        "details": details,
    }
