"""Faults, departures and new keys all at once: in the end nothing is in flight, and nothing unmarked has left."""

from __future__ import annotations

import asyncio
import base64
import json
import random

import numpy as np
from tests.support.gateways import MODEL, PATIENCE, eventually, vectors_of

from regionmarker import RegionMarker

REQUESTS, AT_ONCE = 1200, 24
PLACES = 6  # far fewer than come


def make_replies(dice: random.Random):
    """Replies of an upstream that is well, slow, busy, broken or gone, one after the other."""

    async def slow(stub, writer, question):
        await asyncio.sleep(dice.uniform(0.0, 0.03))
        await stub.good(writer, question)

    async def cut(stub, writer, question):
        body = json.dumps(stub.answer(question)).encode()
        stub.write(writer, 200, body[: len(body) // 2], content_length=str(len(body)))
        await writer.drain()
        writer.close()

    async def junk(stub, writer, question):
        stub.write(writer, 200, b'{"data": [{"index": 0, "embedding": [1')

    def status(code: int, body: bytes = b"{}"):
        async def reply(stub, writer, question):
            stub.write(writer, code, body)

        return reply

    slow.watched = True
    bad = (
        cut,
        junk,
        status(500),
        status(503),
        status(429),
        status(400),
        status(413),
        status(422, b'{"detail": "batch"}'),
    )
    while True:
        yield slow if dice.random() < 0.6 else dice.choice(bad)


async def ask(port: int, texts: list[str], leaves_after: float | None) -> bytes:
    """Ask, and leave after a moment or read the whole answer; b"" from who has left."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"model": MODEL, "input": texts, "encoding_format": "base64"}).encode()
    head = f"POST /v1/embeddings HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    try:
        writer.write(head.encode() + body)
        if leaves_after is None:
            return await asyncio.wait_for(reader.read(), PATIENCE)
        await asyncio.sleep(leaves_after)
        return b""
    finally:
        writer.close()


def test_a_queue_that_loses_no_places_under_faults_departures_and_reloads(
    serve, upstream, key_marker, sentences, embeddings
):
    other = RegionMarker(seed=2, pool=64, reservoir=256).fit(sentences[:1000], embeddings=embeddings[:1000])
    keys = [other.key_.serving(), key_marker.key_.serving()]
    dice = random.Random(17)
    serving = serve(attempts=2, patience=0.05, held_refusals=4)
    door = serving.gateway.admission
    door.capacity = door.queue = PLACES
    replies = make_replies(random.Random(1))

    async def reply(stub, writer, question):
        await next(replies)(stub, writer, question)

    reply.watched = True
    upstream.always = reply

    async def swap() -> None:
        for turn in range(10**9):
            serving.gateway.served_key.swap(keys[turn % 2])
            await asyncio.sleep(0.01)

    async def begin() -> asyncio.Task[None]:
        return asyncio.ensure_future(swap())

    async def main() -> list[tuple[list[str], bytes]]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one() -> tuple[list[str], bytes]:
            texts = dice.sample(sentences[:500], dice.randint(1, 4))
            async with turns:
                return texts, await ask(serving.port, texts, dice.uniform(0.0, 0.04) if dice.random() < 0.5 else None)

        return await asyncio.gather(*(one() for _ in range(REQUESTS)))

    swapping = serving.call(begin())
    answers = asyncio.run(main())
    serving.loop.call_soon_threadsafe(swapping.cancel)
    statuses = [int(answer.split(b" ", 2)[1]) for _, answer in answers if answer]
    assert {200, 429} <= set(statuses) <= {200, 400, 429, 502, 503}
    for texts, answer in answers:
        if answer.startswith(b"HTTP/1.1 200"):
            served = json.loads(answer.partition(b"\r\n\r\n")[2])["data"]
            rows = np.stack([np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in served])
            clean = vectors_of(texts)
            assert any((rows == marker.transform(clean)).all() for marker in (key_marker, other))
    eventually(lambda: serving.tasks() <= serving._tasks, "the last task's end")
    assert (door.in_flight, door.queued, door._lines) == (0, 0, {})
    eventually(serving.is_at_rest, "rest")
    upstream.always = None
    assert serving.post(sentences[:PLACES]).status_code == 200
