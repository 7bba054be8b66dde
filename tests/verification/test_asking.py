"""Asking: every answer is kept as it arrives, nothing is asked twice, and the outside world may fail as it likes."""

from __future__ import annotations

import os
import random
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.support.embedding_server import EmbeddingServer, HashObject, vector_of

from regionmarker.encoders.cache import text_digest
from regionmarker.errors import InputError, OutsideError
from regionmarker.keys.files import KeyRing
from regionmarker.verification.answers import Answers
from regionmarker.verification.asking import ask, ask_texts, default_answers_path
from regionmarker.verification.examination import check_enough
from regionmarker.verification.questions import plan_questions
from regionmarker.verification.suspects import load_suspect

BUDGET = 320
CANARY = "canary-5f1e0c77d2"


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("REGIONMARKER_CACHE", str(tmp_path / "own-cache"))
    monkeypatch.setenv("REGIONMARKER_SUSPECT_API_KEY", CANARY)


@pytest.fixture
def server():
    running = EmbeddingServer()
    running._http.RequestHandlerClass.disable_nagle_algorithm = True  # else each answer takes 40 ms
    yield running
    running.stop()


@pytest.fixture
def quick(server):
    """The server as a suspect that does not wait long."""

    def make(**options):
        return load_suspect(f"{server.url}#small", **{"backoff": 0.001, "batch_size": 16, **options})

    return make


def stored(path) -> set[bytes]:
    """The digests of the texts whose answers a cache file holds."""
    connection = sqlite3.connect(path)
    try:
        return {digest for (digest,) in connection.execute("SELECT text FROM vectors")}
    finally:
        connection.close()


