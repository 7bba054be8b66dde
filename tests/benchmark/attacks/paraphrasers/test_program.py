"""A program that rewrites lines."""

from __future__ import annotations

import sys

import pytest

from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser
from regionmarker.errors import InputError, MissingExtraError, OutsideError


def program(code: str) -> str:
    return f'program:{sys.executable} -c "{code}"'


def test_a_line_for_each_text() -> None:
    paraphraser = load_paraphraser(program("import sys; [print(line.strip()[::-1]) for line in sys.stdin]"))
    assert paraphraser.paraphrase(["ab\ncd", "é, x"], 3) == [["dc ba"], ["x ,é"]]
    quiet = load_paraphraser(program('import sys; [print(\\"\\") for line in sys.stdin]'))
    assert quiet.paraphrase(["a"], 3) == [[]]


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("program:", InputError, "name the program"),
        ('program:"open', InputError, "cannot be read as a command"),
        ("program:no-such-program-here", MissingExtraError, "no-such-program-here is not installed"),
        (program("print(1)"), OutsideError, "was given 2 lines and wrote 1"),
        (program('import sys; sys.exit(\\"out of words\\")'), OutsideError, "failed: out of words"),
    ],
)
def test_mistakes_are_one_sentence(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_paraphraser(spec).paraphrase(["a", "b"], 1)
