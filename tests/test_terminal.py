"""No character of a stranger's text reaches a terminal as a command."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from regionmarker.terminal import plain


def test_every_character_of_unicode_is_harmless_afterwards():
    shown = plain("".join(map(chr, range(sys.maxunicode + 1))))
    kinds = {unicodedata.category(character) for character in shown if character not in "\n\t"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()  # no lone surrogate either


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),  # sets a window's title
        ("a\rb\x08", r"a\x0db\x08"),  # writes over what stands there
        ("\x9b31m", r"\x9b31m"),  # the one-byte form
        ("\u202efdp.exe", r"\u202efdp.exe"),  # turns the reading order round
        ("\U000e0041", r"\U000e0041"),
        ("line\nanother\tone", "line\nanother\tone"),
        ("naïve 文字 🙂", "naïve 文字 🙂"),
    ],
)
def test_what_is_shown(text, shown):
    assert plain(text) == shown
