"""Pictures: the same bytes every time, and harmless inside a page."""

from __future__ import annotations

import re

from regionmarker.plots import Figure, inline, panels, svg


def draw() -> Figure:
    figure, axes = panels(5, across=3)
    for number, one in enumerate(axes):
        one.plot([0, number], [number, 1])
        one.set_title("a < b")
    return figure


def test_the_same_numbers_give_the_same_bytes_without_a_date() -> None:
    assert svg("one", draw) == svg("one", draw)
    assert "dc:date" not in svg("one", draw)


def test_inside_a_page_it_names_no_address_and_its_ids_are_its_own() -> None:
    text = inline(svg("one", draw), "one")
    assert text.startswith("<svg")
    assert "http" not in text
    assert "a &lt; b" in text
    groups = re.findall(r'<g id="([^"]+)"', text)
    assert groups
    assert all(name.startswith("one-") for name in groups)


def test_panels_that_are_not_needed_are_not_shown() -> None:
    figure, axes = panels(5, across=3)
    assert len(axes) == 5
    assert [one.get_visible() for one in figure.axes] == [True] * 5 + [False]
