"""verify: a suspect in, a verdict out, and exit codes that a script can use."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest
from tests.support.answers import BUDGET
from tests.support.embedding_server import EmbeddingServer

from regionmarker import Answers, KeyRing, RegionMarker
from regionmarker.corpus import read_texts

QUICK = ("--budget", BUDGET, "--no-power")


@pytest.fixture
def server():
    running = EmbeddingServer()
    yield running
    running.stop()


def test_a_copy_is_convicted_and_an_innocent_is_not(run, key, answered):
    thief = json.loads(run("verify", "--key", key, "--suspect", "file:thief.parquet", *QUICK, "--json").stdout)
    assert (thief["outcome"], thief["look"]) == ("infringement", 1)
    assert thief["p_value"] <= thief["judged_at"] == 5e-4
    assert thief["paper"]["cannot_say"]
    innocent = json.loads(run("verify", "--key", key, "--suspect", "file:innocent.parquet", *QUICK, "--json").stdout)
    assert innocent["outcome"] == "no evidence"


def test_every_key_of_the_file_judges(run, key, answered, wordllama):
    old = KeyRing.load(key).primary.id
    run("key", "rotate", key)
    new = KeyRing.load(key).primary.id
    run("probes", "--key", key, "--out", "all.txt", "--budget", BUDGET)
    texts = read_texts(answered / "all.txt")
    served = RegionMarker.load(key, key_id=old).transform(wordllama.encode(texts))
    Answers("copy", tuple(texts), served).to_parquet(answered / "copy.parquet")
    options = ("verify", "--key", key, "--suspect", "file:copy.parquet", *QUICK)
    found = json.loads(run(*options, "--json").stdout)
    assert (found["outcome"], found["key_id"]) == ("infringement", old)
    assert [other["key_id"] for other in found["other_keys"]] == [new]
    assert found["judged_at"] == pytest.approx(1e-3 / 4)  # two keys, first look
    shown = run(*options)
    assert new in shown.stdout
    assert "2 keys judged" in " ".join(shown.stderr.split())
    assert json.loads(run(*options, "--key-id", new, "--json").stdout)["outcome"] == "no evidence"
    assert json.loads(run(*options, "--dry-run", "--json").stdout)["queries"] == len(texts) > BUDGET
    assert "is not in this ring" in run(*options, "--key-id", "nonsense", code=2).stderr


def test_people_get_both_tests_side_by_side(run, key, answered):
    shown = run("verify", "--key", key, "--suspect", "file:thief.parquet", *QUICK).stdout
    assert shown.lstrip().startswith("INFRINGEMENT")
    assert "The paper's statistics" in shown


def test_exit_codes_are_for_scripts(run, key, answered):
    run("verify", "--key", key, "--suspect", "file:thief.parquet", *QUICK, "--exit-code", code=1)
    run("verify", "--key", key, "--suspect", "file:innocent.parquet", *QUICK, "--exit-code")


def test_a_dry_run_asks_nothing(run, key):
    cost = json.loads(
        run(
            "verify", "--key", key, "--suspect", "https://127.0.0.1:9/v1#m", "--budget", BUDGET, "--dry-run", "--json"
        ).stdout
    )
    assert cost["queries"] == cost["sent"] == BUDGET
    assert cost["tokens"] > BUDGET
    assert (cost["requests"], cost["measured"]) == (8, False)


def test_a_dry_run_tells_money_and_what_is_kept(run, key, server):
    options = ("verify", "--key", key, "--suspect", f"{server.url}#small", *QUICK, "--cache", "a.sqlite")
    priced = (*options, "--dry-run", "--price-per-million", 2)
    assert "at 2 for a million tokens" in " ".join(run(*priced).stdout.split())
    assert not server.asked
    run(*options)
    after = json.loads(run(*priced, "--json").stdout)
    assert (after["kept"], after["sent"], after["price"]) == (BUDGET, 0, 0)
    fresh = json.loads(run(*priced, "--fresh", "--json").stdout)
    assert (fresh["sent"], fresh["price"]) == (BUDGET, pytest.approx(fresh["tokens"] * 2e-6))
    assert "goes with --dry-run" in run(*options, "--price-per-million", 2, code=2).stderr


def test_kept_answers_say_so_and_fresh_ones_are_asked_again(run, key, server):
    options = ("verify", "--key", key, "--suspect", f"{server.url}#small", *QUICK, "--cache", "a.sqlite")
    assert "asks again" not in run(*options).stderr
    asked = len(server.asked)
    told = " ".join(run(*options).stderr.split())
    assert f"{BUDGET} answers from " in told
    assert "UTC, nothing was asked; --fresh asks again." in told
    assert len(server.asked) == asked
    assert json.loads(run(*options, "--fresh", "--json").stdout)["reused"] == 0
    assert len(server.asked) == 2 * asked


def test_the_suspect_is_named_as_typed_and_by_its_name_for_people(run, key, server, tmp_path):
    typed = f"{server.url}#small"
    options = ("verify", "--key", key, "--suspect", typed, *QUICK, "--cache", "a.sqlite", "--out")
    first = json.loads(run(*options, "one", "--json").stdout)
    assert first["suspect"] == typed
    second = json.loads(run(*options, "two", "--suspect-name", "Acme Embed", "--json").stdout)
    assert second["suspect"] == f"Acme Embed ({typed})"
    assert (second["look"], second["judged_at"]) == (1, first["judged_at"])  # a name is no new look
    page = (tmp_path / "two" / "report.html").read_text()
    assert "Acme Embed" in page
    assert "openai:" not in page
    run("evidence", "check", "two")


def test_a_refusal_names_the_variable_to_set(run, key, server):
    server.script[:] = [lambda handler, question: server.send(handler, 401, b"who are you?")]
    options = ("verify", "--key", key, "--suspect", f"{server.url}#small", *QUICK, "--cache", "a.sqlite")
    told = " ".join(run(*options, code=3).stderr.split())
    assert "set REGIONMARKER_SUSPECT_API_KEY" in told
    assert "openai:" not in told  # OpenAI is not asked, and not accused


MISTAKES = [
    (("--out", "evidence", "--disclosure", "sumary"), "must be one of summary, expert, court"),
    (("--disclosure", "expert"), "--disclosure goes with --out"),
    (("--out", "nowhere/evidence"), "the folder nowhere does not exist"),
    (("--out", "evidence", "--level", 0.01), "the key is committed to 0.001"),
    (("--level", 2), "must lie between 0 and 1"),
    (("--tenants-file", "nowhere.txt"), "nowhere.txt"),
    (("--suspect-name", " "), "--suspect-name is empty"),
    (("--budget", 0), "a budget of 0 queries is too small"),
]


def test_mistakes_are_found_before_anything_is_asked(run, key, server):
    suspect = ("--suspect", f"{server.url}#small", "--cache", "a.sqlite")
    for options, message in MISTAKES:
        told = run("verify", "--key", key, *suspect, *QUICK, *options, code=2).stderr
        assert message in " ".join(told.split()), options
    key.with_name("k.rmkey.ledger.jsonl").write_text("nonsense\n")
    assert "line 1 is damaged" in run("verify", "--key", key, *suspect, *QUICK, code=2).stderr
    assert not server.asked


def test_own_probes_come_with_their_embeddings_or_the_clean_encoder(run, key, corpus, answered):
    options = ("verify", "--key", key, "--suspect", "file:thief.parquet", *QUICK)
    assert "the key's own probes need none" in run(*options, "--encoder", "wordllama", code=2).stderr


def test_a_server_that_is_not_there_leaves_with_3(run, key, tmp_path):
    done = run(
        "verify", "--key", key, "--suspect", "http://127.0.0.1:9/v1#m", "--budget", BUDGET, "--cache", "a.db", code=3
    )
    assert "regionmarker: http://127.0.0.1:9/v1#m cannot be reached" in " ".join(done.stderr.split())  # as typed
    assert done.stdout == ""  # what a log of retries would break is a reader of --json


def test_killed_and_run_again_no_answer_is_asked_twice_and_the_verdict_is_the_same(run, key, server, tmp_path):
    suspect, options = f"{server.url}#small", ("--budget", BUDGET, "--no-power", "--json")
    command = [sys.executable, "-m", "regionmarker", "verify", "--key", key, "--suspect", suspect, *options]
    for answered in (2, 1, 3):
        held = threading.Event()

        def hold(handler, question, held=held):
            held.set()
            server.stopping.wait(120)
            handler.close_connection = True

        server.script[:] = [server.answer] * answered + [hold]
        process = subprocess.Popen([*map(str, command), "--cache", "a.sqlite"], cwd=tmp_path, stderr=subprocess.DEVNULL)
        assert held.wait(120)
        process.kill()
        process.wait()
        assert not (tmp_path / "k.rmkey.ledger.jsonl").exists()  # no verdict, so no look
    resumed = json.loads(run(*command[3:], "--cache", "a.sqlite").stdout)
    sent = [text for batch in server.asked for text in batch]
    assert len(sent) == BUDGET + 3 * 64  # the batches that were in hand when the process died
    assert len(set(sent)) == BUDGET
    unbroken = json.loads(run(*command[3:], "--cache", "b.sqlite").stdout)
    assert len(server.asked) * 64 > 2 * BUDGET  # it asked everything anew
    told = ("outcome", "p_value", "judged_at", "look", "answers_digest", "scores_digest")
    assert [resumed[name] for name in told] == [unbroken[name] for name in told]


def test_a_server_that_never_recovers_leaves_with_3_and_its_answers_are_kept(run, key, server, tmp_path):
    def refuse(handler, question):
        server.script.append(refuse)
        server.send(handler, 401, b"no")

    server.script[:] = [server.answer, server.answer, refuse]
    options = ("verify", "--key", key, "--suspect", f"{server.url}#small", *QUICK, "--cache", "a.sqlite")
    assert "128 of 500 answers are kept in a.sqlite" in " ".join(run(*options, code=3).stderr.split())
    server.script.clear()
    before = len(server.asked)
    assert json.loads(run(*options, "--json").stdout)["outcome"] == "no evidence"
    assert sum(map(len, server.asked[before:])) == BUDGET - 128


@pytest.mark.parametrize(
    ("suspect", "message"),
    [
        ("file:nowhere.parquet", "nowhere.parquet"),
        ("https://127.0.0.1:9/v1", "must name a model"),
        ("word2vec", "word2vec"),
    ],
)
def test_bad_suspects_get_one_sentence(run, key, suspect, message):
    assert message in run("verify", "--key", key, "--suspect", suspect, *QUICK, code=2).stderr
