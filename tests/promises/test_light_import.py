"""Importing regionmarker is light."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = (
    "torch",
    "ray",
    "aiohttp",
    "matplotlib",
    "numba",
    "sklearn",
    "pandas",
    "httpx2",
    "httpx",
    "requests",
    "socket",
    "ssl",
    "scipy",
)
SCRIPT = """
import json, sys, time
start = time.perf_counter()
import regionmarker
seconds = time.perf_counter() - start
regionmarker.RegionMarker
print(json.dumps({"seconds": seconds, "modules": sorted(sys.modules)}))
"""


def imported() -> dict:
    return json.loads(subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout)


def test_nothing_heavy_and_no_network_code_is_loaded():
    modules = set(imported()["modules"])
    assert not [name for name in HEAVY if name in modules]


def test_it_takes_under_half_a_second():
    assert min(imported()["seconds"] for _ in range(3)) < 0.5


def test_every_public_name_is_there():
    import regionmarker

    assert all(getattr(regionmarker, name) is not None for name in regionmarker.__all__)
    assert dir(regionmarker) == sorted(regionmarker.__all__)
