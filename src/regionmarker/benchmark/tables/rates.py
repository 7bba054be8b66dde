"""What no paper shows: every test on blameless suspects, and every attack against every defense."""

from __future__ import annotations

from collections.abc import Iterable

from regionmarker.benchmark.tables.results import (
    CORPORA,
    LEVEL,
    SCHEMES,
    Results,
    Row,
    file_name,
    label,
    mean_sd,
    middle_p,
    plain,
    share,
)
from regionmarker.benchmark.tables.table import Table


def false_positives(results: Results) -> Iterable[Table]:
    """Yield how often each test convicts suspects that never saw a marked vector."""
    lines = []
    for name in SCHEMES:
        rows = results.innocents.of(name).where(error=None)
        for suspect, some in rows.by("suspect").items():
            shown = "copy of unmarked vectors" if suspect in ("copy", "unmarked copy") else suspect
            lines.append((SCHEMES[name], shown, *_rates(some)))
        if rows:
            lines.append((SCHEMES[name], "all of them", *_rates(rows)))
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
    """Yield, a table a corpus, every attack against every defense: who is caught, and at what fidelity."""
    for corpus, rows in results.where(plain).by("corpus").items():
        names = [name for name in SCHEMES if rows.of(name)]
        stolen = rows.where(lambda row: bool(row["stealer"]))
        lines = []
        thieves = len(stolen.by("stealer"))
        for (attack, queries, thief), some in stolen.by(_theft).items():
            line = [
                f"{attack}, {thief}" if thieves > 1 else attack, str(queries),
                mean_sd(some.copies.values("fidelity")), mean_sd(some.copies.values("stolen_accuracy"), 1, 100),
            ]  # fmt: skip
            for name in names:
                of = some.of(name)
                judged = of.where(suspect="copy")
                line += [_verdict(judged), share(of.innocents.detected())]
            lines.append(tuple(line))
        if lines:
            heads = ["attack", "queries", "fidelity", "stolen accuracy %"]
            for name in names:
                heads += [SCHEMES[name], "blameless caught"]
            note = (
                f"Median p of the decoy test, and how many copies are caught at {LEVEL:g}; n/a: it cannot be applied. "
                "Beside each, how many copies of unmarked vectors after the same attack are caught. Under no defense "
                "the copies are blameless themselves. Fidelity: mean over the defenses."
            )
            yield Table(f"attacks-{file_name(corpus)}", f"Every attack on {CORPORA.get(corpus, corpus)}", tuple(heads),
                        tuple(lines), note)  # fmt: skip


def _theft(row: Row) -> tuple[str, int, str]:
    return row["attack"], row["queries"], row["stealer"]


def _verdict(rows: Results) -> str:
    """Return median p and the number caught."""
    judged = rows.where(error=None)
    if not len(rows):
        return "-"
    if not len(judged):
        return "failed"
    values = judged.values("decoy_p")
    return f"{middle_p(values)} ({share(judged.detected())})" if values else "n/a"


def errors(results: Results) -> Iterable[Table]:
    """Yield the cells that failed, each with its sentence."""
    failed = results.where(lambda row: row["error"] is not None)
    lines = [
        (label(defense), CORPORA.get(corpus, corpus), suspect, attack, str(len(some)), message)
        for (defense, corpus, suspect, attack, message), some in failed.by(
            lambda row: (row["defense"], row["corpus"], row["suspect"], row["attack"], row["error"])
        ).items()
    ]
    if lines:
        heads = ("defense", "corpus", "suspect", "attack", "cells", "error")
        yield Table("errors", "Cells that failed", heads, tuple(lines))
