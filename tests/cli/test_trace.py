"""``regionmarker trace``."""

from __future__ import annotations

import json

from tests.support.answers import BUDGET


def test_the_leaking_tenant_is_named(run, key, answered):
    (answered / "tenants.txt").write_text("\n".join(f"tenant {number}" for number in range(20)) + "\nacme\n")
    options = ("--suspect", "file:thief.parquet", "--tenants-file", "tenants.txt", "--budget", BUDGET)
    found = json.loads(run("trace", "--key", key, *options, "--json").stdout)["tenants"]
    assert found[0]["tenant"] == "acme"
    assert found[0]["accused"]
    assert not any(row["accused"] for row in found[1:])
    assert "acme" in run("trace", "--key", key, *options).stdout
    assert (
        "give --database, --tenants-file or --tenant"
        in run("trace", "--key", key, "--suspect", "file:thief.parquet", "--budget", BUDGET, code=2).stderr
    )
