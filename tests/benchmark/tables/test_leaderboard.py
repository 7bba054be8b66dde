"""The leaderboard ranks defenses of equal utility, and the abstract's claims follow from the rows."""

from __future__ import annotations

from regionmarker.benchmark.tables import make_tables


def claims(result_row, seeds, marks=("published",), hole="cse"):
    rows = [
        result_row(mark, attack, seed=seed, p=0.4 if attack == hole else 1e-6)
        for mark in marks
        for seed in range(seeds)
        for attack in ("cse", "paraphrase:stored", "shift:100")
    ]
    (found,) = [table for table in make_tables(rows) if table.name == "claims"]
    return [line[:3] for line in found.rows]


def test_claims_follow_from_the_rows(result_row):
    assert [line[1:] for line in claims(result_row, 3)] == [
        ("resists CSE", "does not hold"),
        ("resists paraphrasing", "holds"),
        ("resists dimension perturbation", "holds"),
        ("negligible effect on utility", "holds"),
    ]


def test_claims_that_two_copies_cannot_tell_are_left_open(result_row):
    assert {line[2] for line in claims(result_row, 2)} == {"cannot be told from 2 copies", "cannot be told"}


def test_one_seed_tells_nothing(result_row):
    assert {line[2] for line in claims(result_row, 1)} == {"cannot be told from one seed"}


def test_claims_are_judged_for_the_three_marks(result_row):
    found = claims(result_row, 3, ("published", "graded", "regionmarker"))
    assert list(dict.fromkeys(line[0] for line in found)) == [
        "RegionMarker", "RegionMarker 0.1", "RegionMarker (published)",
    ]  # fmt: skip


def test_one_seed_has_no_spread(result_row):
    rows = [result_row(mark, attack, overlap=0.9 + 0.01 * len(attack)) for mark in ("wet", "graded")
            for attack in ("none", "cse")]  # fmt: skip
    assert [table.name for table in make_tables(rows) if "±" in "".join("".join(line) for line in table.rows)
            and table.name not in ("main-sst2", "dimension-wise")] == []  # fmt: skip


def test_geomark_is_a_footnote_and_limits_nobody(result_row):
    rows = [result_row(mark, attack, seed=seed, p=1e-6) for mark in ("wet", "graded") for seed in range(3)
            for attack in ("none", "cse")]  # fmt: skip
    rows += [result_row("geomark", seed=seed, p=1e-6) for seed in range(3)]
    (board,) = [table for table in make_tables(rows) if table.name == "leaderboard"]
    assert [line[1] for line in board.rows] == ["WET", "RegionMarker"]
    assert {line[5] for line in board.rows} == {"2 of 2"}
    assert "Not ranked: GeoMark, known from its abstract only (3 of 3 (0.29 to 1.00) copies caught" in board.note


def test_the_leaderboard_takes_the_best_setting_of_equal_utility(tables):
    lines = tables["leaderboard"].rows
    # Not strength=0.3, which catches more and costs three points.
    assert [(line[1], line[3]) for line in lines] == [("WET", "0.75"), ("RegionMarker 0.1", "0.75")]


def test_a_dear_mark_ranks_behind(result_row):
    rows = [result_row("wet", p=0.5, seed=seed) for seed in range(3)]
    rows += [result_row("espew", p=1e-5, seed=seed, served_accuracy=0.9) for seed in range(3)]
    (board,) = [table for table in make_tables(rows) if table.name == "leaderboard"]
    assert [(line[1], line[2]) for line in board.rows] == [("WET", "yes"), ("EspeW", "no")]


def test_a_mark_that_moves_too_many_neighbours_ranks_behind(result_row):
    rows = [result_row("wet", p=0.5, seed=seed) for seed in range(3)]
    rows += [result_row("espew", p=1e-5, seed=seed, overlap=0.9 + 0.001 * seed) for seed in range(3)]
    rows += [result_row("warden", p=1e-5, seed=seed, overlap=0.92 + 0.02 * seed) for seed in range(3)]  # 0.94 +- 0.01
    (board,) = [table for table in make_tables(rows) if table.name == "leaderboard"]
    assert [(line[1], line[2]) for line in board.rows] == [("WARDEN", "yes"), ("WET", "yes"), ("EspeW", "no")]
