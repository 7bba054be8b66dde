from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from regionmarker.benchmark.defenses import known_defenses, load_defense, look_of
from regionmarker.errors import InputError


def test_all_nine_are_known() -> None:
    rivals = ["none", "embmarker", "warden", "espew", "wet", "geomark"]
    assert known_defenses()[:9] == [*rivals, "graded", "regionmarker", "published"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("garlic", "unknown defense 'garlic': give none, embmarker, warden"),
        ("", "unknown defense: give none"),
        ("embmarker:word=3", "embmarker has no option 'word': give words=, full="),
        ("embmarker:words", "words needs a value: write words=20"),
        ("embmarker:words=", "words needs a value"),
        ("embmarker:words=many", "words takes a whole number, not 'many'"),
        ("embmarker:low=small", "low takes a number, not 'small'"),
        ("embmarker:words=3,words=4", "words twice"),
        ("embmarker:words=0", "words is 0"),
        ("embmarker:low=0.5", "high is 0.01"),
        ("embmarker:target=moon", "target is 'moon', but must be one of suspect, stored"),
        ("warden:released=yes", "released is given by its name alone"),
        ("warden:marks=0", "marks is 0"),
        ("espew:rate=0", "rate is 0.0"),
        ("espew:rate=nan", "rate is nan"),
        ("wet:pool=3", "pool is 3"),
        ("geomark:strength=1", "strength is 1.0"),
        ("regionmarker:pool=-1", "pool is -1"),
    ],
)
def test_bad_specs_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_defense(spec)


def test_other_packages_bring_defenses(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "mine": EntryPoint("mine", "regionmarker.benchmark.defenses.wet:Wet", "regionmarker.defenses"),
        "plain": EntryPoint("plain", "builtins:dict", "regionmarker.defenses"),
    }

    def entry_points(group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == "regionmarker.defenses"
        return [point for key, point in points.items() if name in (None, key)]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert known_defenses()[-2:] == ["mine", "plain"]
    assert load_defense("mine:taps=7").name == "wet:taps=7"
    with pytest.raises(InputError, match="'plain' must have a name, fit"):
        load_defense("plain")


def test_a_defense_of_another_package_is_shown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "plain": EntryPoint("plain", "builtins:dict", "regionmarker.defenses"),
        "dressed": EntryPoint("dressed", "tests.benchmark.defenses.test_defenses:Dressed", "regionmarker.defenses"),
    }
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group, name=None: [point for key, point in points.items() if name in (None, key)],
    )
    assert look_of("dressed") == (25, "Dressed up", "#123456")
    assert look_of("plain").title == "plain"
    names = ["plain", "regionmarker", "dressed", "espew", "warden", "none"]
    assert sorted(names, key=look_of) == ["none", "warden", "dressed", "espew", "regionmarker", "plain"]
    assert len({look_of(name).colour for name in names}) == len(names)


class Dressed:
    """A defense of another package that says how it is shown."""

    title, colour, order = "Dressed up", "#123456", 25
