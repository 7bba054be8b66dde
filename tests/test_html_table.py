"""Tables for notebooks: what strangers wrote is shown, and not obeyed."""

from __future__ import annotations

from regionmarker.html_table import html_table

HOSTILE = '<script>alert("x")</script>\x1b[2J'


def test_everything_is_escaped():
    text = html_table((HOSTILE,), [(HOSTILE,)], title=HOSTILE, note=HOSTILE)
    assert "<script" not in text
    assert "\x1b" not in text
    assert text.count("&lt;script&gt;") == 4


def test_without_headings_the_first_entry_names_its_row():
    text = html_table((), [(HOSTILE, HOSTILE)])
    assert text.count("<th") == 1
    assert "<script" not in text
