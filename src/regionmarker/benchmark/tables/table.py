"""A table of strings, as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regionmarker.html_table import html_table

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

    def without(self, *columns: str) -> Table:
        """Return the table with fewer columns."""
        kept = [place for place, name in enumerate(self.columns) if name not in columns]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in kept), rows=rows)

    def markdown(self) -> str:
        return f"### {self.title}\n\n{self.body()}\n"

    def body(self) -> str:
        """Return the table as Markdown without its heading."""
        lines = [_line(self.columns), "|" + "---|" * len(self.columns), *(_line(row) for row in self.rows)]
        return "\n".join([*lines, *(["", self.note] if self.note else [])])

    def latex(self) -> str:
        """Return the table as a LaTeX float; it needs booktabs."""
        body = [_tex_line(self.columns), r"\midrule", *(_tex_line(row) for row in self.rows)]
        lines = [
            r"\begin{table}", r"\centering\small", rf"\caption{{{_tex(f'{self.title}. {self.note}'.strip())}}}",
            rf"\label{{tab:{self.name}}}", rf"\begin{{tabular}}{{{'l' * len(self.columns)}}}", r"\toprule", *body,
            r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
        ]  # fmt: skip
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.rows, title=self.title, note=self.note)

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
