"""A client's connection: how large a head may be, and how long everything may take.

What a stranger can make a server hold costs memory and descriptors before anyone knows who it is. So everything about a
connection has a bound: the bytes and the number of a request's headers; the time until they are there, between two
requests, and for the rest of a body that nobody will read; the time in which a client must take what it was sent. Who
goes beyond hears so in the one shape of errors, where it still can, and is counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from regionmarker.gateway.connections import Connections
from regionmarker.gateway.dialects.openapi import dialect_at
from regionmarker.gateway.errors import ApiError, error_body

_LINGER = 5.0  # seconds in which a connection that was closed may still take its last bytes
_SIP = 0.01  # seconds between two reads of a body that nobody wants; the loop would else read megabytes of it in a turn
_PIPELINED = 16  # requests that may wait behind another one of the same connection
_JSON = b"content-type: application/json\r\n"


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
        self._most_bytes, self._most_lines = limits.settings.header_bytes, limits.settings.header_count
        self._address = ""
        self._behind_proxy = False
        self._counted = False  # whether this connection is one of those that are counted
        self._under_way: deque[tuple[RequestResponseCycle, str | None]] = deque()  # requests, and whom they count for
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
        self._abandon()
        super().connection_lost(exc)
        self._unset_timer()
        if self._stall is not None:
            self._stall.cancel()
        if self._counted:
            self._counted = False
            self._limits.leave(self._address)

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
            elif self.cycle.response_complete:  # nobody reads the rest: it is let in by sips, and not for ever
                self.flow.pause_reading()
                self.loop.call_later(_SIP, self._sip)
                if self._timer is None:
                    self._timer = self.loop.call_later(self._settings.read, self._late)
        elif self.cycle is not None and self.cycle.response_complete and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _sip(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()

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
        self._head_bytes += len(url)
        if self._head_bytes > self._most_bytes:
            self._stop(*_TOO_LARGE)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_lines += 1
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._most_bytes or self._head_lines > self._most_lines:
            self._stop(*_TOO_LARGE)
        if self._in_head:  # what comes behind a body is no header: nobody asked for it, and the request is under way
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body, self._bodiless = False, True, 0
        self._unset_timer()
        if len(self.pipeline) >= _PIPELINED:
            self._stop(400, "invalid_http", "too many requests at once on one connection", "pipelined")
        address = self._forwarded_address() if self._behind_proxy else None
        if address is None or self._limits.enter_address(address):
            super().on_headers_complete()
        else:
            self._limits.refused.labels("address").inc()
            address, app, self.app = None, self.app, _turn_away
            super().on_headers_complete()
            self.app = app
        self._under_way.append((self.cycle, address))

    def on_body(self, body: bytes) -> None:
        self._bodiless = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._unset_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._under_way:
            _, address = self._under_way.popleft()
            if address is not None:
                self._limits.leave_address(address)
        super().on_response_complete()

    # ---- ends

    def _forwarded_address(self) -> str | None:
        """Return whom the proxy names, and let the application see that address, too."""
        named = [value for name, value in self.headers if name == b"x-forwarded-for"]
        if not named:
            return None  # it speaks for itself
        address = self._limits.client_of(b",".join(named).decode("latin-1"))
        if address is not None:
            self.scope["client"] = (address, 0)
        return address

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
        self._abandon()
        self._close()

    def _abandon(self) -> None:
        """Tell all requests under way that nobody waits for them; uvicorn tells the one that came last."""
        for cycle, address in self._under_way:
            cycle.disconnected = True
            cycle.message_event.set()
            if address is not None:
                self._limits.leave_address(address)
        self._under_way.clear()

    def _close(self) -> None:
        self.transport.close()
        self.loop.call_later(_LINGER, self.transport.abort)  # a client that takes nothing would keep it open for ever

    def _unset_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_MALFORMED = (400, "invalid_http", "this is not a valid HTTP request", "malformed")
_TOO_LARGE = (431, "headers_too_large", "the headers of the request are too many or too large", "head_size")


async def _turn_away(scope: Scope, _receive: Receive, send: Send) -> None:
    """Refuse a request behind a proxy whose client has too many under way."""
    error = ApiError(429, "rate_limit_exceeded", "too many requests at once: come back later")
    body = dialect_at(scope["path"]).error_body(error)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": body})
