"""The ledger: what counts as a look, and a chain in which no line is missing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tests.support.suspects import BUDGET

from regionmarker import ask
from regionmarker.corpus import TextSet
from regionmarker.errors import InputError, OutsideError
from regionmarker.keys.files import KeyRing
from regionmarker.keys.key import key_from_key
from regionmarker.verification.answers import Answers
from regionmarker.verification.judging import judge
from regionmarker.verification.ledger import Ledger, chained, read_ledger


@pytest.fixture(params=["decoy-1", "decoy-2"])
def case(request):
    """A key of each statistic, and a copy's answers."""
    if request.param == "decoy-2":
        return request.getfixturevalue("graded_marker").key_, request.getfixturevalue("graded_answers")(budget=1200)
    marker, copy_of = request.getfixturevalue("judge_marker"), request.getfixturevalue("copy_of")
    return marker.key_, ask(marker, copy_of(marker, 0.9), budget=BUDGET)


def shuffled(texts: TextSet, seed: int) -> TextSet:
    order = np.random.default_rng(seed).permutation(len(texts))
    return TextSet(tuple(texts.texts[row] for row in order), texts.embeddings[order])


def looked(key, answers, ledger, probes=None) -> int:
    return judge(key, answers, probes=probes, ledger=ledger, power=False).look


def test_a_look_is_a_digest_of_inputs_whatever_the_suspect_is_called(case, tmp_path):
    key, answers = case
    ledger = tmp_path / "ledger.jsonl"
    assert looked(key, answers, ledger) == 1
    back = slice(None, None, -1)
    assert looked(key, Answers("another name", answers.texts[back], answers.vectors[back]), ledger) == 1
    strange = Answers("more", (*answers.texts, "a text of no key"), np.vstack([answers.vectors, answers.vectors[:1]]))
    assert looked(key, strange, ledger) == 1
    changed = answers.vectors.copy()
    changed[0] += 1e-3
    assert looked(key, Answers("a copy", answers.texts, changed), ledger) == 2
    assert looked(key, answers, ledger) == 1  # judging the same again is free
    assert looked(replace(key, salt=b"s" * 16), answers, ledger) == 3  # other targets, so another chance


def test_own_probes_in_any_form_are_looks_like_others(case, tmp_path):
    """2,903 judgements of one set of answers with different own probes once all counted as the first look."""
    key, answers = case
    ledger = tmp_path / "ledger.jsonl"
    looked(key, answers, ledger)
    own = shuffled(key.reservoir, 0)
    first = looked(key, answers, ledger, own)
    assert looked(key, answers, ledger, shuffled(own, 1)) == first
    twice = TextSet((*own.texts, *own.texts), np.vstack([own.embeddings, own.embeddings]))
    assert looked(key, answers, ledger, twice) == first
    assert looked(key, answers, ledger, TextSet(own.texts, own.embeddings.astype(np.float64))) == first
    for number in range(1, 5):
        part = TextSet(own.texts[: -number * 100], own.embeddings[: -number * 100])
        assert looked(key, answers, ledger, part) == first + number


def test_a_ring_that_judges_the_same_again_takes_no_look(judge_marker, copy_of, tmp_path):
    ring = KeyRing((judge_marker.key_, key_from_key(judge_marker.key_, seed=6)))
    answers, ledger = ask(ring, copy_of(judge_marker, 0.9), budget=BUDGET), tmp_path / "ledger.jsonl"
    for _ in range(2):
        verdict = judge(ring, answers, ledger=ledger, power=False)
        assert [verdict.look, *(other.look for other in verdict.other_keys)] == [1, 1]


def entry(number: int) -> dict[str, object]:
    """A verdict in plain values, as far as the ledger reads it."""
    plain = {"created": "2026-01-01", "suspect": "x", "answers_digest": "a", "inputs_digest": f"inputs {number}"}
    return {**plain, "key_id": "k", "judged_at": 1e-3, "p_value": 0.5, "outcome": "no evidence", "other_keys": []}


@pytest.fixture
def five(tmp_path):
    """A ledger of five looks."""
    path = tmp_path / "ledger.jsonl"
    for number in range(5):
        with Ledger(path) as ledger:
            look = ledger.look("k", f"inputs {number}")
            assert ledger.enter({**entry(number), "look": look}).entries == number + 1
    return path


def test_a_removed_or_edited_line_shows(five):
    lines = five.read_bytes().splitlines(keepends=True)
    assert read_ledger(five).looks == {"k": 5}
    for changed in (
        lines[1:],
        lines[:2] + lines[3:],
        [lines[1], lines[0], *lines[2:]],
        [lines[0].replace(b'"p_value": 0.5', b'"p_value": 0.6'), *lines[1:]],
        [lines[0].replace(b"\n", b" \n"), *lines[1:]],
        [*lines[:2], b'{"key_id": "k", "look": 3, "answers": "a", "inputs": "x"}\n', *lines[2:]],
    ):
        five.write_bytes(b"".join(changed))
        with pytest.raises(InputError, match=r"line \d does not follow from the lines before it"):
            read_ledger(five)
        with pytest.raises(InputError, match="restore the file from a backup"), Ledger(five) as ledger:
            ledger.look("k", "more")


def test_looks_that_were_counted_wrongly_show(tmp_path):
    path = tmp_path / "ledger.jsonl"
    told = [{"key_id": "k", "answers": "a", "inputs": str(number), "look": 1} for number in range(2)]
    lines, _ = chained(read_ledger(path).heads[0], told)
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(InputError, match="line 2 is look 2 with key k, but says 1"):
        read_ledger(path)


def test_a_ledger_of_an_older_version_is_read_on(tmp_path):
    path = tmp_path / "ledger.jsonl"
    old = [{"key_id": "k", "answers": digest, "look": 1, "suspect": "named"} for digest in ("one", "two", "one")]
    path.write_text("".join(json.dumps(line) + "\n" for line in old))
    with Ledger(path) as ledger:
        assert ledger.look("k", "two") == 2
        assert ledger.look("k", "inputs 3") == 3
        ledger.enter({**entry(3), "look": 3})
    assert read_ledger(path).looks == {"k": 3}
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"answers": "one"', b'"answers": "two"', 1))
    with pytest.raises(InputError, match="line 4 does not follow"):
        read_ledger(path)


def test_a_torn_line_is_named_and_a_full_disk_leaves_none(five, monkeypatch):
    whole = five.read_bytes()
    monkeypatch.setattr("os.write", lambda descriptor, content: len(content) - 1)
    with pytest.raises(OutsideError, match="the disk is full"), Ledger(five) as ledger:
        ledger.enter({**entry(5), "look": 6})
    assert five.read_bytes() == whole
    for torn in (whole + b"{", whole[:-1]):
        five.write_bytes(torn)
        with pytest.raises(InputError, match=r"line \d is damaged: remove it if it is the last line"):
            read_ledger(five)


def test_two_who_judge_at_once_get_different_looks(tmp_path):
    path = tmp_path / "ledger.jsonl"

    def judged(number: int) -> int:
        with Ledger(path) as ledger:
            look = ledger.look("k", f"inputs {number}")
            ledger.enter({**entry(number), "look": look})
            return look

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(judged, range(40))) == list(range(1, 41))
    assert read_ledger(path).looks == {"k": 40}
