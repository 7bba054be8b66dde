"""Ours beside the paper's."""

from __future__ import annotations

from tests.support.result_rows import column

from regionmarker.benchmark.tables import make_tables


def test_the_papers_numbers_stand_beside_ours(tables):
    table = tables["main-sst2"]
    place = table.columns.index("stolen accuracy %")
    (line,) = [line for line in table.rows if line[:2] == ("WET", "cse")]
    assert line[place : place + 2] == ("90.00 ± 0.00", "85.74 ± 1.85")
    assert column(table, ("RegionMarker 0.1", "cse"), "caught at 1e-3", "blameless called copies") == (
        "0 of 2 (0.00 to 0.84)",
        "2 of 2",
    )


def test_every_detection_stands_beside_its_false_positives(tables):
    heads = tables["attacks-sst2"].columns
    for name in ("RegionMarker 0.1", "WET"):
        assert heads[heads.index(name) + 1] == "blameless caught"
    (line,) = [line for line in tables["attacks-sst2"].rows if line[0] == "cse"]
    assert line[heads.index("RegionMarker 0.1")] == "0.40; 0 of 2 (0.00 to 0.84)"
    assert line[heads.index("WET")] == "1e-06; 2 of 2 (0.16 to 1.00)"


def test_our_paraphrases_stand_beside_each_of_the_papers(tables):
    heads = ("caught at 1e-3", "paper, NLLB: Δcos %", "paper, DIPPER: Δcos %", "copy?")
    assert column(tables["paraphrasing"], ("SST-2", "RegionMarker 0.1"), *heads) == (
        "2 of 2 (0.16 to 1.00)", "10.48 ± 4.24", "9.56 ± 2.44", "yes",
    )  # fmt: skip


def test_the_papers_thieves_are_listed_where_ours_are_several(rows, result_row):
    ours = [result_row("regionmarker", stealer=stealer) for stealer in ("head", "backbone")]
    (table,) = [table for table in make_tables(ours) if table.name == "stealers"]
    names = [line[1] for line in table.rows]
    assert names[:2] == ["head, 4000 queries, RegionMarker 0.1", "backbone, 4000 queries, RegionMarker 0.1"]
    assert names[2:][0] == "paper: stealer BERT-small (29M)"
    assert len(names) == 7
    assert column(table, ("SST-2", names[2]), "Δcos %", "called a copy") == ("-", "-")
    assert not [table for table in make_tables(rows) if table.name == "stealers"]


def test_a_copy_that_was_trained_on_stands_beside_the_papers(result_row):
    tuned = [{**result_row("regionmarker", seed=seed), "attacks": ["finetune:limit=9,enron"]} for seed in (0, 1)]
    (table,) = [table for table in make_tables(tuned) if table.name == "fine-tuning"]
    (line,) = table.rows
    assert line[:2] == ("SST-2", "finetune:limit=9,enron: head, 4000 queries, RegionMarker 0.1")
    place = table.columns.index("Δcos %")
    assert line[place + 1] == "5.49 ± 0.54"
