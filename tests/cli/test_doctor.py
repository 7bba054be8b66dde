"""``regionmarker doctor``."""

from __future__ import annotations

import json


def test_doctor_names_what_is_missing_and_how_to_get_it(run):
    facts = json.loads(run("doctor", "--json").stdout)
    parts = {part["part"]: part for part in facts["parts"]}
    assert parts["numba"]["to_get_it"] == 'pip install "regionmarker[fast]"'
    assert parts["numpy"]["version"]
    assert "marking engine" in run("doctor").stdout
