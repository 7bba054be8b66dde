"""What each attack costs the thief, and what is left of each mark, as the copy is and rotated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import mean

from regionmarker.benchmark.tables.results import Results, Row, label, share, shown_p
from regionmarker.benchmark.tables.table import Table

_ROTATED = re.compile(r"(?:^| then )after:rotate(?::\d+)?$")


def prices(results: Results) -> Iterable[Table]:
    """Yield one line per attack, where copies were rotated afterwards, too: a rotation costs a thief nothing.

    Prices are those of the first defense's copies that were not rotated, because the others' axes are unknown.
    """
    stolen = results.where(lambda row: bool(row["stealer"]) and row["error"] is None)
    if not any(_is_rotated(row) for row in stolen):
        return
    columns = list(stolen.copies.by(lambda row: label(row["defense"])))
    lines = []
    for attack, some in stolen.by(lambda row: _ROTATED.sub("", row["attack"]) or "none").items():
        copies = some.copies.by(lambda row: label(row["defense"]))
        if not copies:
            continue
        plain = next(iter(copies.values())).where(lambda row: not _is_rotated(row))
        found = [_left(copies.get(name, Results([])), rotated=turned) for name in columns for turned in (False, True)]
        lines.append((attack, *_price(plain), *found, share(some.innocents.detected())))
    heads = ("attack", "fidelity", "accuracy", "STS-B")
    marks = tuple(f"{name}{turned}" for name in columns for turned in ("", ", rotated"))
    note = (
        "Fidelity: centred, to the clean vectors. Accuracy and STS-B (Spearman) in per cent, of the copy. Under each "
        "mark: copies that the decoy test convicts at 0.001, and their largest p. Blameless: copies of unmarked "
        "vectors after the same attack, rotated and not, under all of these tests."
    )
    yield Table("prices", "What an attack costs, and what it leaves of the mark", (*heads, *marks, "blameless caught"),
                tuple(lines), note)  # fmt: skip


def _is_rotated(row: Row) -> bool:
    return _ROTATED.search(row["attack"]) is not None


def _price(copies: Results) -> tuple[str, ...]:
    return (
        _mean(copies.values("clean_fidelity"), 2),
        _mean([100 * value for value in copies.values("stolen_accuracy")], 1),
        _mean([100 * value for value in copies.values("stolen_sts")], 1),
    )


def _left(copies: Results, *, rotated: bool) -> str:
    some = copies.where(lambda row: _is_rotated(row) == rotated)
    p_values = some.values("decoy_p")
    return f"{share(some.detected())} ({shown_p(max(p_values))})" if p_values else "-"


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{mean(values):.{digits}f}" if values else "-"
