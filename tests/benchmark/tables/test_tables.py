"""Tables: one for everything that the rows allow, in three forms."""

from __future__ import annotations

import csv
import io

from regionmarker.benchmark.tables import Table, make_tables, write_tables


def test_there_is_one_for_everything_that_the_rows_allow(tables):
    assert {
        "claims", "leaderboard", "attacks-sst2", "false-positives", "motivation", "main-sst2", "paraphrasing",
        "dimension-wise", "timing", "power-by-fidelity", "sweep-strength", "trade-off", "errors",
    } == tables.keys()  # fmt: skip


def test_what_failed_is_told(tables):
    assert tables["errors"].rows == (("WARDEN", "SST-2", "copy", "none", "1", "too few <texts>"),)


def test_all_forms_hold_the_same(rows, tmp_path):
    written = {path.name: path.read_text(encoding="utf-8") for path in write_tables(rows, tmp_path / "tables")}
    table = next(table for table in make_tables(rows) if table.name == "motivation")
    assert list(csv.reader(io.StringIO(written["motivation.csv"]))) == [list(table.columns), *map(list, table.rows)]
    assert written["motivation.md"] in written["tables.md"]
    assert written["motivation.tex"].count(r" \\") == len(table.rows) + 1
    assert r"$<$texts$>$" in written["errors.tex"]


def test_signs_of_latex_are_harmless():
    table = Table("t", "100 % of a_b & {c}", ("~",), (("1e-3 ± \\",),))
    assert r"100 \% of a\_b \& \{c\}." in table.latex()
    assert r"1e-3 $\pm$ \textbackslash{} \\" in table.latex()
