"""The battery over every built-in defense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from regionmarker.benchmark.defenses import known_defenses, load_defense
from tests.contracts import defenses as checks

SPECS = (
    "none:pool=512",
    "embmarker:pool=512",
    "warden:pool=512",
    "warden:pool=512,marks=3,released",
    "espew:pool=512",
    "espew:pool=512,released",
    "wet:pool=512,probes=512",
    "geomark:pool=512",
    "regionmarker:pool=128",
    "regionmarker:pool=512,shared",
    "published:pool=128",
    "graded",
    "graded:tenants",
)


@pytest.fixture(scope="module")
def benches(sentences: list[str], embeddings: Any, wordllama: Any) -> Callable[[str], checks.Bench]:
    made: dict[str, checks.Bench] = {}

    def bench(spec: str) -> checks.Bench:
        if spec not in made:
            scheme = spec.partition(":")[0]
            made[spec] = checks.Bench(
                make=lambda seed: load_defense(spec, seed=seed),
                texts=sentences[:1500],
                clean=embeddings[:1500],
                encoder=wordllama,
                marks=scheme != "none",
                any_width=scheme != "wet",
            )
        return made[spec]

    return bench


def test_every_built_in_defense_is_here() -> None:
    assert {spec.partition(":")[0] for spec in SPECS} == set(known_defenses())


@pytest.mark.parametrize("check", checks.EVERY, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spec", SPECS)
def test_every_defense(
    spec: str, check: Callable[[checks.Bench], None], benches: Callable[[str], checks.Bench]
) -> None:
    check(benches(spec))
