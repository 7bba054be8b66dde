"""Structured logs that hold no secrets: only fields on a list are written, and what looks like a key is blanked.

A deny-list forgets the one field that matters. So a field that is not listed here is written as ``[redacted]``, and an
exception as its type and the lines it passed, without its message and without local variables: messages of other
people's libraries like to repeat URLs, headers and texts.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import traceback
from collections import deque
from collections.abc import MutableMapping
from typing import Any, TextIO

import orjson
import structlog

from regionmarker.terminal import plain

FIELDS = frozenset(
    {
        "event", "level", "timestamp", "logger", "exception",
        "request_id", "tenant", "place", "status", "code", "kind", "param", "inputs", "tokens", "seconds", "mode",
        "upstream", "attempt", "wait", "model", "host", "port", "path", "version", "key_id", "commitment",
        "in_flight", "queued", "connections", "signal", "reason", "share", "count", "address",
    }
)  # fmt: skip
_KEYLIKE = re.compile(r"(?i)\b(bearer\s+\S+|(sk|rm|key)[-_][a-z0-9_-]{8,})")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_COMPLAINTS = {"warning": "warnings", "error": "errors", "critical": "errors"}


def redact(_logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blank every field that is not listed, and whatever looks like a key; a structlog processor.

    Examples
    --------
    >>> redact(None, "", {"event": "sent Bearer abc", "input": "my text", "status": 200})
    {'event': 'sent [redacted]', 'input': '[redacted]', 'status': 200}
    """
    if event.pop("exc_info", None):
        event["exception"] = _outline(sys.exception())
    for name, value in event.items():
        if name not in FIELDS:
            event[name] = "[redacted]"
        elif isinstance(value, str):
            event[name] = _KEYLIKE.sub("[redacted]", value)
        elif not isinstance(value, int | float | None):
            event[name] = f"[{type(value).__name__}]"
    return event


def _outline(error: BaseException | None) -> str:
    """Return an exception's type and the places it passed, and not what it says."""
    if error is None:
        return ""
    places = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__} at {' > '.join(places)}"


def make_logger(level: str = "info", stream: TextIO | None = None) -> structlog.typing.FilteringBoundLogger:
    """Return a logger that writes one JSON object per line.

    Examples
    --------
    >>> import io
    >>> lines = io.StringIO()
    >>> make_logger(stream=lines).info("request refused", status=429, api_key="secret")
    >>> '"status":429' in lines.getvalue(), "secret" in lines.getvalue()
    (True, False)
    """
    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream or sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            redact,
            structlog.processors.JSONRenderer(lambda event, **_: orjson.dumps(event).decode()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        cache_logger_on_first_use=True,
    )
    return logger


class TerminalLines:
    r"""A stream for people: takes the log's lines of JSON and writes time, level, event and fields as plain words.

    Examples
    --------
    >>> import io
    >>> shown = io.StringIO()
    >>> line = '{"timestamp": "2026-01-02T03:04:05Z", "level": "info", "event": "up", "port": 1}'
    >>> _ = TerminalLines(shown).write(f"{line}\n")
    >>> shown.getvalue()
    '03:04:05 info    up port=1\n'
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        for line in text.splitlines():
            try:
                entry = orjson.loads(line)
                time, level, event = (str(entry.pop(name, "")) for name in ("timestamp", "level", "event"))
            except (orjson.JSONDecodeError, AttributeError):  # not the log's own
                self._stream.write(f"{plain(line)}\n")
                continue
            words = " ".join([event, *(f"{name}={value}" for name, value in entry.items())])
            self._stream.write(plain(f"{time[11:19]} {level:<7} {words}") + "\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def log_stream(stream: TextIO) -> TextIO | TerminalLines:
    """Return where to write the log: lines of JSON, and plain words where the stream is a terminal."""
    return TerminalLines(stream) if stream.isatty() else stream


class Forwarding(logging.Handler):
    """Sends the records of other libraries (uvicorn, aiohttp) into our log: their first words only, never arguments."""

    def __init__(self, logger: structlog.typing.FilteringBoundLogger) -> None:
        super().__init__(logging.WARNING)
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record's template; what would be filled into it stays out."""
        error = record.exc_info[1] if record.exc_info else None
        outline = {"exception": _outline(error)} if error else {}
        template = str(record.msg).strip().splitlines()[0] if record.msg else ""
        self._logger.log(record.levelno, template, logger=record.name, **outline)


class RecentErrors:
    r"""A stream that passes the log on and remembers its last warnings and errors, for the operator's page.

    It reads the log's own lines after they were redacted, so the page can show no more than the log does. Warnings
    have a room of their own: many of them push no error out.

    Examples
    --------
    >>> import io
    >>> recent_errors = RecentErrors(io.StringIO())
    >>> _ = recent_errors.write('{"level": "error", "event": "it broke"}\n{"level": "info", "event": "fine"}\n')
    >>> [line["event"] for line in recent_errors.latest()]
    ['it broke']
    >>> recent_errors.latest("warnings")
    []
    """

    def __init__(self, stream: TextIO | TerminalLines, keep: int = 50) -> None:
        self._stream = stream
        self._kept: dict[str, deque[dict[str, Any]]] = {kind: deque(maxlen=keep) for kind in ("errors", "warnings")}

    def write(self, text: str) -> int:
        for line in text.splitlines():
            if any(f'"{level}"' in line for level in _COMPLAINTS):
                with contextlib.suppress(orjson.JSONDecodeError):
                    entry = orjson.loads(line)
                    if isinstance(entry, dict) and entry.get("level") in _COMPLAINTS:
                        self._kept[_COMPLAINTS[entry["level"]]].append(entry)
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def latest(self, kind: str = "errors") -> list[dict[str, Any]]:
        """Return the last ``errors`` or ``warnings``, newest first."""
        return list(reversed(self._kept[kind]))
