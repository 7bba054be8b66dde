"""What no paper shows: every test on blameless suspects, every attack against every defense, and power.

Power is the share of copies caught at a fixed false-positive rate, as a function of what a provider chooses and of
what a thief has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from regionmarker.benchmark.grid.cell import NO_DEFENSE
from regionmarker.benchmark.tables.results import (
    LEVEL,
    Results,
    Row,
    caught,
    corpus_title,
    default_settings,
    file_name,
    label,
    mean_sd,
    middle_p,
    parameters,
    scheme,
    share,
    title,
)
from regionmarker.benchmark.tables.table import Table


def false_positives(results: Results) -> Iterable[Table]:
    """Yield how often each test convicts suspects that never saw a marked vector."""
    lines = []
    for name in results.innocents.schemes():
        rows = results.innocents.of(name).where(error=None)
        for suspect, some in rows.by("suspect").items():
            shown = "copy of unmarked vectors" if suspect in ("copy", "unmarked copy") else suspect
            lines.append((title(name), shown, *_rates(some)))
        if rows:
            lines.append((title(name), "all of them", *_rates(rows)))
    if lines:
        heads = ("defense", "blameless suspect", "published rule", "decoy test at 0.05", f"decoy test at {LEVEL:g}")
        note = (
            "How many the test convicts. Copies of unmarked vectors are those of all attacks; they share a key, so "
            "their verdicts are not independent of each other."
        )
        yield Table("false-positives", "False positives", heads, tuple(lines), note)


def _rates(rows: Results) -> tuple[str, str, str]:
    return share(rows.called_copies()), share(rows.detected(0.05)), share(rows.detected())


def every_attack(results: Results) -> Iterable[Table]:
    """Yield, one table per corpus, every attack against every defense: who is caught, and at what fidelity."""
    for corpus, rows in results.where(default_settings).by("corpus").items():
        names = rows.schemes()
        stolen = rows.where(lambda row: bool(row["stealer"]))
        lines = []
        several = [name for name in ("stealer", "provider") if len(stolen.by(name)) > 1]
        for (attack, queries, *_), some in stolen.by(_theft).items():
            line = [
                ", ".join([attack, *(some.rows[0][name] for name in several)]), str(queries),
                some.copies.mean_sd("fidelity"), some.copies.mean_sd("stolen_accuracy", 1, 100),
            ]  # fmt: skip
            for name in names:
                of = some.of(name)
                judged = of.where(suspect="copy")
                line += [_verdict(judged), share(of.innocents.detected())]
            lines.append(tuple(line))
        if lines:
            heads = ["attack", "queries", "fidelity", "stolen accuracy %"]
            for name in names:
                heads += [title(name), "blameless caught"]
            note = (
                f"Median p of the decoy test, and how many copies are caught at {LEVEL:g}; n/a: it cannot be applied. "
                "Beside each, how many copies of unmarked vectors after the same attack are caught. Under no defense "
                "the copies are blameless themselves. Fidelity: mean over the defenses."
            )
            yield Table(f"attacks-{file_name(corpus)}", f"Every attack on {corpus_title(corpus)}", tuple(heads),
                        tuple(lines), note)  # fmt: skip


def _theft(row: Row) -> tuple[str, int, str, str]:
    return row["attack"], row["queries"], row["stealer"], row["provider"]


def _verdict(rows: Results) -> str:
    judged = rows.where(error=None)
    if not len(rows):
        return "-"
    if not len(judged):
        return "failed"
    values = judged.values("decoy_p")
    return f"{middle_p(values)}; {caught(judged.detected())}" if values else "n/a"


def errors(results: Results) -> Iterable[Table]:
    """Yield the cells that failed, each with its sentence."""
    failed = results.where(lambda row: row["error"] is not None)
    lines = [
        (label(defense), corpus_title(corpus), suspect, attack, str(len(some)), message)
        for (defense, corpus, suspect, attack, message), some in failed.by(
            lambda row: (row["defense"], row["corpus"], row["suspect"], row["attack"], row["error"])
        ).items()
    ]
    if lines:
        heads = ("defense", "corpus", "suspect", "attack", "cells", "error")
        yield Table("errors", "Cells that failed", heads, tuple(lines))


# ---- power

SYMBOLS = {
    "strength": "λ",
    "ratio": "\N{GREEK SMALL LETTER ALPHA}",
    "dimension": "d",
    "subspace": "subspace k",
    "queries": "queries",
}
_EDGES = (0.0, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.01)


@dataclass(frozen=True)
class Point:
    """One point of a curve: the value of a parameter, and what came of it."""

    corpus: str
    attack: str
    value: float
    rows: Results

    @property
    def power(self) -> float:
        """The share of copies that the decoy test catches at the level."""
        caught, judged = self.rows.copies.detected()
        return caught / judged if judged else float("nan")


@dataclass(frozen=True)
class Sweep:
    """One parameter of one defense, with the points of its curves, ordered."""

    scheme: str
    parameter: str
    points: list[Point]

    @property
    def name(self) -> str:
        """What its table and its figure are called."""
        of = "" if self.scheme == "regionmarker" else f"{file_name(self.scheme)}-"
        return f"sweep-{of}{file_name(self.parameter)}"

    @property
    def symbol(self) -> str:
        return SYMBOLS.get(self.parameter, self.parameter)


def swept(results: Results) -> Iterable[Sweep]:
    """Yield every parameter of every defense that has more than one value in some corpus after some attack."""
    for name in results.marked_schemes():
        rows = results.of(name).where(lambda row: row["stealer"] != "")
        found = {parameter for row in rows for parameter in parameters(row)}
        for parameter in [*SYMBOLS, *sorted(found - SYMBOLS.keys())]:
            points = _points(rows, parameter)
            if points:
                yield Sweep(name, parameter, points)


def _points(rows: Results, parameter: str) -> list[Point]:
    rows = rows.where(lambda row: _value(row, parameter) is not None)
    if parameter != "queries":
        rows = rows.most_common_setup()
    elif len(rows.by("stealer")) > 1:
        return []  # more queries of another stealer are no sweep
    points = [
        Point(corpus, attack, number, some)
        for (corpus, attack, number), some in rows.by(
            lambda row: (row["corpus"], row["attack"], _value(row, parameter))
        ).items()
    ]
    counted = Counter((point.corpus, point.attack) for point in points)
    kept = [point for point in points if counted[point.corpus, point.attack] > 1]
    return sorted(kept, key=lambda point: (point.corpus, point.attack, point.value))


def _value(row: Row, parameter: str) -> float | None:
    """Return a row's value of a parameter; None where it has none, or one that is no number."""
    if parameter == "queries":
        return float(row["queries"]) if default_settings(row) else None
    try:
        return float(parameters(row)[parameter])
    except (KeyError, ValueError):
        return None


