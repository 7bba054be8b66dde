"""Figures: one for everything that the rows allow, the same bytes every time."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from regionmarker.benchmark.figures import make_figures, write_figures


@pytest.fixture(scope="module")
def pictures(rows):
    return {picture.name: picture.svg for picture in make_figures(rows)}


def test_there_is_one_for_everything_that_the_rows_allow(pictures):
    assert pictures.keys() == {
        "framework", "region-balance", "cosines", "maps", "sweep-strength", "fidelity", "attacks", "false-positives",
        "trade-off",
    }  # fmt: skip


def test_they_are_the_same_bytes_every_time_and_have_no_date(pictures, rows, tmp_path):
    written = {path.stem: path.read_text(encoding="utf-8") for path in write_figures(rows, tmp_path / "figures")}
    assert written == pictures
    for content in written.values():
        assert "dc:date" not in content
        assert "data:" not in content  # no bitmaps: a page that may load nothing would not show them
        assert ET.fromstring(content).tag.endswith("svg")


def test_a_reduction_that_makes_no_key_is_said(pictures):
    assert "no key possible" in pictures["region-balance"]
