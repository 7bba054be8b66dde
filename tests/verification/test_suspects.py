"""Who can be asked: servers, encoders, files, functions; and what is wrong with an answer is said by its number."""

from __future__ import annotations

import json
import os
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.damage import flips, footer_bytes
from tests.support.embedding_server import EmbeddingServer, HashObject, vector_of

from regionmarker.encoders import CachedEncoder
from regionmarker.encoders.cache import text_digest
from regionmarker.errors import InputError, OutsideError
from regionmarker.verification.answers import Answers, Exchange
from regionmarker.verification.asking import ask_texts
from regionmarker.verification.suspects import Suspect, load_suspect

TEXTS = tuple(f"text number {number}" for number in range(20))
ROWS = np.stack([vector_of(text) for text in TEXTS])  # of any length
UNIT = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("REGIONMARKER_CACHE", str(tmp_path / "own-cache"))
    monkeypatch.delenv("REGIONMARKER_SUSPECT_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server():
    running = EmbeddingServer()
    running._http.RequestHandlerClass.disable_nagle_algorithm = True  # else each answer takes 40 ms
    yield running
    running.stop()


def write(path, texts, rows, kind=None):
    listed = pa.list_(pa.float32()) if kind is None else kind
    pq.write_table(pa.table({"text": list(texts), "embedding": pa.array([*rows], listed)}), path)
    return f"file:{path}"


# ---- specs and objects


def test_a_small_file_of_a_thousand_million_answers_is_refused_at_once(tmp_path, monkeypatch):
    path = tmp_path / "answers.parquet"
    one = pa.array([[1.0, 0.0]], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"text": ["a"] * 3000, "embedding": pa.concat_arrays([one] * 3000)}), path)
    monkeypatch.setattr("regionmarker.verification.answers.MOST_ROWS", 2999)
    with pytest.raises(InputError, match="holds 3000 rows, where 2999 are the most"):
        Answers.from_file(path)


