"""A tracer: which modules of the package are entered, and who calls whom."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = "regionmarker"
DIRECT, CALLBACK, INHERITED = "mutual", "by callback", "by inheritance"


class Walk:
    """Notes which modules are entered, in which order, and who calls whom, while it is switched on."""

    def __init__(self, root: Path) -> None:
        self.on = False
        self.modules: dict[str, None] = {}
        self.calls: dict[tuple[str, str], set[tuple[str, str]]] = {}
        self._seen: set[CodeType] = set()
        self._idle: set[CodeType] = set()
        self._root = f"{root}{os.sep}"
        self._names: dict[CodeType, str | None] = {}
        self._importing = threading.local()

    def watch(self) -> None:
        """Watch this thread and all that are started later."""
        threading.setprofile(self)
        sys.setprofile(self)

    def wait(self, seconds: float) -> None:
        """Let time pass, and leave out from now on what runs by the clock alone."""
        with self.recorded():
            time.sleep(seconds)
        self._idle, self.modules, self.calls = self._seen.copy(), {}, {}

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record what happens in the block, in every watched thread."""
        self.on = True
        try:
            yield
        finally:
            self.on = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take one event of the interpreter; see :func:`sys.setprofile`."""
        code = frame.f_code
        if code.co_name == "<module>":  # an import: whatever runs below it is not the job's
            depth = getattr(self._importing, "depth", 0)
            self._importing.depth = depth + (1 if event == "call" else -1 if event == "return" else 0)
            return
        if event != "call" or not self.on or getattr(self._importing, "depth", 0) > 0:
            return
        module = self._module(code)
        if module is None or code in self._idle:
            return
        self._seen.add(code)
        self.modules.setdefault(module)
        below = self._caller(frame.f_back)
        if below is None or (caller := self._module(below.f_code)) in (None, module):
            return
        self.calls.setdefault((str(caller), module), set()).add((code.co_qualname, _way(below, frame)))

    def _module(self, code: CodeType) -> str | None:
        """Return the module that a function's file is, None for other code and for the bodies of classes."""
        if code not in self._names:
            found = None
            if code.co_filename.startswith(self._root) and code.co_flags & inspect.CO_OPTIMIZED:
                parts = Path(code.co_filename).relative_to(self._root).with_suffix("").parts
                found = ".".join(part for part in parts if part != "__init__") or PACKAGE
            self._names[code] = found
        return self._names[code]

    def _caller(self, frame: FrameType | None) -> FrameType | None:
        while frame is not None and self._module(frame.f_code) is None:
            frame = frame.f_back
        return frame

    def facts(self) -> dict[str, Any]:
        """Return the modules and the mutual pairs as plain values."""
        pairs = sorted((a, b) for a, b in self.calls if a < b and (b, a) in self.calls)
        return {"modules": list(self.modules), "pairs": [self._pair(a, b) for a, b in pairs]}

    def _pair(self, one: str, other: str) -> dict[str, Any]:
        there, back = self.calls[one, other], self.calls[other, one]
        kinds = [_common({way for _, way in calls}) for calls in (there, back)]
        names = [sorted({name for name, _ in calls}) for calls in (there, back)]
        kind = next((kind for kind in kinds if kind != DIRECT), DIRECT)
        return {"modules": [one, other], "kind": kind, "calls": names[0], "back": names[1]}


def _way(caller: FrameType, called: FrameType) -> str:
    """Return how one function came to call another."""
    if "<locals>" in called.f_code.co_qualname or "<lambda>" in called.f_code.co_qualname:
        return CALLBACK
    selves = [frame.f_locals.get("self", frame) for frame in (caller, called)]
    return INHERITED if selves[0] is selves[1] else DIRECT


def _common(ways: set[str]) -> str:
    return ways.pop() if len(ways) == 1 else DIRECT if DIRECT in ways else CALLBACK
