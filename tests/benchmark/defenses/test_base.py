"""What all defenses have from their base: options, seeds, a name that loads them again."""

from __future__ import annotations

import pytest

from regionmarker.benchmark.defenses import load_defense
from regionmarker.errors import InputError


@pytest.mark.parametrize(
    "spec",
    [
        "none",
        "embmarker:words=40,low=0.01,high=0.02",
        "warden:marks=5,released",
        "espew:rate=0.25",
        "wet:taps=5",
        "geomark:anchors=4,share=0.05",
        "regionmarker:dimension=5,ratio=0.1,strength=0.3,reducer=svd,subspace=5,tenants=0.1,shared",
    ],
)
def test_a_name_is_the_spec_that_loads_it_again(spec: str) -> None:
    assert sorted(load_defense(spec, seed=1).name.partition(":")[2].split(",")) == sorted(
        spec.partition(":")[2].split(",")
    )
    assert load_defense(load_defense(spec).name).name == load_defense(spec).name


def test_defaults_are_not_spelt_out() -> None:
    assert load_defense("warden:marks=2,words=20").name == "warden"


def test_bad_seeds_and_objects_are_refused() -> None:
    with pytest.raises(InputError, match="seed of wet must not be negative"):
        load_defense("wet", seed=-1)
    with pytest.raises(InputError, match="a int was given"):
        load_defense(7)  # type: ignore[arg-type]
    mine = load_defense("none", seed=1)
    assert load_defense(mine) is mine
