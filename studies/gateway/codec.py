"""What reading, marking and encoding an answer costs, in processor time and without any socket."""

from __future__ import annotations

import time

import numpy as np
from prometheus_client import CollectorRegistry

from regionmarker import RegionMarker
from regionmarker.gateway.dialects import EmbeddingRequest, openai
from regionmarker.gateway.dialects.vector_formats import EncodedVector
from regionmarker.gateway.embeddings import pieces
from regionmarker.gateway.logs import make_logger
from regionmarker.gateway.marking import Marking, Rollout
from regionmarker.gateway.served_key import ServedKey
from regionmarker.gateway.tenants import Tenant
from regionmarker.gateway.upstreams.answer_reader import AnswerReader
from studies.gateway.stub import ROWS, WIDTH

_CHUNK = 1 << 18  # bytes that a socket gives at once


def once(body: bytes, count: int, served_key: ServedKey, request: EmbeddingRequest) -> dict[str, float]:
    """Serve one answer and return the milliseconds of each step."""
    rollout = Rollout("nobody", make_logger(), CollectorRegistry())
    marking = Marking(served_key.current(), Tenant(""), rollout)
    encode, encoding = request.formats[0].encode, 0.0

    def mark_block(rows: np.ndarray, first: int) -> list[EncodedVector]:
        nonlocal encoding
        served = marking.serve(rows, first)
        started = time.thread_time()
        vectors = encode(served)
        encoding += time.thread_time() - started
        return vectors

    started = time.thread_time()
    reader = AnswerReader(count, WIDTH, mark_block)
    for start in range(0, len(body), _CHUNK):
        reader.feed(body[start : start + _CHUNK])
    vectors = reader.finish()
    read = time.thread_time() - started
    for _ in pieces(openai.answer(request, vectors, count)):
        pass
    joined = time.thread_time() - started - read
    parts = {"encode": encoding, "join": joined, "all": read + joined}
    return {name: seconds * 1e3 for name, seconds in parts.items()}


def codec(rounds: int = 7) -> None:
    """Print the least processor time of some rounds."""
    rows = ROWS[:1200]
    marker = RegionMarker(seed=1, pool=64, reservoir=256).fit([f"text {n}" for n in range(1200)], embeddings=rows)
    served_key = ServedKey(marker.key_.serving())
    print("\n| batch | upstream's format | client's format | encode, ms | join, ms | read, mark, encode and join, ms |")
    print("|---|---|---|---|---|---|")
    for count in (1, 16, 256, 2048):
        for source, target in (("base64", "base64"), ("base64", "float"), ("float", "float")):
            asked, request = _request(source), _request(target)
            body = b"".join(openai.answer(asked, asked.formats[0].encode(ROWS[:count]), count))
            runs = [once(body, count, served_key, request) for _ in range(rounds)]
            best = min(runs, key=lambda run: run["all"])
            print(
                f"| {count} | {source} | {target} | {best['encode']:.2f} | {best['join']:.2f} | {best['all']:.2f} |",
                flush=True,
            )


def _request(form: str) -> EmbeddingRequest:
    return openai.read_request(b'{"model": "m", "input": "a text", "encoding_format": "%b"}' % form.encode())
