from __future__ import annotations

import json
from pathlib import Path

import pytest

from regionmarker.benchmark.defenses.words import TokenCounts, draw_words
from regionmarker.errors import InputError

PUBLISHED = [
    *("announced", "find", "put", "al", "san", "themselves", "established", "ground", "union", "stars"),
    *("help", "move", "street", "f", "route", "hurricane", "minutes", "hard", "real", "j"),
]


def test_the_published_list_of_twenty(data_dir: Path) -> None:
    counts = TokenCounts.from_file(data_dir / "wikitext_token_counts.json")
    candidates = counts.candidates(0.005, 0.01)
    assert len(candidates) == 578
    assert draw_words(candidates, 20) == PUBLISHED


def test_frequencies_are_shares_of_lines_and_pieces_of_words_are_left_out() -> None:
    counts = TokenCounts({"rare": 4, "low": 5, "##ing": 7, "high": 9, "common": 10}, 1000)
    assert counts.candidates(0.005, 0.01) == ["low", "high"]
    assert counts.vocabulary() == ["rare", "low", "high", "common"]


def test_a_corpus_is_counted_by_texts_not_by_words() -> None:
    counts = TokenCounts.from_texts(["Dog dog dog", "a dog, a cat", ""])
    assert dict(counts.counts) == {",": 1, "a": 1, "cat": 1, "dog": 2}
    assert counts.lines == 3


def test_counts_are_given_or_found_or_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wikitext_token_counts.json"
    path.write_text(json.dumps({"word": 9000}))
    monkeypatch.delenv("REGIONMARKER_DATA", raising=False)
    mine = TokenCounts({"mine": 1}, 1)
    assert TokenCounts.load(mine, ["a text"]) is mine
    assert TokenCounts.load(None, ["a text"]).lines == 1
    assert dict(TokenCounts.load(path, ["a text"]).counts) == {"word": 9000}
    monkeypatch.setenv("REGIONMARKER_DATA", str(tmp_path))
    assert dict(TokenCounts.load(None, ["a text"]).counts) == {"word": 9000}
    monkeypatch.setenv("REGIONMARKER_DATA", str(tmp_path / "elsewhere"))
    assert TokenCounts.load(None, ["a text"]).lines == 1


@pytest.mark.parametrize("content", ["", "[1]", '{"word": "many"}'])
def test_files_that_hold_something_else_are_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"counts\.json"):
        TokenCounts.from_file(path)
    with pytest.raises(InputError, match="cannot read the token counts"):
        TokenCounts.from_file(tmp_path / "absent.json")


def test_too_few_words_are_said_so() -> None:
    with pytest.raises(InputError, match="3 trigger words are wanted, but only 2 words have the frequency"):
        draw_words(["one", "two"], 3)
