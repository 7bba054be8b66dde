"""probes: the texts to ask by hand, shuffled, in a file that says nothing else."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from regionmarker.corpus import read_texts
from regionmarker.errors import InputError
from regionmarker.keys.files import KeyRing
from regionmarker.verification.asking import ask
from regionmarker.verification.questions import plan_questions


def test_the_texts_are_written_and_the_next_step_is_named(run, key, tmp_path):
    secret = KeyRing.load(key).primary
    expected = plan_questions(secret, 300)
    done = run("probes", "--key", key, "--out", "probes.jsonl", "--budget", 300)
    assert f"regionmarker verify --key {key} --suspect file:answers.parquet --budget 300\n" in done.stderr
    assert "Ask the suspect for the embedding of every text" in done.stderr
    texts = read_texts(tmp_path / "probes.jsonl")
    assert sorted(texts) == sorted(expected.texts)
    assert tuple(texts) not in (secret.pool.texts + expected.probes.texts, expected.probes.texts + secret.pool.texts)
    assert {tuple(json.loads(line)) for line in (tmp_path / "probes.jsonl").read_text().splitlines()} == {("text",)}


def test_every_format_and_one_json_object(run, key, tmp_path):
    written = []
    for name in ("probes.jsonl", "probes.txt", "probes.parquet"):
        done = run("probes", "--key", key, "--out", name, "--json")
        facts = json.loads(done.stdout)
        assert done.stderr == ""
        texts = read_texts(tmp_path / name)
        assert facts["queries"] == len(texts) == len(set(texts))
        assert facts["characters"] == sum(map(len, texts))
        assert facts["then"] == f"regionmarker verify --key {key} --suspect file:answers.parquet"
        written.append(texts)
    assert len({tuple(sorted(texts)) for texts in written}) == 1
    assert len({tuple(texts) for texts in written}) == 3  # a fresh shuffle each time
    assert pq.read_schema(tmp_path / "probes.parquet").names == ["text"]
    assert len(list(tmp_path.glob("*probes*"))) == 3


def test_what_cannot_be_written_is_refused_in_one_sentence(run, key, tmp_path):
    (tmp_path / "old.jsonl").write_text("precious")
    cases = {
        ("--out", "probes.xls"): "must end in .jsonl, .txt, .parquet",
        ("--out", "old.jsonl"): "exists already: choose another name, or use --force",
        ("--out", "nowhere/probes.jsonl"): "the folder nowhere does not exist",
        (
            "--out",
            "probes.jsonl",
            "--budget",
            "100",
        ): "a budget of 100 queries is too small: this key needs at least 184",
    }
    for arguments, message in cases.items():
        done = run("probes", "--key", key, *arguments, code=2)
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
    assert (tmp_path / "old.jsonl").read_text() == "precious"
    assert not (tmp_path / "probes.jsonl").exists()
    run("probes", "--key", key, "--out", "old.jsonl", "--force")
    assert len(read_texts(tmp_path / "old.jsonl")) > 184


def test_answers_by_hand_come_back(run, key, tmp_path, wordllama):
    run("probes", "--key", key, "--out", "probes.txt", "--budget", 300)
    texts = read_texts(tmp_path / "probes.txt")
    lines = [
        json.dumps({"text": text, "embedding": row.tolist()})
        for text, row in zip(texts, wordllama.encode(texts), strict=True)
    ]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    secret = KeyRing.load(key).primary
    by_hand = ask(secret, f"file:{tmp_path / 'answers.jsonl'}", 300)
    assert by_hand.digest == ask(secret, "wordllama", 300).digest


def test_texts_with_line_breaks_need_another_format(tmp_path):
    from regionmarker.cli.probes import write_texts

    texts = ["one\ntwo", "東京"]
    with pytest.raises(InputError, match="cannot hold texts with line breaks"):
        write_texts(tmp_path / "a.txt", texts)
    for name in ("a.jsonl", "a.parquet"):
        write_texts(tmp_path / name, texts)
        assert read_texts(tmp_path / name) == texts
