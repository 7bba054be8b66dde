"""What verify, trace, replay, plan, keygen, impact and probes tell before and after asking."""

from __future__ import annotations

import json

import pytest
from tests.support.answers import BUDGET

from regionmarker.cli.asking import banner_traces, print_quote
from regionmarker.verification.quote import Quote
from regionmarker.verification.tracing import Trace


def test_a_quote_is_readable_and_fits_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_quote(Quote(3000, 1000, 400_000, 100_000, 32, 150.0, measured=True), 0.13, as_json=False, at_most=4096)
    said = capsys.readouterr().out
    for part in ("3,000, 1,000 of them", "2,000 texts in 32 requests", "2.5 minutes", "0.013, at 0.13", "4,096"):
        assert part in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize(("accused", "word"), [(0, "NOBODY NAMED"), (1, "TENANT NAMED"), (2, "TENANTS NAMED")])
def test_whom_the_answers_point_to_is_what_one_sees(capsys, accused, word):
    rows = [Trace(f"t{number}", 0.5, 0.5, 0.0, number < accused, f"t{number}") for number in range(3)]
    banner_traces(rows, "A sentence.")
    assert capsys.readouterr().out.split("\n")[0].strip() == word


def test_every_verb_that_asks_has_a_dry_run(run, key, corpus, answered):
    thief, dry = ("--suspect", "file:thief.parquet"), ("--dry-run", "--price-per-million", "1.5", "--json")
    found = json.loads(run("trace", "--key", key, *thief, "--tenant", "acme", "--budget", BUDGET, *dry).stdout)
    assert (found["queries"], found["sent"], found["tenants"]) == (BUDGET, 0, 1)
    found = json.loads(run("probes", "--key", key, "--out", "p.txt", "--budget", BUDGET, *dry).stdout)
    assert found["sent"] == BUDGET
    assert not (answered / "p.txt").exists()
    found = json.loads(run("impact", "--key", key, "--corpus", corpus, "--encoder", "wordllama", *dry).stdout)
    assert found["queries"] > 1500  # the halves for retrieval, too
    found = json.loads(run("plan", "--corpus", corpus, "--encoder", "wordllama", "--out", "plan", *dry).stdout)
    assert (found["queries"], found["price"]) == (1500, pytest.approx(found["tokens"] * 1.5e-6))
    assert not (answered / "plan").exists()
    found = json.loads(run("keygen", "--corpus", corpus, "--encoder", "wordllama", "--out", "n.rmkey", *dry).stdout)
    assert (found["queries"], found["price"]) == (1500, pytest.approx(found["tokens"] * 1.5e-6))
    assert not list(answered.glob("n.rmkey*"))
