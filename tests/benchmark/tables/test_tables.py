"""Tables: ours beside the paper's, every detection beside its false positives."""

from __future__ import annotations

import csv
import io

import pytest

from regionmarker.benchmark.tables import Table, make_tables, write_tables


@pytest.fixture(scope="module")
def tables(rows):
    return {table.name: table for table in make_tables(rows)}


def column(table, row, *heads):
    """Return the entries of the row that begins so, under these headings; of equal headings, the first."""
    (line,) = [line for line in table.rows if line[: len(row)] == row]
    return tuple(line[table.columns.index(head)] for head in heads)


def test_there_is_one_for_everything_that_the_rows_allow(tables):
    assert {
        "claims", "leaderboard", "attacks-sst2", "false-positives", "motivation", "main-sst2", "paraphrasing",
        "dimension-wise", "timing", "power-by-fidelity", "sweep-strength", "trade-off", "errors",
    } == tables.keys()  # fmt: skip


def test_the_papers_numbers_stand_beside_ours(tables):
    table = tables["main-sst2"]
    place = table.columns.index("stolen accuracy %")
    (line,) = [line for line in table.rows if line[:2] == ("WET", "cse")]
    assert line[place : place + 2] == ("90.00 ± 0.00", "85.74 ± 1.85")
    assert column(table, ("RegionMarker", "cse"), "caught at 1e-3", "blameless called copies") == ("0 of 2", "2 of 2")


def test_every_detection_stands_beside_its_false_positives(tables):
    heads = tables["attacks-sst2"].columns
    for name in ("RegionMarker", "WET"):
        assert heads[heads.index(name) + 1] == "blameless caught"
    (line,) = [line for line in tables["attacks-sst2"].rows if line[0] == "cse"]
    assert line[heads.index("RegionMarker")] == "0.40 (0 of 2)"
    assert line[heads.index("WET")] == "1e-06 (2 of 2)"


def test_false_positives_are_counted_by_test_and_suspect(tables):
    all_of_them = {line[0]: line[2:] for line in tables["false-positives"].rows if line[1] == "all of them"}
    assert all_of_them["no defense"] == ("8 of 8", "0 of 8", "0 of 8")
    assert all_of_them["WET"] == ("0 of 8", "0 of 8", "0 of 8")


def test_claims_follow_from_the_rows(tables):
    assert [line[:2] for line in tables["claims"].rows] == [
        ("resists CSE", "does not hold"),
        ("resists paraphrasing", "holds"),
        ("resists dimension perturbation", "holds"),
        ("negligible effect on utility", "cannot be told from 2 keys"),
    ]


def test_the_leaderboard_takes_the_best_setting_of_equal_utility(tables):
    lines = tables["leaderboard"].rows
    # Not strength=0.3, which catches more and costs three points.
    assert [(line[1], line[3]) for line in lines] == [("WET", "0.75"), ("RegionMarker", "0.75")]


def test_a_dear_mark_ranks_behind(result_row):
    rows = [result_row("wet", p=0.5, seed=seed) for seed in range(3)]
    rows += [result_row("geomark", p=1e-5, seed=seed, served_accuracy=0.9) for seed in range(3)]
    (board,) = [table for table in make_tables(rows) if table.name == "leaderboard"]
    assert [(line[1], line[2]) for line in board.rows] == [("WET", "yes"), ("GeoMark", "no")]


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


def test_attacks_that_differ_by_their_seed_alone_are_one(rows):
    """A shift by 7 places is the same attack under every seed, a permutation number 7 is not."""
    stolen = [row for row in rows if row["attack"] == "cse" and row["guilty"]]
    drawn = [{**row, "seed": seed, "attacks": [f"permute:{seed}"], "attack": "-"} for seed in (7, 8) for row in stolen]
    fixed = [{**row, "seed": seed, "attacks": ["shift:7"], "attack": "-"} for seed in (7, 8) for row in stolen]
    (table,) = [table for table in make_tables(drawn + fixed) if table.name == "attacks-sst2"]
    assert [line[0] for line in table.rows] == ["permute", "shift:7"]


def test_our_paraphrases_stand_beside_each_of_the_papers(tables):
    heads = ("caught at 1e-3", "paper, NLLB: Δcos %", "paper, DIPPER: Δcos %", "copy?")
    assert column(tables["paraphrasing"], ("SST-2", "RegionMarker"), *heads) == (
        "2 of 2", "10.48 ± 4.24", "9.56 ± 2.44", "yes",
    )  # fmt: skip


def test_the_papers_thieves_are_listed_where_ours_are_several(rows, result_row):
    ours = [result_row("regionmarker", stealer=stealer) for stealer in ("head", "backbone")]
    (table,) = [table for table in make_tables(ours) if table.name == "stealers"]
    names = [line[1] for line in table.rows]
    assert names[:2] == ["head, 4000 queries, RegionMarker", "backbone, 4000 queries, RegionMarker"]
    assert names[2:][0] == "paper: stealer BERT-small (29M)"
    assert len(names) == 7
    assert column(table, ("SST-2", names[2]), "Δcos %", "called a copy") == ("-", "-")
    assert not [table for table in make_tables(rows) if table.name == "stealers"]


def test_a_copy_that_was_trained_on_stands_beside_the_papers(result_row):
    tuned = [{**result_row("regionmarker", seed=seed), "attacks": ["finetune:limit=9,enron"]} for seed in (0, 1)]
    (table,) = [table for table in make_tables(tuned) if table.name == "fine-tuning"]
    (line,) = table.rows
    assert line[:2] == ("SST-2", "finetune:limit=9,enron: head, 4000 queries, RegionMarker")
    place = table.columns.index("Δcos %")
    assert line[place + 1] == "5.49 ± 0.54"


def test_other_thieves_and_numbers_of_queries_are_not_averaged_in(rows, result_row):
    more = [result_row("regionmarker", queries=9, p=0.9), result_row("regionmarker", stealer="other", p=0.9)]
    tables = {table.name: table for table in make_tables(rows + more)}
    assert column(tables["main-sst2"], ("RegionMarker", "none"), "caught at 1e-3") == ("2 of 2",)
    assert ("none, other", "4000") in [line[:2] for line in tables["attacks-sst2"].rows]
    assert "sweep-queries" not in tables


def test_the_papers_numbers_make_no_table_of_their_own(result_row):
    names = {table.name for table in make_tables([result_row("wet"), result_row("wet", "shift:100")])}
    assert "main-sst2" in names
    assert not names & {"dimension-wise", "ablations", "reducers", "fine-tuning", "stealers"}
