"""The gateway as a process: starts listening, and on SIGTERM stops without dropping anything.

SIGTERM: ``/readyz`` says 503 at once and every answer closes its connection; after ``drain_delay`` the door is closed;
what is under way gets ``grace`` seconds; the exit code is 0, unless something could not be ended well (usage that was
not written). A second signal closes the door at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from types import FrameType

import uvicorn

from regionmarker.errors import OutsideError
from regionmarker.gateway.app import make_app
from regionmarker.gateway.client_protocol import ClientProtocol
from regionmarker.gateway.gateway import Gateway
from regionmarker.gateway.logs import Forwarding

_WATCHERS = 32
"""How often a listening socket is watched. libuv accepts one connection per watcher and turn of the loop, and under
load a turn takes long: with one watcher, the last of 256 clients who come at once would wait until the others have
gone."""

_OTHER_FILES = 64  # the database, the key, the log, the loop's own
_FEWEST = 16  # connections, however few files the system allows


class Server(uvicorn.Server):
    """uvicorn, with a drain that load balancers can see and an exit code of 0."""

    def __init__(self, gateway: Gateway) -> None:
        settings = gateway.settings
        config = uvicorn.Config(
            make_app(gateway),
            http=partial(ClientProtocol, limits=gateway.connections),  # type: ignore[arg-type]  # called like a class
            ws="none",
            proxy_headers=False,  # ours believes only those proxies that the operator trusts
            log_config=None,
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=max(1, round(settings.grace)),
            timeout_keep_alive=settings.idle,  # type: ignore[arg-type]  # a part of a second will do
            backlog=2048,
        )
        super().__init__(config)
        self.gateway = gateway
        self._close_at: float | None = None
        self._doors: list[socket.socket] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT, and SIGHUP for a reload; unlike uvicorn's, does not raise them again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        taken = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            for number, handler in taken.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begin to drain; at once when a person asks, or when asked twice."""
        if self._close_at is None:
            self.drain(0.0 if sig == signal.SIGINT else self.gateway.settings.drain_delay)
        else:
            self._close_at = 0.0

    def drain(self, delay: float) -> None:
        """Say that this gateway is about to stop, and close the door after ``delay`` seconds."""
        self.gateway.drain()
        self._close_at = time.monotonic() + delay

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so: whoever waits for that line may connect."""
        self._doors = [one.dup() for one in sockets or [] for _ in range(_WATCHERS)]
        await super().startup(self._doors)
        gateway, key = self.gateway, self.gateway.served_key.current()
        gateway.logger.info(
            "listening", host=gateway.settings.host, port=self.port, upstream=gateway.upstream.name,
            model=gateway.model, key_id=key.key_id, version=key.version,
        )  # fmt: skip

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown([*(sockets or []), *self._doors])

    @property
    def port(self) -> int:
        return int(self.servers[0].sockets[0].getsockname()[1])

    async def on_tick(self, counter: int) -> bool:
        if self._close_at is not None and time.monotonic() >= self._close_at:
            return True
        return await super().on_tick(counter)

    def _hang_up(self) -> None:
        self._reloading = asyncio.ensure_future(self.gateway.reload_key())


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that will listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise OutsideError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listening


def fit_descriptors(gateway: Gateway) -> None:
    """Make room for as many connections as the settings allow; allow fewer where the system gives no more."""
    settings = gateway.settings
    others = settings.connections + _WATCHERS + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= settings.clients + others:
        return
    wanted = settings.clients + others
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    gateway.connections.most = max(_FEWEST, min(settings.clients, wanted - others))
    if gateway.connections.most < settings.clients:
        gateway.logger.warning(
            "the system allows fewer open files than --clients needs", connections=gateway.connections.most
        )


def run(gateway: Gateway) -> None:
    """Serve until asked to stop; an OutsideError says that something could not be ended well."""
    listening = bind(gateway.settings.host, gateway.settings.port)
    fit_descriptors(gateway)
    handler = Forwarding(gateway.logger)
    others = [logging.getLogger(name) for name in ("uvicorn", "aiohttp", "asyncio")]
    for other in others:
        other.addHandler(handler)
    server = Server(gateway)
    gc.collect()
    gc.freeze()  # what is there now stays: to look through it takes a third of a second, in which nobody is served
    try:
        server.run(sockets=[listening])
    finally:
        for other in others:
            other.removeHandler(handler)
        listening.close()
    gateway.logger.info("stopped")
    failures = gateway.stop_failures or ["see its log"] * server.lifespan.error_occurred
    if failures:
        raise OutsideError(f"the gateway has stopped, but not well: {'; '.join(failures)}")
