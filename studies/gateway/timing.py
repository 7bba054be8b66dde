"""Whether time tells marked answers from unmarked ones: ``python -m studies.gateway.timing [--requests 20000]``.

One connection asks for single texts, marked and unmarked in random order, from a gateway before the null upstream.
Printed are the medians, the Mann-Whitney test, and how well one answer's time separates the two (AUC; 0.5: not at all).
"""

from __future__ import annotations

import random
import socket
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

from regionmarker import RegionMarker
from studies._study import Command
from studies.gateway.load import request
from studies.gateway.stub import ROWS, row_of
from studies.gateway.targets import MODEL, gateway, make_key, stub

PAGE = "docs/results/gateway-performance.md"


def ask(connection: socket.socket, message: bytes) -> float:
    """Return the seconds until the whole answer is there."""
    started = time.perf_counter()
    connection.sendall(message)
    received = connection.recv(1 << 16)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    missing = length - len(body)
    while missing > 0:
        missing -= len(connection.recv(1 << 16))
    return time.perf_counter() - started


def main() -> None:
    """Ask, and tell."""
    parser = Command(__doc__, PAGE, smoke={"requests": 100})
    parser.add_argument("--requests", type=int, default=20_000)
    count = parser.read().requests
    with tempfile.TemporaryDirectory() as folder:
        key = make_key(Path(folder))
        marker = RegionMarker.load(key)
        is_marked = np.isin(marker.regions(ROWS), marker.key_.mark.regions)
        texts: dict[bool, list[str]] = {True: [], False: []}
        for number in range(4000):
            text = f"text {number:05}"
            texts[bool(is_marked[row_of(text)])].append(text)
        with stub() as upstream, gateway(key, upstream) as (port, _):
            template = request(port, 1, "base64", MODEL, words=1)
            plain = template.split(b"\r\n\r\n", 1)[1]
            body = plain.replace(b"word0", b"text 00000")
            head = template.split(b"\r\n\r\n", 1)[0].replace(b"%d" % len(plain), b"%d" % len(body))
            seconds: dict[bool, list[float]] = {True: [], False: []}
            rng = random.Random(0)
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for number in range(count + 500):
                    side = rng.random() < 0.5
                    text = rng.choice(texts[side][:200]).encode()
                    taken = ask(connection, head + b"\r\n\r\n" + body.replace(b"text 00000", text))
                    if number >= 500:  # the first ones warm up
                        seconds[side].append(taken)
    marked, clean = np.array(seconds[True]), np.array(seconds[False])
    test = mannwhitneyu(marked, clean)
    difference = np.median(marked) / np.median(clean) - 1.0
    print(f"{len(marked)} marked, median {np.median(marked) * 1e3:.3f} ms; {len(clean)} unmarked, ", end="")
    print(f"median {np.median(clean) * 1e3:.3f} ms; difference {difference:+.2%}")
    print(f"Mann-Whitney p = {test.pvalue:.3f}, AUC {test.statistic / len(marked) / len(clean):.4f}")


if __name__ == "__main__":
    main()
