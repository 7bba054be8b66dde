"""Any program that rewrites lines, such as a translator of another language's ecosystem."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import Self

from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError, MissingExtraError, OutsideError

_MOST = 2000  # texts per run
_SECONDS = 3600


class ProgramParaphraser:
    """One paraphrase of each text, by a program that reads a text per line and writes a line for each.

    Parameters
    ----------
    command
        The program and its arguments, quoted as in a shell; no shell runs it.

    Examples
    --------
    >>> ProgramParaphraser("cat").paraphrase(["a good film"], 5)
    [['a good film']]
    """

    def __init__(self, command: str) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise InputError(f"program:{command} cannot be read as a command: {error}") from None
        if not self._command:
            raise InputError("name the program: program:COMMAND, such as program:node round-trip.mjs")
        self.name = f"program:{command}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        return cls(rest)

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        lines = [" ".join(text.split()) for text in check_texts(list(texts))]
        said: list[str] = []
        for start in range(0, len(lines), _MOST):
            said += self._run(lines[start : start + _MOST])
        return [[text][:most] if text else [] for text in said]

    def _run(self, lines: list[str]) -> list[str]:
        path = shutil.which(self._command[0])
        if path is None:
            raise MissingExtraError(f"the program {self._command[0]} is not installed, or not on the PATH")
        given = "".join(f"{line}\n" for line in lines).encode()
        try:
            ran = subprocess.run(  # noqa: S603
                [path, *self._command[1:]], input=given, capture_output=True, timeout=_SECONDS, check=True
            )
        except subprocess.CalledProcessError as error:
            said = (error.stderr or b"").decode(errors="replace").strip().splitlines()
            raise OutsideError(f"{self.name} failed: {said[-1][:200] if said else error.returncode}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise OutsideError(f"{self.name} failed: {str(error)[:200]}") from error
        answers = [line.strip() for line in ran.stdout.decode(errors="replace").splitlines()]
        if len(answers) != len(lines):
            raise OutsideError(f"{self.name} was given {len(lines)} lines and wrote {len(answers)}: one for each")
        return answers
