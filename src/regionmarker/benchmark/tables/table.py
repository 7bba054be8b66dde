"""A table of strings, as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

_TEX = {
    "±": r"$\pm$", "≤": r"$\le$", "~": r"\textasciitilde{}", "<": r"$<$", ">": r"$>$", "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%#_${}"},
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A title, columns, rows of as many strings, and what a reader must know to read them.

    Examples
    --------
    >>> print(Table("rates", "False positives", ("test", "rate"), (("decoy", "0 of 23"),)).markdown())
    ### False positives
    <BLANKLINE>
    | test | rate |
    |---|---|
    | decoy | 0 of 23 |
    <BLANKLINE>
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.name}: a row has {len(row)} entries for {len(self.columns)} columns")

    def markdown(self) -> str:
        lines = [f"### {self.title}", ""]
        lines += [_line(self.columns), "|" + "---|" * len(self.columns), *(_line(row) for row in self.rows)]
        return "\n".join([*lines, *(["", self.note] if self.note else []), ""])

    def latex(self) -> str:
        """Return the table as a LaTeX float; it needs booktabs."""
        body = [_tex_line(self.columns), r"\midrule", *(_tex_line(row) for row in self.rows)]
        lines = [
            r"\begin{table}", r"\centering\small", rf"\caption{{{_tex(f'{self.title}. {self.note}'.strip())}}}",
            rf"\label{{tab:{self.name}}}", rf"\begin{{tabular}}{{{'l' * len(self.columns)}}}", r"\toprule", *body,
            r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
        ]  # fmt: skip
        return "\n".join(lines)

    def csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()


def _line(entries: Sequence[str]) -> str:
    return "| " + " | ".join(entry.replace("|", "\\|") for entry in entries) + " |"


def _tex_line(entries: Sequence[str]) -> str:
    return " & ".join(_tex(entry) for entry in entries) + r" \\"


def _tex(text: str) -> str:
    return re.sub(r"[&%#_${}±≤~<>\\]", lambda match: _TEX[match[0]], text)
