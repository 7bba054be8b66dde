"""How far the long trainings of a grid are: one file in the output folder, a line a minute, whichever worker trains."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

_EVERY = 60.0  # seconds


class TrainingLog:
    """Writes what a training says, and how much time is left.

    Parameters
    ----------
    path
        The file; several processes may append to it.
    what
        Which training, at the start of each line.
    clock
        Seconds that only go forward.

    Examples
    --------
    >>> import tempfile
    >>> seconds = iter([0.0, 50.0, 100.0])
    >>> log = TrainingLog(Path(tempfile.mkdtemp()) / "log.txt", "sst2, none", clock=lambda: next(seconds))
    >>> for step in (10, 20, 30):  # the first only starts the clock
    ...     log.progress(step, 100)
    >>> print(log.path.read_text(), end="")
    sst2, none: step 30 of 100, about 6 minutes left
    """

    def __init__(self, path: Path, what: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self._what, self._clock = path, what, clock
        self._first: tuple[int, float] | None = None  # the step and the time at which it was first told
        self._told = 0.0

    def say(self, words: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{self._what}: {words}\n")

    def progress(self, done: int, total: int) -> None:
        """Say how far it is, once a minute and at the end."""
        now = self._clock()
        if self._first is None:  # a training that goes on did the earlier steps at another time
            self._first, self._told = (done, now), now
        step, began = self._first
        if done < total and now - self._told < _EVERY:
            return
        self._told = now
        left = (now - began) / max(done - step, 1) * (total - done)
        self.say(f"step {done} of {total}, " + (f"about {_minutes(left)} left" if done < total else "done"))


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    if minutes >= 120:
        return f"{minutes / 60:.1f} hours"
    return f"{minutes} minute{'s' if minutes > 1 else ''}"
