"""What reading, marking and encoding an answer costs, in processor time and without any socket."""

from __future__ import annotations

import time

import numpy as np
from stub import ROWS, WIDTH

from regionmarker import RegionMarker
from regionmarker.gateway.dialects.openai import BASE64, NUMBERS, EncodedVector, Format, body_of, pieces
from regionmarker.gateway.marking import EveryoneMarked, Marking
from regionmarker.gateway.served_key import ServedKey
from regionmarker.gateway.tenants import Tenant
from regionmarker.gateway.upstreams.answer_reader import AnswerReader

_CHUNK = 1 << 18  # bytes that a socket gives at once


def once(body: bytes, count: int, hold: ServedKey, form: Format) -> dict[str, float]:
    """Serve one answer and return the milliseconds of each step."""
    key = hold.current()
    marking = Marking(key, Tenant(""), EveryoneMarked())
    encoding = 0.0

    def mark_block(rows: np.ndarray, first: int) -> list[EncodedVector]:
        nonlocal encoding
        served = marking.serve(rows, first)
        started = time.thread_time()
        vectors = form.encode(served)
        encoding += time.thread_time() - started
        return vectors

    started = time.thread_time()
    reader = AnswerReader(count, WIDTH, mark_block)
    for start in range(0, len(body), _CHUNK):
        reader.feed(body[start : start + _CHUNK])
    vectors = reader.finish()
    read = time.thread_time() - started
    for _ in pieces(body_of(vectors, "m", count, form.quote)):
        pass
    joined = time.thread_time() - started - read
    parts = {"encode": encoding, "join": joined, "all": read + joined}
    return {name: seconds * 1e3 for name, seconds in parts.items()}


def codec(rounds: int = 7) -> None:
    """Print the least processor time of some rounds."""
    rows = ROWS[:1200]
    marker = RegionMarker(seed=1, pool=64, reservoir=256).fit([f"text {n}" for n in range(1200)], embeddings=rows)
    hold = ServedKey(marker.key_.serving())
    print("\n| batch | upstream's format | client's format | encode, ms | join, ms | read, mark, encode and join, ms |")
    print("|---|---|---|---|---|---|")
    forms = {"base64": BASE64, "float": NUMBERS}
    for count in (1, 16, 256, 2048):
        for source, target in (("base64", "base64"), ("base64", "float"), ("float", "float")):
            asked = forms[source]
            body = b"".join(body_of(asked.encode(ROWS[:count]), "m", count, asked.quote))
            runs = [once(body, count, hold, forms[target]) for _ in range(rounds)]
            best = min(runs, key=lambda run: run["all"])
            print(
                f"| {count} | {source} | {target} | {best['encode']:.2f} | {best['join']:.2f} | {best['all']:.2f} |",
                flush=True,
            )
