"""Is the upstream still the model that the key was made for.

A provider's model is changed under the same name more often than anybody likes to say. A few fixed, harmless texts are
embedded when a key is first served and again every few minutes: the same model gives the same vectors. The first
answers can be kept in a file, so that a restart does not take a changed model for the right one.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np

from regionmarker.errors import OutsideError
from regionmarker.files import atomic_path
from regionmarker.gateway.failures import Failure
from regionmarker.gateway.keyhold import Keyhold
from regionmarker.protocols import Floats

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


class Canaries:
    """Asks the upstream the same texts again and again.

    Parameters
    ----------
    embed
        Asks the upstream, past marking: texts to clean rows (n, D).
    keyhold
        Says which key is in use.
    alarm
        Told what has changed, in one sentence, when it changes; and "" when all is well again.
    file
        Where the first answers are kept; ``None`` keeps them in memory.
    """

    def __init__(self, embed: Embed, keyhold: Keyhold, alarm: Callable[[str], None], file: Path | None = None) -> None:
        self._embed, self._keyhold, self._alarm, self._file = embed, keyhold, alarm, file
        self._first: Floats | None = None
        self._key_id = ""
        self.trouble: str | None = None  # None until it has asked

    @property
    def state(self) -> str:
        """What the operator is told."""
        return "not asked yet" if self.trouble is None else self.trouble or "the upstream answers as before"

    async def check(self) -> None:
        """Ask once and compare; an upstream that does not answer is not this file's business."""
        snapshot = self._keyhold.current()
        if snapshot.key_id != self._key_id:
            self._key_id, self._first = snapshot.key_id, self._read(snapshot.key_id, snapshot.width)
        try:
            rows = await self._embed(list(TEXTS))
        except Failure as failure:
            if failure.code == "upstream_invalid_response" and failure.kind in ("model", "width"):
                self._settle(f"the upstream is another model: {failure.message}")
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
        """Ask for ever."""
        while True:
            await self.check()
            await asyncio.sleep(every)

    def _settle(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble != (before or ""):
            self._alarm(trouble)

    def _read(self, key_id: str, width: int) -> Floats | None:
        """Read the first answers, if they are those of this key."""
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
