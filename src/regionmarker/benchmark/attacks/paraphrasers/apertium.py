"""Round trips by Apertium: rules and dictionaries, offline, thousands of short texts per second."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import Self

from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError, MissingExtraError, OutsideError

LANGUAGES = ("spa", "cat")
_SEPARATOR = "\n\n"  # ends a sentence for Apertium: without it, words wander from one text to the next
_MOST = 2000  # texts per run
_SECONDS = 600


class ApertiumParaphraser:
    """English to another language and back, one paraphrase for each language.

    Parameters
    ----------
    languages
        Codes that Apertium has both directions for: ``spa`` and ``cat`` are the Debian packages ``apertium-eng-spa``
        and ``apertium-eng-cat``.
    program
        The program to run.

    Examples
    --------
    >>> ApertiumParaphraser(["spa"])
    ApertiumParaphraser('apertium:spa')
    """

    def __init__(self, languages: Sequence[str] = LANGUAGES, *, program: str = "apertium") -> None:
        wrong = [code for code in languages if not re.fullmatch(r"[a-z]{2,3}(_[A-Za-z0-9]+)*", code)]
        if wrong or not languages:
            raise InputError(f"apertium takes language codes such as spa,cat, not {','.join(wrong)!r}")
        self.languages, self._program = tuple(languages), program
        self.name = f"apertium:{','.join(languages)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        return cls(rest.split(",") if rest else LANGUAGES)

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        lines = [" ".join(text.split()) for text in check_texts(list(texts))]
        trips = [self.translate(self.translate(lines, f"eng-{code}"), f"{code}-eng") for code in self.languages[:most]]
        return [[trip[place] for trip in trips if trip[place]] for place in range(len(lines))]

    def translate(self, lines: Sequence[str], direction: str) -> list[str]:
        """Translate texts without line breaks, such as ``eng-spa``."""
        path = shutil.which(self._program)
        if path is None:
            raise MissingExtraError(f"the program {self._program} is not installed: apt install apertium-eng-spa")
        done: list[str] = []
        for start in range(0, len(lines), _MOST):
            done += self._run(path, list(lines[start : start + _MOST]), direction)
        return done

    def _run(self, path: str, lines: list[str], direction: str) -> list[str]:
        command = [path, "-u", direction]
        given = _SEPARATOR.join(lines) + _SEPARATOR
        try:
            ran = subprocess.run(command, input=given.encode(), capture_output=True, timeout=_SECONDS, check=True)  # noqa: S603
        except subprocess.CalledProcessError as error:
            said = (error.stderr or error.stdout or b"").decode(errors="replace").strip().splitlines()
            raise MissingExtraError(
                f"apertium has no direction {direction} here ({said[0][:100] if said else 'no message'}): "
                f"apt install apertium-eng-{direction.replace('eng', '').strip('-')}"
            ) from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise OutsideError(f"apertium {direction} failed: {str(error)[:200]}") from error
        parts = ran.stdout.decode(errors="replace").split(_SEPARATOR)[: len(lines) + 1]
        if len(parts) == len(lines) + 1 and not parts[-1].strip():
            return [" ".join(part.split()) for part in parts[:-1]]
        if len(lines) == 1:
            return [" ".join(ran.stdout.decode(errors="replace").split())]
        half = len(lines) // 2  # a text has upset the count: find it, the others are unharmed
        return self._run(path, lines[:half], direction) + self._run(path, lines[half:], direction)
