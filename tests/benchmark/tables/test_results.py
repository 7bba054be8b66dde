"""Rows are summed up with their like and with nothing else."""

from __future__ import annotations

from tests.support.result_rows import column

from regionmarker.benchmark.tables import Results, make_tables


def test_attacks_that_differ_by_their_seed_alone_are_one(rows):
    """A shift by 7 places is the same attack under every seed, a permutation number 7 is not."""
    stolen = [row for row in rows if row["attack"] == "cse" and row["guilty"]]
    drawn = [{**row, "seed": seed, "attacks": [f"permute:{seed}"], "attack": "-"} for seed in (7, 8) for row in stolen]
    fixed = [{**row, "seed": seed, "attacks": ["shift:7"], "attack": "-"} for seed in (7, 8) for row in stolen]
    (table,) = [table for table in make_tables(drawn + fixed) if table.name == "attacks-sst2"]
    assert [line[0] for line in table.rows] == ["permute", "shift:7"]


def test_other_thieves_and_numbers_of_queries_are_not_averaged_in(rows, result_row):
    more = [result_row("regionmarker", queries=9, p=0.9), result_row("regionmarker", stealer="other", p=0.9)]
    tables = {table.name: table for table in make_tables(rows + more)}
    assert column(tables["main-sst2"], ("RegionMarker 0.1", "none"), "caught at 1e-3") == ("2 of 2 (0.16 to 1.00)",)
    assert ("none, other", "4000") in [line[:2] for line in tables["attacks-sst2"].rows]
    assert "sweep-queries" not in tables


def test_an_attack_that_needs_fewer_queries_stays_and_other_providers_do_not(result_row):
    rows = [result_row("wet", seed=seed) for seed in range(3)]
    rows += [result_row("wet", "paraphrase:stored", queries=9, p=1e-6), result_row("wet", provider="other", p=1e-6)]
    kept = Results(rows).most_common_setup()
    assert sorted((row["attack"], row["queries"], row["provider"]) for row in kept) == [
        *[("none", 4000, "p")] * 3, ("paraphrase:stored", 9, "p"),
    ]  # fmt: skip
