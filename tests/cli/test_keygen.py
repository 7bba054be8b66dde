"""keygen: a corpus in, a key out, or one sentence about what is wrong and no file."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker import RegionMarker
from regionmarker.corpus import read_blocks

SMALL = ("--pool", 64, "--reservoir", 512)


def test_a_key_from_a_corpus_with_embeddings(run, corpus, tmp_path):
    done = run("keygen", "--corpus", corpus, "--out", "k.rmkey", *SMALL, "--json")
    facts = json.loads(done.stdout)
    assert facts["key_file"] == "k.rmkey"
    assert facts["secret_file"] == "k.rmkey.secret"
    assert (facts["encoder"], facts["grid"], facts["width"]) == ("precomputed", "float16", 256)
    assert (tmp_path / "k.rmkey").exists()


def test_a_passphrase_of_one_letter_is_refused_where_a_key_is_made(run, corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("REGIONMARKER_PASSPHRASE", "a")
    done = run("keygen", "--corpus", corpus, "--out", "k.rmkey", *SMALL, code=2)
    assert "the new passphrase has 1 letters and needs 12" in done.stderr
    assert not (tmp_path / "k.rmkey").exists()


def test_a_weak_passphrase_of_before_still_opens_its_key(run, tmp_path, marker, monkeypatch):
    marker.save(tmp_path / "k.rmkey", passphrase="a")
    monkeypatch.setenv("REGIONMARKER_PASSPHRASE", "a")
    assert marker.key_.id in run("key", "info", "k.rmkey").stdout


@pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".csv"])
def test_a_key_from_texts_and_an_encoder(run, tmp_path, sentences, suffix):
    texts = [text.replace('"', "") for text in sentences[:700]]
    path = tmp_path / f"corpus{suffix}"
    lines = {
        ".txt": texts,
        ".jsonl": [json.dumps({"text": text}) for text in texts],
        ".csv": ["id,text", *(f'{number},"{text}"' for number, text in enumerate(texts))],
    }[suffix]
    path.write_text("\n".join(lines))
    done = run(
        "keygen", "--corpus", path, "--encoder", "wordllama", "--cache", "cache.db", "--out", "k.rmkey",
        "--pool", 64, "--reservoir", 512, "--json",
    )  # fmt: skip
    assert json.loads(done.stdout)["encoder"].startswith("wordllama")
    assert (tmp_path / "cache.db").exists()


def broken(tmp_path, case):
    path = tmp_path / "bad.parquet"
    vectors = {"nan": [[1.0, float("nan")]], "zero": [[0.0, 0.0]], "integers": [[1, 0]], "ragged": [[1.0], [1.0, 0.0]]}
    if case == "no text":
        pq.write_table(pa.table({"words": ["a"]}), path)
    elif case == "unreadable":
        path.write_bytes(b"PAR1 this is not parquet PAR1")
    elif case == "no embedding":
        pq.write_table(pa.table({"text": ["a"]}), path)
    elif case == "null":
        pq.write_table(pa.table({"text": ["a"], "embedding": pa.array([None], pa.list_(pa.float32()))}), path)
    elif case == "empty":
        pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    else:
        rows = vectors[case]
        pq.write_table(pa.table({"text": [f"text {row}" for row in range(len(rows))], "embedding": rows}), path)
    return path


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("no text", "has no column text; it has words"),
        ("unreadable", "cannot read"),
        ("no embedding", "has no embedding column: give --encoder"),
        ("null", "column embedding has a null at row 0"),
        ("empty", "holds no texts"),
        ("nan", "row 0 holds NaN"),
        ("zero", "row 0 is zero"),
        ("integers", "must be float16, float32 or float64, but has dtype int64"),
        ("ragged", "its rows have different lengths"),
    ],
)
def test_bad_corpora_get_one_sentence_and_leave_no_file(run, tmp_path, case, message):
    done = run("keygen", "--corpus", broken(tmp_path, case), "--out", "k.rmkey", *SMALL, code=2)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("*rmkey*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pool", 2000), "distinct texts, but the pool needs 2000"),
        (("--ratio", 0.95, *SMALL), "trigger regions are wanted"),
        (("--dimension", 20, *SMALL), "dimension is 20"),
        (("--out", "missing/k.rmkey"), "the folder missing does not exist"),
        (("--encoder", "word2vec"), "word2vec"),
        (("--cache", "c.db"), "--cache goes with --encoder"),
    ],
)
def test_bad_options_get_one_sentence(run, corpus, tmp_path, options, message):
    done = run("keygen", "--corpus", corpus, "--out", "k.rmkey", *options, code=2)
    assert message in done.stderr
    assert not list(tmp_path.glob("*rmkey*"))


def test_an_existing_key_is_kept_unless_forced(run, corpus, key):
    before = key.read_bytes()
    assert "exists already" in run("keygen", "--corpus", corpus, "--out", key, *SMALL, code=2).stderr
    assert key.read_bytes() == before
    run("keygen", "--corpus", corpus, "--out", key, *SMALL, "--force")
    assert key.read_bytes() != before


SETTINGS = {"seed": 3, "pool": 64, "reservoir": 512}
FILES, ROWS = 5, 300


@pytest.fixture
def folder(tmp_path, sentences, embeddings):
    """A folder of Parquet files; the last repeats texts of the first."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(FILES):
        part = slice(number * ROWS, (number + 1) * ROWS) if number < FILES - 1 else slice(0, ROWS)
        rows = embeddings[part]
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
        pq.write_table(pa.table({"text": sentences[part], "embedding": vectors}), folder / f"part-{number}.parquet")
    return folder


def in_memory(corpus):
    blocks = list(read_blocks(corpus))
    texts = [text for part, _ in blocks for text in part]
    return RegionMarker(**SETTINGS).fit(texts, embeddings=np.concatenate([rows for _, rows in blocks])).key_


def assert_same(one, other) -> None:
    assert one.id == other.id
    assert one.pool.texts == other.pool.texts
    assert one.reservoir.texts == other.reservoir.texts
    assert np.array_equal(one.pool.embeddings, other.pool.embeddings)
    assert (one.mark.regions, one.mark.tenant_regions) == (other.mark.regions, other.mark.tenant_regions)
    assert one.number_format == other.number_format
    for name, array in one.mark.reduction.arrays().items():
        assert np.abs(array - other.mark.reduction.arrays()[name]).max() < 1e-6


def test_a_streaming_pass_over_files(run, folder):
    wanted = in_memory(folder)
    assert_same(RegionMarker(**SETTINGS).fit_blocks(read_blocks(folder)).key_, wanted)
    run("keygen", "--corpus", folder, "--out", "k.rmkey", "--seed", 3, *SMALL)
    assert_same(RegionMarker.load(folder.parent / "k.rmkey").key_, wanted)


def test_a_key_is_made_on_one_machine(run, folder, tmp_path):
    done = run("keygen", "--corpus", folder, "--out", "k.rmkey", *SMALL, "--engine", "ray", code=2)
    assert "No such option: --engine" in done.stderr
    assert not list(tmp_path.glob("*rmkey*"))
