"""Clients' connections: how many there may be, from where, how large a head may be and how long everything may take.

What a stranger can make a server hold costs memory and descriptors before anyone knows who it is. So everything about a
connection has a bound: their number, in all and from one address; the bytes and the number of a request's headers; the
time until they are there, between two requests, and for the rest of a body that nobody will read; the time in which a
client must take what it was sent. Who goes beyond hears so in the one shape of errors, where it still can, and is
counted.

Behind a proxy all connections have the proxy's address. Where the proxy is one that the operator trusts, the address
that it names (``X-Forwarded-For``) counts instead, for as long as its request takes.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import httptools
from prometheus_client import CollectorRegistry, Counter, Gauge
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from regionmarker.errors import InputError
from regionmarker.gateway.errors import error_body
from regionmarker.gateway.settings import Settings

_LINGER = 5.0  # seconds in which a connection that was closed may still take its last bytes
_PIPELINED = 16  # requests that may wait behind another one of the same connection
_JSON = b"content-type: application/json\r\n"


class Connections:
    """Counts what is open and says what may come in.

    Parameters
    ----------
    settings
        The limits.
    registry
        Where it is counted.

    Examples
    --------
    >>> from pathlib import Path
    >>> connections = Connections(Settings(Path("k"), clients_per_address=1, trusted_proxies=()))
    >>> connections.enter("192.0.2.1"), connections.enter("192.0.2.1"), connections.enter("192.0.2.2")
    (None, 'address', None)
    """

    def __init__(self, settings: Settings, registry: CollectorRegistry | None = None) -> None:
        self.settings = settings
        self.most = settings.clients
        """Connections at once; less than the setting where the system gives us fewer descriptors."""
        self.open = 0
        self._by_address: dict[str, int] = {}
        self._proxies = parse_networks(settings.trusted_proxies)
        self.is_proxy = lru_cache(4096)(self._is_proxy)
        registry = registry or CollectorRegistry()
        self.refused = Counter(
            "regionmarker_connections_refused", "Connections that were ended for a limit.", ["reason"],
            registry=registry,
        )  # fmt: skip
        Gauge("regionmarker_connections", "Open connections of clients.", registry=registry).set_function(
            lambda: self.open
        )

    def enter(self, address: str) -> str | None:
        """Count one more connection; or say which limit it meets."""
        if self.open >= self.most:
            return "clients"
        if not self.is_proxy(address) and not self.enter_address(address):
            return "address"
        self.open += 1
        return None

    def leave(self, address: str) -> None:
        self.open -= 1
        if not self.is_proxy(address):
            self.leave_address(address)

    def enter_address(self, address: str) -> bool:
        """Count one connection, or one request behind a proxy, for an address; false where it has too many."""
        place = network_of(address)
        count = self._by_address.get(place, 0)
        if count >= self.settings.clients_per_address:
            return False
        self._by_address[place] = count + 1
        return True

    def leave_address(self, address: str) -> None:
        place = network_of(address)
        count = self._by_address[place] - 1
        if count:
            self._by_address[place] = count
        else:
            del self._by_address[place]

    def client_of(self, forwarded: str) -> str | None:
        """Return whom a chain of proxies names: the last address that is not itself a proxy's.

        What stands before it was written by the client, who may write anything.
        """
        for address in reversed(forwarded.split(",")):
            try:
                plain = str(ipaddress.ip_address(address.strip()))
            except ValueError:
                return None
            if not self.is_proxy(plain):
                return plain
        return None

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return not address  # a socket of this machine has no address
        return any(found in network for network in self._proxies)


def parse_networks(named: Sequence[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Read the addresses and networks of proxies.

    Examples
    --------
    >>> parse_networks(["10.0.0.0/8"])
    [IPv4Network('10.0.0.0/8')]
    >>> parse_networks(["nginx"])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: --trusted-proxy takes an address or a network such as 10.0.0.0/8, not 'nginx'
    """
    try:
        return [ipaddress.ip_network(one) for one in named]
    except ValueError:
        wrong = next(one for one in named if not _is_network(one))
        raise InputError(
            f"--trusted-proxy takes an address or a network such as 10.0.0.0/8, not {wrong[:80]!r}"
        ) from None


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


@lru_cache(4096)
def network_of(address: str) -> str:
    """Return what is counted as one place: an IPv4 address, or the 64 bits of IPv6 that one customer is given.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8::1:2:3"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found.packed[:8] + bytes(8), 64)))


class _LimitError(Exception):
    """A request went beyond a limit while its head was read; ends the parser's work."""


class ClientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a bound for everything that a client can make it hold.

    Parameters
    ----------
    limits
        What all connections share.
    given
        As uvicorn gives it.
    """

    def __init__(self, *, limits: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._settings = limits.settings
        self._address = ""
        self._behind_proxy = False
        self._counted = False  # whether this connection is one of those that are counted
        self._forwarded: deque[str | None] = deque()  # whom the requests under way are counted for
        self._failure: tuple[int, str, str, str] | None = None  # why the parser was stopped
        self._timer: asyncio.TimerHandle | None = None  # for a head, or a body that nobody reads
        self._stall: asyncio.TimerHandle | None = None  # for bytes that the client does not take
        self._in_head = self._in_body = self._new_head = False
        self._head_bytes = self._head_lines = 0
        self._upgraded = False
        self._bodiless = 0  # bytes of a body's phase that held nothing of the body

    # ---- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        reason = self._limits.enter(self._address)
        if reason is not None:
            self._end(503, "too_many_connections", "too many connections: come back later", reason)
            return
        self._counted = True
        self._behind_proxy = self._limits.is_proxy(self._address)
        self._timer = self.loop.call_later(self._settings.header_timeout, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_timer()
        if self._stall is not None:
            self._stall.cancel()
        if self._counted:
            self._counted = False
            self._limits.leave(self._address)
        for address in self._forwarded:
            if address is not None:
                self._limits.leave_address(address)
        self._forwarded.clear()

    def data_received(self, data: bytes) -> None:
        if not self._counted or self._upgraded or self.transport.is_closing():
            return  # it was told to go
        self._bodiless += len(data)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:  # ours, too: a callback's error is one
            self._end(*(self._failure or _MALFORMED))
            return
        except httptools.HttpParserUpgrade:  # there is no other protocol here: the request is served, and the last one
            self.cycle.keep_alive = False
            self._upgraded = True
            return
        if self.transport.is_closing():
            return
        if self._in_head:
            if not self._new_head:  # of the bytes in which a head begins, an unknown part is an earlier body's
                self._head_bytes += len(data)
            self._new_head = False
            if self._head_bytes > self._settings.header_bytes:
                self._end(*_TOO_LARGE)
            elif self._timer is None:
                self._timer = self.loop.call_later(self._settings.header_timeout, self._late)
        elif self._in_body:
            if self._bodiless > self._settings.header_bytes + len(data):
                self._end(400, "invalid_http", "the body of the request has no end", "malformed")
            elif self.cycle.response_complete and self._timer is None:
                self._timer = self.loop.call_later(self._settings.read, self._late)
        elif self.cycle is not None and self.cycle.response_complete and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(self._settings.read, self._stalled)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def timeout_keep_alive_handler(self) -> None:
        if not self.transport.is_closing():
            self._close()

    # ---- the parser's callbacks

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._new_head = True
        self._head_bytes = self._head_lines = 0

    def on_url(self, url: bytes) -> None:
        self.url += url
        self._grow_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_lines += 1
        self._grow_head(len(name) + len(value) + 4)
        if self._in_head:  # what comes behind a body is no header: nobody asked for it, and the request is under way
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body, self._bodiless = False, True, 0
        self._unset_timer()
        if len(self.pipeline) >= _PIPELINED:
            self._stop(400, "invalid_http", "too many requests at once on one connection", "pipelined")
        if not self._behind_proxy:
            super().on_headers_complete()
            return
        address = self._forwarded_address()
        over = address is not None and not self._limits.enter_address(address)
        self._forwarded.append(None if over else address)
        app = self.app
        if over:
            self._limits.refused.labels("address").inc()
            self.app = _turn_away
        super().on_headers_complete()
        self.app = app

    def on_body(self, body: bytes) -> None:
        self._bodiless = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._unset_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._forwarded:
            address = self._forwarded.popleft()
            if address is not None:
                self._limits.leave_address(address)
        super().on_response_complete()

    # ---- ends

    def _forwarded_address(self) -> str | None:
        """Return whom the proxy names, and let the application see that address, too."""
        named = [value for name, value in self.headers if name == b"x-forwarded-for"]
        if not named:
            return None
        address = self._limits.client_of(b",".join(named).decode("latin-1"))
        if address is not None:
            self.scope["client"] = (address, 0)
        return address

    def _grow_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._settings.header_bytes or self._head_lines > self._settings.header_count:
            self._stop(*_TOO_LARGE)

    def _stop(self, *failure: Any) -> None:
        self._failure = failure
        raise _LimitError

    def _late(self) -> None:
        self._timer = None
        if self._in_head:
            self._end(408, "request_timeout", "the headers of the request took too long", "head_time")
        else:  # nothing came, or nothing but a body that nobody reads
            self._limits.refused.labels("idle").inc()
            self._close()

    def _stalled(self) -> None:
        self._limits.refused.labels("stalled").inc()
        self.transport.abort()

    def _end(self, status: int, code: str, message: str, reason: str) -> None:
        """Say why and close; say nothing where an answer has begun, or one is due to a request before."""
        self._limits.refused.labels(reason).inc()
        self._unset_timer()
        under_way = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not (under_way or self.pipeline):
            body = error_body(message, status=status, code=code)
            head = b"".join(b"%b: %b\r\n" % pair for pair in self.server_state.default_headers)
            length = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + head + _JSON + length + body)
        self._close()

    def _close(self) -> None:
        self.transport.close()
        self.loop.call_later(_LINGER, self.transport.abort)  # a client that takes nothing would keep it open for ever

    def _unset_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_MALFORMED = (400, "invalid_http", "this is not a valid HTTP request", "malformed")
_TOO_LARGE = (431, "headers_too_large", "the headers of the request are too many or too large", "head_size")


async def _turn_away(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Refuse a request behind a proxy whose client has too many under way."""
    body = error_body("too many requests at once: come back later", status=429, code="rate_limit_exceeded")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": body})