def test_functions_objects_and_encoders_answer(tmp_path, wordllama):
    expected = wordllama.encode(list(TEXTS))
    suspects = [
        "wordllama",
        wordllama,
        wordllama.encode,
        lambda texts: wordllama.encode(texts).astype(np.float64) * 7.5,
        lambda texts: wordllama.encode(texts).tolist(),
        CachedEncoder(wordllama, tmp_path / "cache.sqlite"),
    ]
    for suspect in suspects:
        answers = ask_texts(suspect, TEXTS)
        assert answers.texts == TEXTS
        assert np.allclose(answers.vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
        assert np.allclose(np.linalg.norm(answers.vectors.astype(np.float64), axis=1), 1, atol=1e-6)
        assert isinstance(load_suspect(suspect), Suspect)
    assert load_suspect("wordllama").name == load_suspect(wordllama).name == "wordllama"
    assert load_suspect(HashObject()).name == "hashes"
    assert load_suspect(HashObject().encode, name="mine").name == "mine"


def test_the_digest_is_of_the_answer_as_it_came():
    scaled = ask_texts(lambda texts: ROWS[: len(texts)] * 2, TEXTS)
    plain = ask_texts(lambda texts: ROWS[: len(texts)], TEXTS)
    assert np.allclose(scaled.vectors, plain.vectors)
    assert scaled.exchanges[0].response != plain.exchanges[0].response
    assert scaled.exchanges[0].request == plain.exchanges[0].request


@pytest.mark.parametrize("prefix", ["", "openai:"])
def test_a_server_is_asked_by_its_address(server, prefix):
    answers = ask_texts(f"{prefix}{server.url}/v1#small", TEXTS)
    assert answers.suspect == f"{server.url}/v1#small"  # as it was typed, whatever its dialect
    assert np.allclose(answers.vectors, UNIT, atol=1e-6)
    assert server.asked == [list(TEXTS)]
    assert set(server.requests[0]) == {"model", "input", "encoding_format"}
    assert "authorization" not in {name.lower() for name in server.headers[0]}


def test_an_encoder_of_a_server_gets_a_true_transcript(server):
    from regionmarker.encoders.openai import OpenAIEncoder

    with OpenAIEncoder(server.url, "small") as encoder:
        bodies: list[bytes] = []
        suspect = load_suspect(encoder)
        suspect.answer(
            list(TEXTS), range(20), width=None, on_response=lambda texts, digest: bodies.append(digest.encode())
        )
    handler_body = json.dumps(
        {
            "object": "list",
            "data": server.data(server.requests[0]),
            "model": "small",
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
    ).encode()
    assert bodies == [sha256(handler_body).hexdigest().encode()]


@pytest.mark.parametrize(
    ("variables", "header"),
    [
        ({"OPENAI_API_KEY": "general-key"}, None),
        ({"OPENAI_API_KEY": "general-key", "REGIONMARKER_SUSPECT_API_KEY": "own-key"}, "Bearer own-key"),
    ],
)
def test_the_api_key_comes_from_the_environment(server, monkeypatch, variables, header):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    answers = ask_texts(f"{server.url}#small", TEXTS)
    assert server.headers[0].get("Authorization") == header
    for shown in (repr(answers), answers.suspect, repr(load_suspect(f"{server.url}#small").__dict__)):
        assert "general-key" not in shown
        assert "own-key" not in shown


@pytest.mark.parametrize(
    ("suspect", "message"),
    [
        ("https://host/v1", "must name a model: write https://HOST/v1#MODEL"),
        ("https://user:canary@host/v1#m", "must hold no user"),
        ("ftp://host#m", "unknown encoder 'ftp'"),
        ("nothing", "unknown encoder 'nothing'"),
        ("file:nowhere.parquet", "nowhere.parquet does not exist"),
        ("file:nowhere.jsonl", "nowhere.jsonl does not exist"),
        (7, "a suspect is a spec, a function .* but int was given"),
        (HashObject, "but HashObject was given"),
        (None, "but NoneType was given"),
    ],
)
def test_what_is_no_suspect_is_refused(suspect, message):
    with pytest.raises(InputError, match=message) as caught:
        load_suspect(suspect)
    assert "canary" not in str(caught.value)


def test_options_where_there_are_none_are_refused(tmp_path):
    for suspect in (HashObject(), write(tmp_path / "a.parquet", TEXTS, ROWS)):
        with pytest.raises(InputError, match="takes no options, but timeout was given"):
            load_suspect(suspect, timeout=3)
    with pytest.raises(InputError, match="name= is for functions"):
        load_suspect("wordllama", name="mine")
    with pytest.raises(InputError, match="batch_size must be at least 1"):
        load_suspect("wordllama", batch_size=0)


# ---- bad answers


def broken(change):
    """Answers well for one batch of eight, then with a change."""
    calls = []

    def suspect(texts):
        calls.append(texts)
        rows = np.stack([vector_of(text) for text in texts]).astype(np.float64)
        return rows if len(calls) == 1 else change(rows)

    return load_suspect(suspect, name="the suspect", batch_size=8)


def put(row, value):
    def change(rows):
        rows[row] = value
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(3, np.nan), "the suspect gave a vector that is not finite for text 11"),
        (put((3, 5), np.inf), "the suspect gave a vector that is not finite for text 11"),
        (put(2, 0.0), "the suspect gave a zero vector for text 10"),
        (lambda rows: rows[:, :-1], "the suspect changed its width: 24 before, 23 from text 8 on"),
        (lambda rows: rows[:-1], "the suspect was asked 8 texts and gave 7 vectors"),
        (lambda rows: [*rows[:-1], rows[-1][:-1]], "the suspect changed its width: 24 before, 23 from text 15 on"),
        (lambda rows: rows.astype(str), "the suspect must give numbers"),
        (lambda rows: None, "the suspect must give one row of numbers for each text"),
        (lambda rows: rows[0], "the suspect must give one row of numbers for each text"),
    ],
)
def test_answers_that_cannot_be_used_are_named(change, message):
    with pytest.raises(InputError, match=message):
        ask_texts(broken(change), TEXTS)