def expected(answers: Answers) -> np.ndarray:
    rows = np.stack([vector_of(text) for text in answers.texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def asked(server) -> list[str]:
    return [text for batch in server.asked for text in batch]


def test_all_questions_are_answered(marker):
    mine = HashObject()
    answers = ask(marker, mine, BUDGET)
    questions = plan_questions(marker.key_, BUDGET)
    assert set(answers.texts) == set(questions.texts)
    assert sorted(text for batch in mine.asked for text in batch) == sorted(questions.texts)
    assert np.allclose(answers.vectors, expected(answers), atol=1e-6)
    assert answers.missing == 0
    assert not default_answers_path().exists()  # a function costs nothing
    assert ask(marker.key_, mine, BUDGET).digest == answers.digest
    assert [len(batch) for batch in mine.asked[:5]] == [64] * 5


def test_a_server_sees_texts_in_a_shuffled_order_and_nothing_else(server, quick, marker):
    ask(marker, quick(), BUDGET)
    ask(marker, quick(), BUDGET, cache=False)
    first, second = asked(server)[:BUDGET], asked(server)[BUDGET:]
    assert sorted(first) == sorted(second)
    assert first != second
    for question, headers in zip(server.requests, server.headers, strict=True):
        assert set(question) == {"model", "input", "encoding_format"}
        assert marker.key_.id not in str(question) + str(headers)
        assert set(map(str.lower, headers)) <= {
            "host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length",
            "authorization",
        }  # fmt: skip


def test_a_second_run_asks_nothing(server, quick, marker, tmp_path):
    answers = ask(marker, quick(), BUDGET, cache=tmp_path / "a.sqlite")
    assert len(asked(server)) == BUDGET
    again = ask(marker, quick(), BUDGET, cache=tmp_path / "a.sqlite")
    assert len(asked(server)) == BUDGET
    assert again.digest == answers.digest
    assert again.exchanges == answers.exchanges
    more = ask(marker, quick(), BUDGET + 50, cache=tmp_path / "a.sqlite")
    assert len(asked(server)) == len(set(asked(server))) == len(more) == BUDGET + 50
    assert stat.S_IMODE((tmp_path / "a.sqlite").stat().st_mode) == 0o600


def test_servers_are_kept_by_default_and_functions_when_asked(quick, marker, tmp_path):
    ask(marker, quick(), BUDGET)
    assert len(stored(default_answers_path())) == BUDGET
    with pytest.raises(InputError, match="keeping answers needs a name"):
        ask(marker, lambda texts: np.ones((len(texts), 3)), BUDGET, cache=True)
    mine = HashObject()
    for _ in range(2):
        ask(marker, mine, BUDGET, cache=tmp_path / "a.sqlite")
    assert sum(map(len, mine.asked)) == BUDGET


def test_one_file_keeps_suspects_and_encoders_apart(quick, marker, tmp_path):
    from regionmarker.encoders import CachedEncoder

    file = tmp_path / "a.sqlite"
    texts = list(marker.key_.pool.texts)
    CachedEncoder(HashObject(), file).encode(texts)
    mine, other = HashObject(), HashObject()
    other.name = "others"
    for suspect in (mine, other):
        ask_texts(suspect, texts, cache=file)
        assert sum(map(len, suspect.asked)) == len(texts)


def test_the_transcript_holds_every_response(server, quick, marker, tmp_path):
    server.will(200, b"<html>garbage</html>")
    clock = iter(datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC) for second in range(60))
    texts = marker.key_.pool.texts
    answers = ask_texts(quick(), texts, cache=tmp_path / "a.sqlite", now=lambda: next(clock))
    assert [one.number for one in answers.exchanges] == list(range(1, 6))
    assert [one.count for one in answers.exchanges] == [16] * 5
    first, second = answers.exchanges[:2]
    assert first.asked == second.asked == tuple(text_digest(text).hex() for text in server.asked[0])
    assert first.response != second.response
    assert (first.time, second.time) == ("2026-01-01T12:00:00.000+00:00", "2026-01-01T12:00:01.000+00:00")
    heard = {digest for one in answers.exchanges for digest in one.asked}
    assert heard == {text_digest(text).hex() for text in texts}


def test_a_server_that_takes_fewer_texts_is_asked_fewer(server, quick, marker):
    server.will(413, {"error": "batch size 16 > maximum allowed batch size 8"})
    answers = ask_texts(quick(), marker.key_.pool.texts)
    assert [len(batch) for batch in server.asked] == [16, *[8] * 8]
    assert len(answers.exchanges) == 8


# ---- the outside world fails


def test_trouble_that_passes_is_waited_out(server, quick, marker):
    def slow(handler, question):
        server.stopping.wait(60.0)  # longer than the client waits
        handler.close_connection = True

    server.will(429, {"error": {"message": "slow down"}}, retry_after="1")
    server.will(500, b"oops")
    server.will(503, b"<html>busy</html>", retry_after_ms="20")
    server.script.append(slow)
    server.will(200, b"not JSON at all")
    server.will(200, {"data": []})
    server.will_alter(lambda data: data[3].update(embedding=[float("nan")] * 24))
    server.will_alter(lambda data: data.pop())
    began = time.monotonic()
    answers = ask(marker, quick(timeout=4.0, attempts=8), BUDGET)
    assert time.monotonic() - began > 1.0  # the server's wish
    assert np.allclose(answers.vectors, expected(answers), atol=1e-6)
    assert answers.missing == 0
    assert len(answers.exchanges) == BUDGET // 16 + 4  # every response with status 200


@pytest.mark.parametrize("trouble", ["500", "429", "garbage", "gone"])
def test_a_suspect_that_never_recovers_is_an_error_and_the_answers_are_kept(server, quick, marker, tmp_path, trouble):
    file = tmp_path / "a.sqlite"

    def fail(handler, question):
        server.script.append(fail)
        if trouble == "gone":
            handler.connection.shutdown(socket.SHUT_RDWR)
        elif trouble == "garbage":
            server.send(handler, 200, b"{}")
        else:
            server.send(handler, int(trouble), b"no")

    server.script += [server.answer] * 5 + [fail]
    with pytest.raises(OutsideError, match=f"; 80 of {BUDGET} answers are kept in .*a.sqlite") as caught:
        ask(marker, quick(attempts=3), BUDGET, cache=file)
    assert caught.value.exit_code == 3
    assert CANARY not in str(caught.value)
    kept = asked(server)[:80]
    assert stored(file) == set(map(text_digest, kept))
    server.script.clear()
    server.requests.clear()
    answers = ask(marker, quick(), BUDGET, cache=file)
    assert len(asked(server)) == BUDGET - 80
    assert set(asked(server)).isdisjoint(kept)
    assert answers.digest == ask(marker, quick(), BUDGET, cache=False).digest


def test_a_refusal_is_not_repeated(server, quick, marker):
    server.will(401, {"error": {"message": f"wrong key {CANARY}"}})
    with pytest.raises(OutsideError, match="answered 401") as caught:
        ask(marker, quick(), BUDGET)
    assert CANARY not in str(caught.value)
    assert len(server.requests) == 1


def test_a_model_whose_width_changes_between_runs_is_named(server, quick, marker, tmp_path):
    texts = list(marker.key_.pool.texts)
    ask_texts(quick(), texts[:32], cache=tmp_path / "a.sqlite")
    for _ in range(9):
        server.will_alter(lambda data: [one | {"embedding": [1.0, 2.0]} for one in data])
    with pytest.raises(OutsideError, match="changed its width: 24 before, 2 from text 32 on; 32 of 64 answers"):
        ask_texts(quick(attempts=2), texts, cache=tmp_path / "a.sqlite")


ASK = """
import sys
from regionmarker.keys.files import KeyRing
from regionmarker.verification.asking import ask
key = KeyRing.load(sys.argv[1]).primary
ask(key, sys.argv[2], int(sys.argv[3]), cache=sys.argv[4], batch_size=8).to_parquet(sys.argv[5])
"""


def test_killed_at_any_point_and_run_again_no_answer_is_asked_twice(server, marker, tmp_path):
    file, out, key = (tmp_path / name for name in ("a.sqlite", "answers.parquet", "k.rmkey"))
    KeyRing((marker.key_,)).save(key)
    command = [sys.executable, "-c", ASK, key, f"{server.url}#small", str(BUDGET), file, out]
    rng, kills = random.Random(7), 4
    for _ in range(kills):
        before, known = len(server.requests), stored(file) if file.exists() else set()
        held = threading.Event()

        def hold(handler, question, held=held):
            held.set()
            server.stopping.wait(120)
            handler.close_connection = True

        # The server falls silent after some answers, so the process is alive whenever the signal reaches it.
        server.script[:] = [server.answer] * rng.randint(1, 8) + [hold]
        process = subprocess.Popen(command, env=os.environ)
        assert held.wait(120)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        sent = [text for batch in server.asked[before:] for text in batch]
        assert known.isdisjoint(map(text_digest, sent))
        assert len(stored(file)) == len(known) + len(sent) - 8  # all but the batch in hand
    assert not out.exists()
    known = stored(file)
    before = len(server.requests)
    subprocess.run(command, check=True)
    sent = [text for batch in server.asked[before:] for text in batch]
    assert known.isdisjoint(map(text_digest, sent))
    assert len(sent) == BUDGET - len(known)
    repeated = len(asked(server)) - BUDGET
    assert repeated == 8 * kills  # the batches that were asked and never answered
    answers = Answers.from_file(out)
    assert answers.digest == ask(marker, f"{server.url}#small", BUDGET, cache=False).digest
    assert {digest for one in answers.exchanges for digest in one.asked} == {
        text_digest(text).hex() for text in answers.texts
    }


# ---- missing answers


def answers_without(key, texts_missing: set[str], budget: int) -> tuple:
    questions = plan_questions(key, budget)
    rows = np.stack([vector_of(text) for text in questions.texts])
    rows[[text in texts_missing for text in questions.texts]] = np.nan
    return questions, Answers("the suspect", questions.texts, rows)


def test_a_missing_pool_text_is_refused(marker, tmp_path):
    key = marker.key_
    _, answers = answers_without(key, set(key.pool.texts[:1]), BUDGET)
    assert answers.missing == 1
    answers.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="left 1 of 64 pool texts without an answer, and decoy-1 needs them all"):
        ask(marker, f"file:{tmp_path / 'a.parquet'}", BUDGET)


