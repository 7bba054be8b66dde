"""The leaderboard ranks defenses of equal utility, and the abstract's claims follow from the rows."""

from __future__ import annotations

from regionmarker.benchmark.tables import make_tables


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
    assert [(line[1], line[3]) for line in lines] == [("WET", "0.75"), ("RegionMarker 0.1", "0.75")]


def test_a_dear_mark_ranks_behind(result_row):
    rows = [result_row("wet", p=0.5, seed=seed) for seed in range(3)]
    rows += [result_row("geomark", p=1e-5, seed=seed, served_accuracy=0.9) for seed in range(3)]
    (board,) = [table for table in make_tables(rows) if table.name == "leaderboard"]
    assert [(line[1], line[2]) for line in board.rows] == [("WET", "yes"), ("GeoMark", "no")]
