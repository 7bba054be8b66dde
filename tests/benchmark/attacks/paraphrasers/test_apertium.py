"""Round trips by the real program."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from regionmarker.benchmark.attacks import Paraphrase
from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser
from regionmarker.benchmark.attacks.paraphrasers.apertium import ApertiumParaphraser
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError, MissingExtraError

TEXTS = [
    "that loves its characters and communicates something rather beautiful about human nature",
    "remains utterly satisfied to remain the same throughout",
    "hide new secretions\nfrom the parental units",
    "[brackets] ^and$ \\ @ signs < > stay",
    "!",
]


def test_texts_go_to_spanish_and_back(program: Callable[[str], str]) -> None:
    program("apertium")
    trips = ApertiumParaphraser().paraphrase(TEXTS, 5)
    assert [len(trip) for trip in trips] == [2, 2, 2, 2, 2]
    assert "characters" in trips[0][0]
    assert "nature" not in trips[1][0]  # words do not wander into the next text
    assert all("\n" not in said for trip in trips for said in trip)
    assert trips[0][0] != TEXTS[0]
    assert ApertiumParaphraser(["spa"]).paraphrase(TEXTS, 5) == [trip[:1] for trip in trips]
    assert ApertiumParaphraser().paraphrase(TEXTS[1:2], 1) == [trips[1][:1]]  # alone as in company
    assert ApertiumParaphraser().paraphrase([], 5) == []


def test_the_attack_runs_on_it(program: Callable[[str], str], stolen: StolenData) -> None:
    import numpy as np

    program("apertium")
    few = stolen.kept(np.arange(20))
    attacked = Paraphrase.from_spec("floor=0.6,apertium:spa").apply(few)
    moved = (attacked.vectors != few.vectors).any(axis=1)
    assert 5 < moved.sum() <= 20
    assert ((attacked.vectors * few.vectors).sum(axis=1)[moved] >= 0.59).all()


def test_a_missing_program_or_language_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError, match="the program no-such-apertium is not installed: apt install"):
        ApertiumParaphraser(program="no-such-apertium").paraphrase(["a text"], 1)
    failing = _script(tmp_path, "echo 'Error: Mode does not exist' >&2; exit 1")
    with pytest.raises(
        MissingExtraError, match=r"no direction eng-xyz here .Error: Mode.*apt install apertium-eng-xyz"
    ):
        ApertiumParaphraser(["xyz"], program=failing).paraphrase(["a text"], 1)


def test_a_text_that_upsets_the_count_is_found_and_the_others_are_unharmed(tmp_path: Path) -> None:
    doubling = _script(tmp_path, "sed 's/odd/odd\\n\\nmore/'")
    assert ApertiumParaphraser(["xx"], program=doubling).translate(["a", "odd", "b", "c"], "eng-xx") == [
        "a", "odd more", "b", "c",
    ]  # fmt: skip


@pytest.mark.parametrize("spec", ["apertium:-d", "apertium:spa,", "apertium:spa cat", "apertium:../x"])
def test_only_language_codes_reach_the_program(spec: str) -> None:
    with pytest.raises(InputError, match="takes language codes"):
        load_paraphraser(spec)


def _script(folder: Path, body: str) -> str:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