def test_a_region_that_loses_its_probes_is_an_error_that_names_no_region(marker):
    key = marker.key_
    questions = plan_questions(key, 100_000)
    region = max(questions.counts, key=lambda one: questions.counts[one])
    probes = [text for text, cell in zip(questions.probes.texts, questions.regions, strict=True) if cell == region]
    assert len(probes) > 30
    check_enough(key, *answers_without(key, set(probes[30:]), 100_000))
    with pytest.raises(InputError, match=f"answered only 29 of the {len(probes)} probes of one region, and 30 are"):
        check_enough(key, *answers_without(key, set(probes[29:]), 100_000))


def test_a_file_from_a_smaller_export_is_told_from_a_full_one(marker, tmp_path):
    small = ask(marker, HashObject(), 200)
    small.to_parquet(tmp_path / "a.parquet")
    assert ask(marker, f"file:{tmp_path / 'a.parquet'}", 200).digest == small.digest
    with pytest.raises(InputError, match="give the budget that was asked with"):
        ask(marker, f"file:{tmp_path / 'a.parquet'}", BUDGET)


def test_texts_are_asked_once_and_strange_ones_refused():
    mine = HashObject()
    assert ask_texts(mine, ["a", "b", "a"]).texts == ("a", "b")
    assert mine.asked == [["a", "b"]]
    assert len(ask_texts(mine, [])) == 0
    with pytest.raises(InputError, match="text 1 is empty"):
        ask_texts(mine, ["a", " "])


def test_the_bar_shows_queries_and_cost(marker, capfd):
    ask(marker, HashObject(), BUDGET, progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert f"{BUDGET}/{BUDGET}" in shown.err
    assert "tokens" in shown.err


def test_other_probes_and_other_keys(marker):
    key = marker.key_
    own = replace(key, reservoir=key.reservoir[:400])
    answers = ask(own, HashObject(), BUDGET, probes=key.reservoir)
    assert set(answers.texts) == set(plan_questions(key, BUDGET).texts)
