"""Is the gateway still serving what the key was made for: the same traffic, and the same model.

Traffic. Trigger regions were drawn from those that the corpus filled. When traffic moves elsewhere, fewer vectors carry
a mark, or more than the provider wanted, and the key should be fitted again. A sample of the rows that pass is counted
by region, and each full window is compared with the fit: the total variation distance, half the sum of absolute
differences of shares. Texts like the corpus lie at 0.03 to 0.06 from it, other corpora at 0.08 to 0.42
(docs/how-to/roll-out.md). Only the alarm leaves this file, never a count: counts by region would be the key by
instalments.

Model. A provider's model is changed under the same name more often than anybody likes to say. A few fixed, harmless
texts are embedded when a key is first served and again every few minutes: the same model gives the same vectors. The
first answers can be kept in a file, so that a restart does not take a changed model for the right one.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry, Gauge
from structlog.typing import FilteringBoundLogger

from regionmarker.errors import OutsideError
from regionmarker.files import atomic_path
from regionmarker.gateway.dialects import EmbeddingRequest
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.served_key import KeyVersion, ServedKey
from regionmarker.gateway.upstreams import Upstream
from regionmarker.marks.regions import region_shares
from regionmarker.vectors import Doubles, Floats

WINDOW = 2048
LIMIT = 0.1
_ROWS_AT_ONCE = 8  # of one block: a large batch is often many pieces of one document
_BLOCK = 256
EVERY_SECONDS = 300.0
SAME = 0.995
"""The least cosine between two answers of one model to one text: reduced precision and batching move it a little."""
TEXTS = (
    "The ferry leaves the harbour at half past seven.",
    "She planted tomatoes and basil along the south wall.",
    "The committee will publish its minutes on Thursday.",
    "An invoice is due thirty days after it was issued.",
    "Water boils at a lower temperature in the mountains.",
    "The second violin enters four bars after the first.",
)

Embed = Callable[[list[str]], Awaitable[Floats]]


class DriftAlarms:
    """Says in the log and in a metric that there is drift, and that it has ended."""

    def __init__(self, logger: FilteringBoundLogger, registry: CollectorRegistry) -> None:
        self._logger = logger
        self._gauge = Gauge(
            "regionmarker_drift_alarm", "1 while traffic or the upstream's model is another.", ["kind"],
            registry=registry,
        )  # fmt: skip
        for kind in ("regions", "model"):
            self._gauge.labels(kind).set(0)

    def regions(self, drifting: bool) -> None:
        self._gauge.labels("regions").set(drifting)
        if drifting:
            self._logger.error("DRIFT: traffic has left the fitted regions", kind="regions")
        else:
            self._logger.warning("traffic is back in the fitted regions", kind="regions")

    def model(self, trouble: str) -> None:
        """Say in which way the upstream's model is another; "" when it is not."""
        self._gauge.labels("model").set(bool(trouble))
        if trouble:
            self._logger.error("DRIFT: the upstream is another model", kind="model", reason=trouble)
        else:
            self._logger.warning("the upstream answers as before", kind="model")


