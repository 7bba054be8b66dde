"""A table for notebooks: everything that it shows is escaped, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from regionmarker.terminal import plain


def html_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", note: str = "", colour: str = ""
) -> str:
    """Return a table as HTML, as ``_repr_html_`` wants it.

    Parameters
    ----------
    headings
        Of the columns; without them the first entry of each row is its heading.
    colour
        Of the title, where it says something good or bad.

    Examples
    --------
    >>> html_table(("a",), [("<b>",)])
    '<table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    style = f' style="text-align:left;font-size:1.2em;font-weight:bold;color:{colour}"' if colour else ""
    head = f"<caption{style}>{_safe(title)}</caption>" if title else ""
    if headings:
        head += "<tr>" + "".join(f"<th>{_safe(name)}</th>" for name in headings) + "</tr>"
    body = "".join(_row(row, named=not headings) for row in rows)
    return f"<table>{head}{body}</table>" + (f"<p>{_safe(note)}</p>" if note else "")


def _row(entries: Sequence[str], *, named: bool) -> str:
    cells = [f"<td>{_safe(entry)}</td>" for entry in entries]
    if named and cells:
        cells[0] = f'<th style="text-align:left">{_safe(entries[0])}</th>'
    return "<tr>" + "".join(cells) + "</tr>"


def _safe(text: str) -> str:
    return escape(plain(text))