def test_a_server_that_keeps_answering_badly_is_named(server):
    def spoil(data):
        data[4]["embedding"] = [0.0] * 24

    for _ in range(9):
        server.will_alter(spoil)
    with pytest.raises(OutsideError, match="gave a zero vector for text 4; 0 of 20 answers are kept in"):
        ask_texts(load_suspect(f"{server.url}#small", attempts=3, backoff=0.001), TEXTS)
    assert len(server.requests) == 3


# ---- files


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64()), pa.list_(pa.float32(), 24)])
def test_a_parquet_file_answers(tmp_path, kind):
    spec = write(tmp_path / "answers.parquet", TEXTS, ROWS.astype(np.float64), kind)
    answers = ask_texts(spec, TEXTS[::-1])
    assert answers.suspect == "file:answers.parquet"
    assert answers.missing == 0
    assert np.allclose(answers.vectors, UNIT[::-1], atol=1e-6)
    (exchange,) = answers.exchanges
    assert exchange.response == sha256((tmp_path / "answers.parquet").read_bytes()).hexdigest()


def test_jsonl_and_csv_files_answer(tmp_path):
    lines = [json.dumps({"text": text, "embedding": row.tolist()}) for text, row in zip(TEXTS, ROWS, strict=True)]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    quoted = [f'"{text}","{row.tolist()}"' for text, row in zip(TEXTS, ROWS, strict=True)]
    (tmp_path / "answers.csv").write_text("\n".join(["text,embedding", *quoted]))
    for name in ("answers.jsonl", "answers.csv"):
        assert np.allclose(ask_texts(f"file:{tmp_path / name}", TEXTS).vectors, UNIT, atol=1e-6)


def test_missing_rows_and_nulls_are_missing_answers(tmp_path):
    rows = [None if row % 5 == 0 else ROWS[row] for row in range(18)]
    answers = ask_texts(write(tmp_path / "a.parquet", TEXTS[:18], rows), TEXTS)
    assert answers.missing == 6
    assert np.flatnonzero(np.isnan(answers.vectors).all(axis=1)).tolist() == [0, 5, 10, 15, 18, 19]
    assert "6 missing" in repr(answers)


def test_spaces_around_a_text_do_not_matter_in_a_file(tmp_path):
    spec = write(tmp_path / "a.parquet", ["one", " two"], ROWS[:2])
    assert np.allclose(ask_texts(spec, ["one ", "two", " two"]).vectors, UNIT[[0, 1, 1]], atol=1e-6)


def test_a_text_that_is_answered_twice(tmp_path):
    same = write(tmp_path / "same.parquet", [*TEXTS, TEXTS[3]], [*ROWS, ROWS[3] * 2])
    assert len(load_suspect(same).answers) == 20
    other = write(tmp_path / "other.parquet", [*TEXTS, TEXTS[3]], [*ROWS, ROWS[4]])
    with pytest.raises(InputError, match=r"other.parquet answers the same text differently in rows 3 and 20"):
        load_suspect(other)


def spoilt(row, value):
    rows = ROWS.copy()
    rows[row] = value
    return rows


@pytest.mark.parametrize(
    ("texts", "rows", "message"),
    [
        (TEXTS, spoilt(7, np.nan), "gave a vector that is not finite for text 7"),
        (TEXTS, spoilt((7, 2), np.inf), "gave a vector that is not finite for text 7"),
        (TEXTS, spoilt(7, 0.0), "gave a zero vector for text 7"),
        (TEXTS, [*ROWS[:-1], ROWS[-1][:-1]], "its rows have different lengths"),
        (TEXTS, [None] * 20, "holds no answer at all"),
        ([*TEXTS[:-1], " "], ROWS, "row 19: the text is empty"),
        ([*TEXTS[:-1], None], ROWS, "row 19: the text is empty"),
    ],
)
def test_files_that_cannot_be_used_are_refused(tmp_path, texts, rows, message):
    with pytest.raises(InputError, match=rf"bad\.parquet.*{message}"):
        load_suspect(write(tmp_path / "bad.parquet", texts, rows))


