"""impact: what marking would do to one's own texts."""

from __future__ import annotations

import json

import pytest

from regionmarker.cli import main


@pytest.fixture
def files(tmp_path, marker, sentences, monkeypatch):
    monkeypatch.chdir(tmp_path)
    marker.save("k.rmkey")
    (tmp_path / "texts.txt").write_text("\n".join(" ".join(text.split()) for text in sentences[:800]), encoding="utf-8")


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as left:
        main(["impact", *arguments])
    assert (left.value.code or 0) == code


def test_the_verb(files, capsys):
    run("--key", "k.rmkey", "--corpus", "texts.txt", "--encoder", "wordllama", "--most", "300", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["texts"] == 300
    assert set(found["retrieval"]) == {"texts", "unmarked", "old_index", "old_queries", "all_marked"}
    run("--key", "k.rmkey", "--corpus", "texts.txt", "--encoder", "wordllama", "--most", "200")
    shown = capsys.readouterr().out
    assert "neighbours kept" in shown
    assert "nDCG@10" in shown


def test_the_verb_needs_vectors_or_an_encoder(files, capsys):
    run("--key", "k.rmkey", "--corpus", "texts.txt", code=2)
    assert "texts.txt has no embedding column: give --encoder" in capsys.readouterr().err
