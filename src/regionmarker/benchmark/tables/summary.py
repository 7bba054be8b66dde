"""What some rows come to: copies caught with an interval, blameless suspects beside, p-values, what marking costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from regionmarker.benchmark.tables.results import (
    LEVEL,
    Results,
    Row,
    clopper_pearson,
    corpus_title,
    label,
    scheme,
    share,
    shown_interval,
    shown_p,
)
from regionmarker.benchmark.tables.table import Table
from regionmarker.errors import InputError

LOOSE_LEVEL = 0.05
SETUP = ("defense", "provider", "stealer", "queries", "attack")
"""What a summary keeps apart unless told otherwise: one number of two setups is a number of neither."""
HEADS = ("caught", "95 %", "blameless caught", "smallest p", "median p", "largest p", "neighbours kept",
         "fidelity to clean")  # fmt: skip
BRIEF = ("caught", "95 %", "blameless caught", "largest p", "fidelity to clean")
"""What a narrow screen shows of it."""

_TURNED = 0.1
"""Copies below this fidelity to the clean vectors learnt them turned; students that learn anything are far above."""

Where = Mapping[str, Sequence[str]]
"""The values that columns may have; ``scheme`` is the defense without its settings."""


@dataclass(frozen=True)
class Tally:
    """Numbers of some rows; None where there is nothing to sum up.

    Examples
    --------
    >>> rows = [{"guilty": True, "suspect": "copy", "decoy_p": 1e-9, "error": None, "corpus": "c", "provider": "p",
    ...          "defense": "wet", "seed": seed, "queries": 9, "overlap": 0.9} for seed in range(12)]
    >>> found = Tally(Results(rows))
    >>> found.caught, tuple(round(end, 2) for end in found.interval), found.kept
    ((12, 12), (0.74, 1.0), 0.9)
    """

    rows: Results
    level: float = LEVEL

    @property
    def caught(self) -> tuple[int, int]:
        """Copies that the decoy test convicts, of how many."""
        return self.rows.copies.detected(self.level)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The share of copies caught: Clopper and Pearson's 95 % interval."""
        return clopper_pearson(self.caught)

    def blameless(self, level: float) -> tuple[int, int]:
        """Suspects that never saw a marked vector, and are convicted all the same, of how many."""
        return self.rows.innocents.detected(level)

    @property
    def p_values(self) -> list[float]:
        """Of the copies, smallest first."""
        return sorted(self.rows.copies.values("decoy_p"))

    @property
    def kept(self) -> float | None:
        """The share of neighbours that marking kept, mean over keys."""
        return _mean(self.rows.where(lambda row: scheme(row) != "none").of_keys("overlap"))

    @property
    def fidelity(self) -> float | None:
        """Of the copies to the clean vectors, after the mean of each side was taken away.

        A copy that was trained on rotated vectors is near 0 there, which says nothing of what it is worth: left out.
        """
        return _mean([value for value in self.rows.copies.values("clean_fidelity") if value > _TURNED])

    def numbers(self) -> dict[str, object]:
        """Return all of it for programs."""
        p, interval = self.p_values, self.interval
        return {
            "copies": self.caught[1], "caught": self.caught[0],
            "caught_low": interval and interval[0], "caught_high": interval and interval[1],
            "blameless": self.blameless(self.level)[1], "blameless_caught": self.blameless(self.level)[0],
            "blameless_caught_at_0.05": self.blameless(LOOSE_LEVEL)[0],
            "smallest_p": p[0] if p else None, "median_p": median(p) if p else None, "largest_p": p[-1] if p else None,
            "neighbours_kept": self.kept, "clean_fidelity": self.fidelity,
            "failed": sum(row["error"] is not None for row in self.rows),
        }  # fmt: skip

    def line(self) -> tuple[str, ...]:
        """Return all of it as a line of a table."""
        p = self.p_values
        loose = self.blameless(LOOSE_LEVEL)[0]
        return (
            share(self.caught), shown_interval(self.caught),
            f"{share(self.blameless(self.level))} ({loose} at {LOOSE_LEVEL:g})" if self.blameless(1)[1] else "-",
            *((shown_p(p[0]), shown_p(median(p)), shown_p(p[-1])) if p else "---"),
            "-" if self.kept is None else f"{self.kept:.3f}", "-" if self.fidelity is None else f"{self.fidelity:.2f}",
        )  # fmt: skip


def chosen(results: Results, where: Where) -> Results:
    """Return the rows whose columns have one of these values.

    Examples
    --------
    >>> rows = Results([{"defense": "wet:taps=9", "seed": 1, "grids": ["quick"]}])
    >>> len(chosen(rows, {"scheme": ["wet"], "seed": ["1", "2"], "grids": ["quick"]})), len(chosen(rows, {"seed": []}))
    (1, 0)
    """
    known = {"scheme", *(name for row in results.rows[:1] for name in row)}
    for name in where:
        if len(results) and name not in known:
            raise InputError(f"rows have no column {name!r}: use one of {', '.join(sorted(known))}")
    return results.where(lambda row: all(_values(row, name) & set(allowed) for name, allowed in where.items()))


def _values(row: Row, name: str) -> set[str]:
    value = scheme(row) if name == "scheme" else row[name]
    return {str(part) for part in (value if isinstance(value, list) else [value])}


def groups(results: Results, by: Sequence[str]) -> dict[tuple[str, ...], Results]:
    """Return the rows of suspects that were stolen, kept apart by columns; a copy's blameless twin stays beside it."""
    stolen = results.where(lambda row: bool(row["stealer"]))
    for name in by:
        if len(stolen) and name not in {"scheme", *stolen.rows[0]}:
            raise InputError(f"rows have no column {name!r}: use {', '.join(SETUP)}, corpus or seed")
    return stolen.by(lambda row: tuple(" ".join(sorted(_values(row, name))) for name in by))


def summary(results: Results, by: Sequence[str] = SETUP, level: float = LEVEL) -> Iterable[Table]:
    """Yield one line per group: what is the same in all lines is said once, above them."""
    found = groups(results, by)
    if not found:
        return
    varying = [place for place, _ in enumerate(by) if len({key[place] for key in found}) > 1]
    shown = varying or [len(by) - 1]
    fixed = {by[place]: _titled(by[place], next(iter(found))[place]) for place in range(len(by)) if place not in shown}
    lines = [
        (*(_titled(by[place], key[place]) for place in shown), *Tally(some, level).line())
        for key, some in found.items()
    ]
    same = "".join(f"{name} {value}; " for name, value in fixed.items())
    note = (
        f"{same}caught at {level:g}. 95 %: Clopper and Pearson's interval. Blameless: copies of unmarked vectors after "
        "the same attack, judged by the same test. Fidelity: centred; not of copies that learnt turned vectors."
    )
    yield Table("summary", "Copies caught", (*(by[place] for place in shown), *HEADS), tuple(lines),
                note[0].upper() + note[1:])  # fmt: skip


def _titled(column: str, value: str) -> str:
    return {"defense": label, "corpus": corpus_title}.get(column, str)(value)


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None