class RegionWatch:
    """Raises an alarm when traffic leaves the fitted regions, and takes it back when it returns.

    Parameters
    ----------
    alarm
        Called with True when a window lies beyond the limit and the one before did not, and False the other way round.
    window
        Rows that are counted before they are compared.
    limit
        Total variation distance at which there is an alarm.

    Examples
    --------
    >>> watch = RegionWatch(print)
    >>> watch.state
    'not enough traffic yet'
    """

    def __init__(self, alarm: Callable[[bool], None], *, window: int = WINDOW, limit: float = LIMIT) -> None:
        self._alarm, self._window, self._limit = alarm, window, limit
        self._version = 0
        self._expected: Doubles | None = None
        self._learned = False
        self._regions: list[int] = []
        self._waiting: list[Floats] = []
        self._rows_waiting = 0
        self.drifting: bool | None = None  # None until the first window is full

    @property
    def state(self) -> str:
        """What the operator reads: one of four sentences, and no number."""
        if self.drifting is None:
            return "not enough traffic yet"
        where = "traffic has left" if self.drifting else "traffic lies in"
        return f"{where} the regions of {'the first traffic seen' if self._learned else 'the corpus'}"

    def see(self, key: KeyVersion, clean: Floats) -> None:
        if key.version != self._version:
            self._begin(key)
        step = -(-len(clean) // _ROWS_AT_ONCE)
        rows = clean[::step].copy() if step else clean
        self._waiting.append(rows)
        self._rows_waiting += len(rows)
        if self._rows_waiting >= min(_BLOCK, self._window):
            self._count(key)

    def _begin(self, key: KeyVersion) -> None:
        shares = key.marker.serving_.mark.shares
        self._version = key.version
        self._expected, self._learned = shares, shares is None
        self._regions, self._waiting, self._rows_waiting = [], [], 0
        self._settle(None)

    def _count(self, key: KeyVersion) -> None:
        self._regions += key.marker.regions(np.concatenate(self._waiting)).tolist()
        self._waiting, self._rows_waiting = [], 0
        if len(self._regions) >= self._window:
            bits = key.marker.serving_.mark.watched_bits
            found = region_shares(np.asarray(self._regions) & (2**bits - 1), bits)
            self._regions = []
            if self._expected is None:  # the serving key is an old one and does not say: take the first window for it
                self._expected = found
            self._settle(bool(total_variation(found, self._expected) > self._limit))

    def _settle(self, drifting: bool | None) -> None:
        before, self.drifting = self.drifting, drifting
        if bool(drifting) != bool(before):
            self._alarm(bool(drifting))


def total_variation(left: Doubles, right: Doubles) -> float:
    """Return the total variation distance of two distributions over the same regions.

    Examples
    --------
    >>> total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    0.25
    """
    return float(np.abs(left - right).sum() / 2)


class Canaries:
    """Asks the upstream the same texts again and again.

    Parameters
    ----------
    embed
        Asks the upstream, past marking: texts to clean rows (n, D).
    served_key
        Says which key is in use.
    alarm
        Called with what has changed, in one sentence, when it changes; and "" when all is well again.
    file
        Where the first answers are kept; ``None`` keeps them in memory.
    """

    def __init__(
        self, embed: Embed, served_key: ServedKey, alarm: Callable[[str], None], file: Path | None = None
    ) -> None:
        self._embed, self._served_key, self._alarm, self._file = embed, served_key, alarm, file
        self._first: Floats | None = None
        self._key_id = ""
        self.trouble: str | None = None  # None until it has asked

    @property
    def state(self) -> str:
        return "not asked yet" if self.trouble is None else self.trouble or "the upstream answers as before"

    async def check(self) -> None:
        """Ask once and compare; an upstream that does not answer is not this file's business."""
        key = self._served_key.current()
        if key.key_id != self._key_id:
            self._key_id, self._first = key.key_id, self._read(key.key_id, key.width)
        try:
            rows = await self._embed(list(TEXTS))
        except ApiError as error:
            if error.code == "upstream_invalid_response" and error.kind in ("model", "width"):
                self._settle(f"the upstream is another model: {error.message}")
            return
        if self._first is None:
            self._first = rows.copy()
            await asyncio.to_thread(self._write, self._first)
        cosines = np.einsum("ij,ij->i", rows, self._first) / (
            np.linalg.norm(rows, axis=1) * np.linalg.norm(self._first, axis=1)
        )
        changed = int((cosines < SAME).sum())
        self._settle(f"the upstream answers {changed} of {len(TEXTS)} canary texts differently" if changed else "")

    async def run(self, every: float = EVERY_SECONDS) -> None:
        while True:
            await self.check()
            await asyncio.sleep(every)

    def _settle(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble != (before or ""):
            self._alarm(trouble)

    def _read(self, key_id: str, width: int) -> Floats | None:
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8")) if self._file else {}
            if kept.get("key_id") != key_id or kept.get("texts") != list(TEXTS):
                return None
            rows = np.frombuffer(base64.b64decode(kept["embeddings"]), dtype="<f4").reshape(len(TEXTS), width)
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None  # not there, or damaged: ask afresh
        return rows.astype(np.float32)

    def _write(self, rows: Floats) -> None:
        if self._file is None:
            return
        kept = {
            "key_id": self._key_id,
            "texts": TEXTS,
            "embeddings": base64.b64encode(rows.astype("<f4").tobytes()).decode(),
        }
        try:
            with atomic_path(self._file, 0o600) as temporary:
                temporary.write_text(json.dumps(kept), encoding="utf-8")
        except OutsideError:
            self._file = None  # a read-only folder: memory will do until the next start


def clean_vectors(upstream: Upstream, served_key: ServedKey) -> Embed:
    """Return what asks the upstream past marking; the answers are compared here and go nowhere."""

    async def embed(texts: list[str]) -> Floats:
        request = EmbeddingRequest(texts, in_tokens=False, model=upstream.model, formats=())
        width = served_key.current().width
        answer = await upstream.embed(request, width, lambda rows, _: [row.tobytes() for row in rows])
        return np.stack([np.frombuffer(vector, dtype=np.float32) for vector in answer.vectors])

    return embed
