"""The key that a gateway serves with."""

from __future__ import annotations

import pytest

from regionmarker import RegionMarker
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.gateway.served_key import ServedKey, open_key
from regionmarker.keys.commitment import commit
from regionmarker.keys.files import save_serving
from regionmarker.keys.key import Key


def test_a_full_key_file_gives_a_serving_key_and_nothing_more(real_marker, tmp_path):
    real_marker.save(tmp_path / "k.rmkey")
    opened = open_key(tmp_path / "k.rmkey", ["acme"])
    hold = ServedKey(opened.serving, commitment=opened.commitment)
    key_version = hold.current()
    assert (key_version.key_id, key_version.tenants) == (real_marker.key_.id, ("acme",))
    assert key_version.commitment == commit(real_marker.key_)
    assert not _holds(hold, (Key, Secret), set())


def _holds(thing: object, kinds: tuple[type, ...], seen: set[int]) -> bool:
    """Whether an object of these kinds can be reached from ``thing``."""
    if isinstance(thing, kinds):
        return True
    if id(thing) in seen or isinstance(thing, type | str | bytes | int | float):
        return False
    seen.add(id(thing))
    inner = list(getattr(thing, "__dict__", {}).values())
    if isinstance(thing, dict):
        inner += list(thing.values())
    elif isinstance(thing, list | tuple | set):
        inner += list(thing)
    return any(_holds(one, kinds, seen) for one in inner)


def test_the_search_above_finds_a_key(key_marker):
    assert _holds({"a": [key_marker]}, (Key, Secret), set())


def test_a_serving_key_file_must_hold_the_tenants(real_marker, tmp_path):
    save_serving(tmp_path / "s.rmkey", real_marker.key_.serving(["acme"]), None)
    assert open_key(tmp_path / "s.rmkey", ["acme"]).serving.tenants == ("acme",)
    with pytest.raises(InputError, match="other"):
        open_key(tmp_path / "s.rmkey", ["acme", "other"])


def test_a_test_key_is_refused(marker, tmp_path):
    marker.save(tmp_path / "k.rmkey")
    save_serving(tmp_path / "s.rmkey", marker.key_.serving(), None)
    for name in ("k.rmkey", "s.rmkey"):
        with pytest.raises(InputError, match="TEST"):
            open_key(tmp_path / name)


def test_a_swap_changes_what_comes_next_and_nothing_under_way(key_marker, sentences, embeddings):
    hold = ServedKey(key_marker.key_.serving())
    before = hold.current()
    other = RegionMarker(seed=3, pool=64, reservoir=256).fit(sentences[:1000], embeddings=embeddings[:1000])
    after = hold.swap(other.key_.serving(), commitment="c")
    assert hold.current() is after
    assert (before.version, after.version, after.commitment) == (1, 2, "c")
    rows = embeddings[:50]
    assert (before.mark(rows, "", rows.copy()) == key_marker.transform(rows)).all()
    assert (after.mark(rows, "", rows.copy()) == other.transform(rows)).all()


def test_a_key_of_another_width_is_refused(key_marker, sentences, embeddings):
    narrow = embeddings[:1000, :64].copy()
    narrow /= (narrow**2).sum(axis=1, keepdims=True) ** 0.5
    other = RegionMarker(seed=3, pool=64, reservoir=256).fit(sentences[:1000], embeddings=narrow)
    with pytest.raises(InputError, match="width"):
        ServedKey(key_marker.key_.serving()).swap(other.key_.serving())