def test_files_that_are_something_else_are_refused(tmp_path):
    pq.write_table(pa.table({"text": list(TEXTS)}), tmp_path / "texts.parquet")
    pq.write_table(pa.table({"text": list(TEXTS), "embedding": list(range(20))}), tmp_path / "numbers.parquet")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "texts.jsonl").write_text('{"text": "one"}\n')
    (tmp_path / "answers.npy").write_bytes(b"x")
    for name, message in {
        "texts.parquet": "must have the columns text and embedding",
        "numbers.parquet": "column embedding is not usable",
        "torn.parquet": "cannot read .*torn.parquet",
        "texts.jsonl": "must have the columns text and embedding",
        "answers.npy": "is not a file of answers: give one of .parquet, .jsonl, .csv",
    }.items():
        with pytest.raises(InputError, match=message):
            load_suspect(f"file:{tmp_path / name}")


@pytest.mark.parametrize("suffix", ["parquet", "fixed.parquet", "jsonl"])
def test_answers_that_are_too_wide_are_refused(tmp_path, suffix):
    """Judging 12,000 numbers each took 55 s and 3.9 GB."""
    path, wide = tmp_path / f"wide.{suffix}", np.ones((2, 8193), dtype=np.float32)
    if suffix == "jsonl":
        lines = [json.dumps({"text": text, "embedding": row.tolist()}) for text, row in zip(TEXTS, wide, strict=False)]
        path.write_text("\n".join(lines))
    else:
        write(path, TEXTS[:2], wide, pa.list_(pa.float32(), 8193) if "fixed" in suffix else None)
    with pytest.raises(InputError, match=r"wide.* have 8193 numbers each, and 8192 are the most"):
        load_suspect(f"file:{path}")
    with pytest.raises(InputError, match="have 8193 numbers each"):
        ask_texts(lambda texts: np.ones((len(texts), 8193)), TEXTS)
    assert Answers("widest", TEXTS[:2], wide[:, :8192]).width == 8192


@pytest.mark.parametrize(
    "time", ["yesterday", "", "2026-13-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", 5, None]
)
def test_a_transcript_with_a_bad_time_is_a_sentence(tmp_path, time):
    path = tmp_path / "a.parquet"
    _with_transcript(path, [[1, time, ["ab"], "cd"]])
    with pytest.raises(InputError, match=r"the transcript in .*a\.parquet is damaged"):
        Answers.from_file(path)


@pytest.mark.parametrize("exchange", [[1, "2026-01-01", ["no digest"], "cd"], [1, "2026-01-01", [], 7], [1], 7, None])
def test_a_transcript_that_is_none_is_a_sentence(tmp_path, exchange):
    _with_transcript(tmp_path / "a.parquet", [exchange])
    with pytest.raises(InputError, match="is damaged"):
        Answers.from_file(tmp_path / "a.parquet")


def _with_transcript(path, exchanges):
    about = json.dumps({"suspect": "somebody", "exchanges": exchanges})
    table = pa.table({"text": list(TEXTS), "embedding": list(ROWS)})
    pq.write_table(table.replace_schema_metadata({"regionmarker": about}), path)


def test_a_file_of_no_time_is_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "one", "embedding": [1.0, 0.0]}))
    far = os.stat_result((0o100600, 0, 0, 1, 0, 0, 10, 0, 2**60, 0))
    monkeypatch.setattr("pathlib.Path.stat", lambda _path, **_options: far)
    with pytest.raises(InputError, match=r"a\.jsonl was written at no time that a calendar has: run touch"):
        load_suspect(f"file:{path}")


