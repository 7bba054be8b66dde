"""What went wrong lately, for the operator's page: the last warnings and errors of the log, as they were written.

It reads the log's own lines after they were redacted, so the page can show no more than the log does.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any, TextIO

import orjson

_LEVELS = ("warning", "error", "critical")


class Notices:
    r"""A stream that passes the log on and remembers its last complaints.

    Examples
    --------
    >>> import io
    >>> notices = Notices(io.StringIO())
    >>> _ = notices.write('{"level": "error", "event": "it broke"}\n{"level": "info", "event": "fine"}\n')
    >>> [line["event"] for line in notices.latest()]
    ['it broke']
    """

    def __init__(self, stream: TextIO, keep: int = 50) -> None:
        self._stream = stream
        self._kept: deque[dict[str, Any]] = deque(maxlen=keep)

    def write(self, text: str) -> int:
        """Pass ``text`` on, whole lines of JSON."""
        for line in text.splitlines():
            if any(f'"{level}"' in line for level in _LEVELS):
                with contextlib.suppress(orjson.JSONDecodeError):
                    entry = orjson.loads(line)
                    if isinstance(entry, dict) and entry.get("level") in _LEVELS:
                        self._kept.append(entry)
        return self._stream.write(text)

    def flush(self) -> None:
        """Pass it on."""
        self._stream.flush()

    def latest(self) -> list[dict[str, Any]]:
        """Return the last complaints, the newest first."""
        return list(reversed(self._kept))