def sweeps(results: Results) -> Iterable[Table]:
    """Yield one table per defense and parameter."""
    for sweep in swept(results):
        lines = [
            (
                corpus_title(point.corpus), point.attack, f"{point.value:g}",
                point.rows.copies.mean_sd("fidelity"),
                point.rows.copies.mean_sd("delta_cos", scale=100),
                middle_p(point.rows.copies.values("decoy_p")), caught(point.rows.copies.detected()),
                share(point.rows.innocents.detected()), point.rows.copies.mean_sd("mean_cosine", 4, keys=True),
                point.rows.copies.mean_sd("overlap", 3, keys=True), loss(point.rows.copies),
            )
            for point in sweep.points
        ]  # fmt: skip
        heads = ("corpus", "attack", sweep.symbol, "fidelity", "Δcos %", "decoy p", f"caught at {LEVEL:g}",
                 "blameless caught", "cos(e, e_p)", "neighbours kept", "accuracy lost, points")  # fmt: skip
        yield Table(sweep.name, f"{title(sweep.scheme)}: effect of {sweep.symbol}", heads, tuple(lines))


def by_fidelity(results: Results) -> Iterable[Table]:
    """Yield power as a function of the copy's fidelity, over all attacks."""
    rows = results.where(default_settings).where(lambda row: row["error"] is None)
    names = rows.copies.schemes()
    lines = []
    for low, high in pairwise(_EDGES):
        inside = _between(rows, low, high)
        if inside.copies:
            line = [f"{low:g} to {min(high, 1):g}"]
            for name in names:
                of = inside.of(name)
                line += [caught(of.copies.detected()), share(of.innocents.detected())]
            lines.append(tuple(line))
    if lines:
        heads = ["fidelity"]
        for name in names:
            heads += [title(name), "blameless caught"]
        note = f"Copies of every attack together; caught at {LEVEL:g}."
        yield Table("power-by-fidelity", "Power by fidelity of the copy", tuple(heads), tuple(lines), note)


def _between(rows: Results, low: float, high: float) -> Results:
    return rows.where(lambda row: low <= (row["fidelity"] or -1.0) < high)


def trade_off(results: Results) -> Iterable[Table]:
    """Yield what each setting costs an honest customer, and what it catches."""
    lines = []
    for (corpus, defense), some in results.by(lambda row: (row["corpus"], label(row["defense"]))).items():
        if some.copies and scheme(some.rows[0]) != NO_DEFENSE:
            lines.append((corpus_title(corpus), defense, loss(some), some.mean_sd("overlap", 3, keys=True),
                          some.mean_sd("mean_cosine", 4, keys=True), caught(some.copies.detected()),
                          share(some.innocents.detected())))  # fmt: skip
    if lines:
        heads = ("corpus", "defense", "accuracy lost, points", "neighbours kept", "cos(e, e_p)",
                 f"copies caught at {LEVEL:g}", "blameless caught")  # fmt: skip
        yield Table("trade-off", "Utility against power", heads, tuple(lines))


def loss(rows: Results) -> str:
    """Return the points of accuracy that the mark costs, as tables print them."""
    found = losses(rows)
    several = len({row["seed"] for row in rows}) > 1
    return mean_sd(found if several or not found else [mean(found)])


def losses(rows: Iterable[Row]) -> Sequence[float]:
    """Return the points of accuracy that the mark costs, of each key."""
    found = {}
    for row in rows:
        if row["served_accuracy"] is not None and row["clean_accuracy"] is not None:
            key = row["corpus"], row["provider"], row["defense"], row["seed"], row["queries"]
            found[key] = 100 * (row["clean_accuracy"] - row["served_accuracy"])
    return list(found.values())
