"""A key offers what 0.1.0 promised of it, whatever its mark is made of."""

from __future__ import annotations

from regionmarker.marks.number_format import NumberFormat


def test_names_that_were_promised_ask_the_mark(marker):
    key = marker.key_
    assert key.regions == key.mark.regions
    assert key.tenant_regions == key.mark.tenant_regions
    assert key.grid is key.number_format
    assert key.grid in NumberFormat


def test_what_may_be_told_tells_no_region_and_no_target(marker):
    told = marker.key_.describe()
    assert {"key_id", "dimension", "strength", "pool", "statistic", "level"} <= told.keys()
    assert "regions" not in told
    assert "targets" not in told
