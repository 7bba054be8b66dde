"""Power and false positives, by test and suspect."""

from __future__ import annotations


def test_false_positives_are_counted_by_test_and_suspect(tables):
    all_of_them = {line[0]: line[2:] for line in tables["false-positives"].rows if line[1] == "all of them"}
    assert all_of_them["no defense"] == ("8 of 8", "0 of 8", "0 of 8")
    assert all_of_them["WET"] == ("0 of 8", "0 of 8", "0 of 8")
