"""The log of trainings: a line a minute, whoever writes, and the time left of one that goes on."""

from __future__ import annotations

from regionmarker.benchmark.grid.training_log import TrainingLog


def test_a_line_a_minute_and_one_at_the_end(tmp_path):
    now = [1000.0]
    log = TrainingLog(tmp_path / "log.txt", "mind, graded, none, seed 3", clock=lambda: now[0])
    log.say("takes 1 GB")
    for step in range(501, 1001):  # it goes on at step 500
        now[0] += 1
        log.progress(step, 1000)
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert lines[0] == "mind, graded, none, seed 3: takes 1 GB"
    assert lines[1] == "mind, graded, none, seed 3: step 561 of 1000, about 7 minutes left"
    assert lines[-1] == "mind, graded, none, seed 3: step 1000 of 1000, done"
    assert len(lines) == 1 + 8 + 1


def test_hours_are_told_as_hours(tmp_path):
    now = [0.0]
    log = TrainingLog(tmp_path / "log.txt", "a", clock=lambda: now[0])
    log.progress(1, 1000)
    now[0] = 70
    log.progress(2, 1000)
    assert (tmp_path / "log.txt").read_text() == "a: step 2 of 1000, about 19.4 hours left\n"


def test_two_trainings_write_one_file(tmp_path):
    for name in "ab":
        TrainingLog(tmp_path / "log.txt", name).say("here")
    assert (tmp_path / "log.txt").read_text() == "a: here\nb: here\n"