def test_300_flipped_files_of_answers_are_read_or_refused(tmp_path):
    path = tmp_path / "a.parquet"
    Answers("somebody", TEXTS, ROWS, (Exchange(1, "2026-01-01T00:00:00+00:00", ("ab",), "cd"),)).to_parquet(path)
    content = path.read_bytes()
    refused = 0
    for damaged in [*flips(content, 200, last=footer_bytes(content)), *flips(content, 100, seed=1)]:
        path.write_bytes(damaged)
        try:
            Answers.from_file(path)
        except InputError:
            refused += 1
    assert 60 < refused < 300


def test_widths_that_change_between_blocks_are_named(tmp_path):
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, pa.schema({"text": pa.string(), "embedding": pa.list_(pa.float32())})) as writer:
        for half, width in ((slice(0, 10), 24), (slice(10, 20), 23)):
            rows = pa.array(list(ROWS[half, :width]), pa.list_(pa.float32()))
            writer.write_table(pa.table({"text": list(TEXTS[half]), "embedding": rows}))
    with pytest.raises(InputError, match=r"a\.parquet.*(changed its width|different lengths)"):
        load_suspect(f"file:{path}")


# ---- answers


def test_answers_keep_every_bit_on_disk(tmp_path):
    rows = np.concatenate([ROWS[:19], np.full((1, 24), np.nan)]).astype(np.float32)
    asked = tuple(text_digest(text).hex() for text in TEXTS)
    answers = Answers("openai:https://host/v1#m", TEXTS, rows, (Exchange(1, "2026-01-01T00:00:00+00:00", asked, "ab"),))
    answers.to_parquet(tmp_path / "a.parquet")
    again = Answers.from_file(tmp_path / "a.parquet")
    assert (again.suspect, again.texts, again.exchanges) == (answers.suspect, answers.texts, answers.exchanges)
    assert again.vectors.tobytes() == answers.vectors.tobytes()
    assert again.digest == answers.digest
    assert load_suspect(f"file:{tmp_path / 'a.parquet'}").name == answers.suspect
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet"]


def test_the_digest_is_of_the_answers_and_not_of_their_order():
    answers = Answers("s", TEXTS, ROWS)
    order = np.random.default_rng(0).permutation(20)
    assert Answers("s", tuple(TEXTS[row] for row in order), ROWS[order]).digest == answers.digest
    assert Answers("s", TEXTS, ROWS * 2).digest == answers.digest
    assert Answers("s", TEXTS, spoilt(3, ROWS[4])).digest != answers.digest
    assert Answers("s", TEXTS, spoilt(3, np.nan)).digest != answers.digest
    assert Answers("s", TEXTS[:19], ROWS[:19]).digest != answers.digest


def test_requests_are_joined_unambiguously():
    def request(*texts):
        return Exchange(1, "", tuple(text_digest(text).hex() for text in texts), "").request

    assert len({request("ab", "c"), request("a", "bc"), request("abc"), request("c", "ab"), request()}) == 5


def test_answers_that_are_no_answers_are_refused():
    for texts, rows, message in (
        (("a", "a"), ROWS[:2], "hold a text twice"),
        (("a", "b"), ROWS[:3], "one row for each of 2 texts"),
        (("a", "b"), spoilt((1, 3), np.nan)[:2], "not finite for text 1"),
        (("a", "b"), spoilt(0, 0.0)[:2], "a zero vector for text 0"),
    ):
        with pytest.raises(InputError, match=message):
            Answers("s", texts, rows)


def test_exchanges_show_digests_only():
    shown = ask_texts(HashObject(), TEXTS).exchanges[0].to_dict()
    assert list(shown) == ["number", "time", "count", "request", "response"]
    assert shown["count"] == 20


@pytest.mark.parametrize("name", ["answers.parquet", "folder/answers.jsonl", "answers.csv"])
def test_a_bare_file_of_answers_is_told_how_to_be_written(name):
    with pytest.raises(InputError, match=f"did you mean --suspect file:{name}"):
        load_suspect(name)
