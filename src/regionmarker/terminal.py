"""Text for a terminal: what strangers wrote is shown as it stands, and moves no cursor and changes no colour."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t"
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control and format characters, lone surrogates, separators of lines


def plain(text: str) -> str:
    r"""Write characters that a terminal would obey, or that would turn the reading order round, as their numbers.

    Examples
    --------
    >>> print(plain("\x1b[2Jnothing to see\r"))
    \x1b[2Jnothing to see\x0d
    >>> plain("naïve 文字\n") == "naïve 文字\n"
    True
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _is_harmless(character) else _numbered(character) for character in text)


def _is_harmless(character: str) -> bool:
    return character in _KEPT or unicodedata.category(character) not in _HIDDEN


def _numbered(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
