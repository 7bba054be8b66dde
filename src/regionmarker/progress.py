"""How far a long job is: the callback that library code takes, and the one bar that draws it on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from regionmarker.terminal import plain

if TYPE_CHECKING:
    from rich.console import Console

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps done and the number of steps in all."""


@cache
def stderr_console() -> Console:
    """Return the console that bars are drawn on: a line printed on it goes above a bar, not through it.

    It prints what it is given: a path or a name in brackets is not taken for markup, and what would command a terminal
    is shown instead.
    """
    from rich.console import Console

    class PlainConsole(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(plain(part) if isinstance(part, str) else part for part in objects), **options)

    return PlainConsole(stderr=True, highlight=False, markup=False)


class Bar:
    """A bar that :func:`bar` opened; its method :meth:`update` is a :data:`Progress`."""

    def __init__(self, bars: Any = None, task: Any = None) -> None:
        self._bars, self._task = bars, task
        self._part: str | None = None

    def update(self, done: int, total: int) -> None:
        """Say how many steps are done, and how many there are."""
        if self._bars is not None:
            self._bars.update(self._task, completed=done, total=total)

    def advance(self, count: int = 1) -> None:
        """Say that ``count`` more steps are done."""
        if self._bars is not None:
            self._bars.advance(self._task, count)

    def part(self, description: str) -> Progress:
        """Return what tells of one part of the job: the bar takes its name, and reckons the time left from its start.

        Examples
        --------
        >>> with bar("reading", shown=False) as drawn:
        ...     texts, cells = drawn.part("texts"), drawn.part("cells")
        ...     texts(4096, 4096)
        ...     cells(1, 30)
        """

        def update(done: int, total: int) -> None:
            if self._bars is not None and self._part != description:
                self._part = description
                self._bars.reset(self._task, description=description, completed=done, total=total)
            self.update(done, total)

        return update

    def note(self, words: str) -> None:
        """Show a few words beside the count, such as the cost so far."""
        if self._bars is not None:
            self._bars.update(self._task, note=words)


@contextmanager
def bar(
    description: str, total: int | None = None, *, shown: bool = True, transient: bool = False, in_bytes: bool = False
) -> Iterator[Bar]:
    """Draw a progress bar with the time left, for as long as the block lasts.

    Parameters
    ----------
    description
        What is being done.
    total
        The number of steps; ``None`` while it is unknown.
    shown
        Draw it; otherwise its methods do nothing.
    transient
        Remove it at the end.
    in_bytes
        The steps are bytes, to be shown as MB.

    Examples
    --------
    >>> with bar("counting", 2, shown=False) as counted:
    ...     counted.advance()
    """
    if not shown:
        yield Bar()
        return
    from rich import progress
    from rich.table import Column

    whole = partial(Column, no_wrap=True)
    columns = (
        progress.TextColumn("{task.description}", markup=False, table_column=whole()),
        # The bar gives way where the screen is narrow: the words and numbers beside it are not cut.
        progress.BarColumn(bar_width=None, table_column=Column(ratio=1, max_width=40)),
        progress.DownloadColumn(table_column=whole())
        if in_bytes
        else progress.MofNCompleteColumn(table_column=whole()),
        progress.TextColumn("{task.fields[note]}", markup=False, table_column=whole()),
        progress.TimeElapsedColumn(table_column=whole()),
        progress.TimeRemainingColumn(table_column=whole()),
    )
    with progress.Progress(*columns, console=stderr_console(), transient=transient) as bars:
        yield Bar(bars, bars.add_task(description, total=total, note=""))
