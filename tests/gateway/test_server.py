"""The gateway as a process: SIGTERM drops nothing, kill -9 needs no repair, a new key changes answers whole."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import aiohttp
import httpx2
import numpy as np
import pytest
from tests.support.gateways import MODEL, PATIENCE, error_of, eventually, rows_of, vectors_of

from regionmarker import RegionMarker


class Process:
    """``regionmarker serve`` as an operator starts it."""

    def __init__(self, folder, upstream, *options: str) -> None:
        command = [sys.executable, "-m", "regionmarker", "serve", "--key", "k.rmkey", "--port", "0"]
        self.running = subprocess.Popen(
            [*command, "--upstream", upstream.spec, *options],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "REGIONMARKER_UPSTREAM_API_KEY": "sk-canary-upstream"},
        )
        first = json.loads(self.running.stderr.readline())
        assert first["event"] == "listening"
        self.lines = [first]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = f"http://127.0.0.1:{first['port']}"

    def _read(self) -> None:
        for line in self.running.stderr:
            self.lines.append(json.loads(line))

    def wait(self) -> int:
        code = self.running.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.running.stderr.close()
        return code

    def end(self) -> None:
        if self.running.poll() is None:
            self.running.kill()
            self.wait()


@pytest.fixture
def start(real_marker, upstream, tmp_path):
    real_marker.save(tmp_path / "k.rmkey")
    started = []

    def begin(*options: str) -> Process:
        started.append(Process(tmp_path, upstream, *options))
        return started[-1]

    yield begin
    for process in started:
        process.end()


async def ask_until_told_to_go(url: str, clients: int, running: asyncio.Event) -> list[int]:
    """Let clients ask over connections that they keep, until an answer tells them that the connection is closed."""
    statuses: list[int] = []

    async def client(number: int) -> None:
        connector = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(connector=connector) as session:
            while True:
                body = {"model": MODEL, "input": [f"text {number}"]}
                async with session.post(f"{url}/v1/embeddings", json=body) as response:
                    await response.read()
                    statuses.append(response.status)
                    if len(statuses) >= clients:
                        running.set()
                    if response.headers.get("connection") == "close":
                        return

    await asyncio.gather(*(client(number) for number in range(clients)))
    return statuses


def test_those_who_come_while_the_loop_is_busy_are_let_in_within_a_few_turns(serve):
    """One a turn would be too few: under load, a turn takes as long as a hundred answers."""
    serving = serve()
    held, released = threading.Event(), threading.Event()

    def busy() -> None:
        held.set()
        released.wait(PATIENCE)

    serving.loop.call_soon_threadsafe(busy)
    assert held.wait(PATIENCE)
    clients = [socket.create_connection(("127.0.0.1", serving.port)) for _ in range(64)]

    async def turns_until_all_are_in() -> int:
        turns = 0
        while len(serving.server.server_state.connections) < len(clients):
            await asyncio.sleep(0)
            turns += 1
        return turns

    turns = asyncio.run_coroutine_threadsafe(turns_until_all_are_in(), serving.loop)
    released.set()
    assert turns.result(PATIENCE) < 16
    for client in clients:
        client.close()


def test_sigterm_under_load_drops_nothing(start, upstream):
    async def unhurried(stub, writer, question):
        await asyncio.sleep(0.05)
        await stub.good(writer, question)

    upstream.always = unhurried
    process = start("--drain-delay", "2", "--grace", "60")

    async def main() -> list[int]:
        running = asyncio.Event()
        load = asyncio.ensure_future(ask_until_told_to_go(process.url, 16, running))
        await running.wait()
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{process.url}/readyz") as response:
                assert response.status == 200
            process.running.send_signal(signal.SIGTERM)
            while True:  # it still answers, and says that it is going
                async with session.get(f"{process.url}/readyz") as response:
                    if response.status == 503:
                        assert (await response.json())["error"]["code"] == "draining"
                        break
        return await asyncio.wait_for(load, PATIENCE)

    statuses = asyncio.run(main())  # any connection that breaks raises
    assert set(statuses) == {200}
    assert len(statuses) > 16
    assert process.wait() == 0
    assert process.lines[-1]["event"] == "stopped"


def test_a_request_that_takes_longer_than_the_grace_ends_in_an_error_and_the_process_ends_all_the_same(start, upstream):
    async def never(stub, writer, question):
        await asyncio.sleep(3600)

    never.watched = True
    process = start("--drain-delay", "0", "--grace", "1")
    upstream.always = never
    failures = []

    def ask() -> None:
        try:
            failures.append(
                httpx2.post(f"{process.url}/v1/embeddings", json={"model": MODEL, "input": "a"}, timeout=60)
            )
        except httpx2.HTTPError as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(lambda: upstream.requests, "the request")
    process.running.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    thread.join(PATIENCE)
    assert not isinstance(failures[0], httpx2.Response) or failures[0].status_code >= 500


def test_kill_minus_nine_needs_no_repair(start, upstream, real_marker, tmp_path):
    process = start()
    before = [(tmp_path / name).read_bytes() for name in ("k.rmkey", "k.rmkey.secret")]
    assert httpx2.post(f"{process.url}/v1/embeddings", json={"model": MODEL, "input": "a"}).status_code == 200
    process.running.kill()
    assert process.wait() == -signal.SIGKILL
    assert [(tmp_path / name).read_bytes() for name in ("k.rmkey", "k.rmkey.secret")] == before
    again = start()
    response = httpx2.post(f"{again.url}/v1/embeddings", json={"model": MODEL, "input": "a"})
    np.testing.assert_array_equal(rows_of(response), real_marker.transform(vectors_of(["a"])))
    again.running.send_signal(signal.SIGINT)  # as Ctrl-C does
    assert again.wait() == 0


def test_a_new_key_under_load_gives_every_answer_one_version(serve, key_marker, sentences, embeddings):
    """Answers of many blocks, several parts each, while the key changes all the time."""
    other = RegionMarker(seed=2, pool=64, reservoir=256).fit(sentences[:1000], embeddings=embeddings[:1000])
    keys = [key_marker.key_.serving(), other.key_.serving()]
    serving = serve()
    texts = sentences[:300]
    clean = vectors_of(texts)
    wanted = [marker.transform(clean) for marker in (key_marker, other)]
    assert (wanted[0] != wanted[1]).any(axis=1).mean() > 0.2
    swaps = 0

    async def swap() -> None:
        nonlocal swaps
        while True:
            swaps += 1
            serving.gateway.served_key.swap(keys[swaps % 2])
            await asyncio.sleep(0.001)

    async def begin() -> asyncio.Task[None]:
        return asyncio.ensure_future(swap())

    task = serving.call(begin())
    seen = set()
    for _ in range(30):
        served = rows_of(serving.post(texts, encoding_format="base64"))
        matches = [bool((served == one).all()) for one in wanted]
        assert any(matches)
        seen.add(matches.index(True))
    serving.loop.call_soon_threadsafe(task.cancel)
    assert seen == {0, 1}
    assert serving.gateway.served_key.current().version > 30


def test_draining_closes_connections(serve):
    serving = serve()
    assert "connection" not in serving.post("a").headers
    serving.gateway.draining = True
    assert serving.post("a").headers["connection"] == "close"
    error_of(serving.client.get("/readyz"), 503, "draining")
