"""The key that a gateway serves with; a new key without a restart: a bad file changes nothing but the log."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.support.gateways import Log

from regionmarker import RegionMarker
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.gateway.served_key import KeyReloader, ServedKey, open_serving_key
from regionmarker.keys.commitment import commit
from regionmarker.keys.files import save_serving
from regionmarker.keys.key import Key, key_from_key
from regionmarker.marks.number_format import NumberFormat


def test_a_full_key_file_gives_a_serving_key_and_nothing_more(real_marker, tmp_path):
    real_marker.save(tmp_path / "k.rmkey")
    hold = ServedKey(open_serving_key(tmp_path / "k.rmkey", ["acme"]))
    key_version = hold.current()
    assert (key_version.key_id, key_version.labels) == (real_marker.key_.id, {"acme"})
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
    assert open_serving_key(tmp_path / "s.rmkey", ["acme"]).tenants == ("acme",)
    with pytest.raises(InputError, match="other"):
        open_serving_key(tmp_path / "s.rmkey", ["acme", "other"])


def test_a_test_key_is_refused(marker, tmp_path):
    marker.save(tmp_path / "k.rmkey")
    save_serving(tmp_path / "s.rmkey", marker.key_.serving(), None)
    for name in ("k.rmkey", "s.rmkey"):
        with pytest.raises(InputError, match="TEST"):
            open_serving_key(tmp_path / name)


def test_a_swap_changes_what_comes_next_and_nothing_under_way(key_marker, sentences, embeddings):
    hold = ServedKey(key_marker.key_.serving())
    before = hold.current()
    other = RegionMarker(seed=3, pool=64, reservoir=256).fit(sentences[:1000], embeddings=embeddings[:1000])
    after = hold.swap(replace(other.key_.serving(), commitment="c"))
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


@pytest.fixture
def key(real_marker):
    return real_marker.key_


@pytest.fixture
def path(tmp_path, key):
    where = tmp_path / "serving.rmkey"
    save_serving(where, key.serving(["acme"]), None)
    return where


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def hold(path):
    return ServedKey(open_serving_key(path))


@pytest.fixture
def reloader(path, hold, log, registry):
    return KeyReloader(path, lambda: open_serving_key(path), hold, log, registry)


def replace_key(path, serving):
    save_serving(path, serving, None, overwrite=True)


def test_a_replaced_file_is_swapped_in(path, reloader, hold, key, log, registry):
    assert asyncio.run(reloader.look()) is False
    rotated = key_from_key(key)
    replace_key(path, rotated.serving(["acme", "zenith"]))
    assert asyncio.run(reloader.look()) is True
    assert (hold.current().key_id, hold.current().version) == (rotated.id, 2)
    assert hold.current().labels == {"acme", "zenith"}
    assert asyncio.run(reloader.look()) is False
    assert log.lines == [("serving with a new key", {"key_id": rotated.id, "version": 2})]
    assert 'regionmarker_key_reloads_total{outcome="swapped"} 1.0' in generate_latest(registry).decode()


def damaged(path, key):
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))


def gone(path, key):
    path.unlink()


def narrow(path, key):
    serving = key.serving(["acme"])
    narrow = serving.mark.vectors[:, :128].copy()
    replace_key(
        path,
        replace(
            serving, mark=replace(serving.mark, vectors=narrow, projection=serving.mark.projection[:, :128].copy())
        ),
    )


def regridded(path, key):
    replace_key(path, replace(key.serving(["acme"]), number_format=NumberFormat.bfloat16))


def forgetful(path, key):
    replace_key(path, key_from_key(key).serving())


def test_key(path, key):
    replace_key(path, replace(key.serving(["acme"]), test=True))


test_key.__test__ = False


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (damaged, "cannot open"),
        (gone, "cannot open"),
        (narrow, "width 128, the one in use for 256"),
        (regridded, "grid bfloat16, the one in use float16"),
        (forgetful, "lacks 1 tenants that are served now, such as acme"),
        (test_key, "TEST key"),
    ],
)
def test_a_bad_file_keeps_the_old_key_loudly(path, reloader, hold, key, log, registry, spoil, reason, tmp_path):
    before = hold.current()
    shutil.copy2(path, tmp_path / "kept")
    spoil(path, key)
    assert asyncio.run(reloader.look()) is False
    assert asyncio.run(reloader.look()) is False  # not tried, and not complained about, again
    assert hold.current() is before
    ((event, fields),) = log.lines
    assert "THE NEW KEY FILE IS NOT USED" in event
    assert reason in fields["reason"]
    assert reason in reloader.trouble
    assert "regionmarker_key_stale 1.0" in generate_latest(registry).decode()
    (tmp_path / "kept").replace(path)
    assert asyncio.run(reloader.look()) is True  # the good file again
    assert reloader.trouble == ""
    assert "regionmarker_key_stale 0.0" in generate_latest(registry).decode()


def test_asked_to_it_loads_the_same_file_again(reloader, hold):
    assert asyncio.run(reloader.reload()) is True
    assert hold.current().version == 2


def test_asked_by_several_at_once_it_loads_one_after_the_other(reloader, hold):
    async def ask():
        return await asyncio.gather(*(reloader.reload() for _ in range(4)))

    assert asyncio.run(ask()) == [True] * 4
    assert hold.current().version == 5


def test_it_looks_by_itself(path, reloader, hold, key):
    async def main():
        task = asyncio.ensure_future(reloader.run(every=0.01))
        replace_key(path, key_from_key(key).serving(["acme"]))
        async with asyncio.timeout(60):
            while hold.current().version == 1:
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert hold.current().version == 2


def test_a_whole_key_is_derived_again_for_a_new_tenant(tmp_path, key, log, registry):
    from regionmarker.errors import OutsideError
    from regionmarker.keys.files import KeyRing

    whole, names = tmp_path / "whole.rmkey", ["acme"]
    KeyRing((key,)).save(whole)
    away = []

    def ask():
        if away:
            raise OutsideError("the database is away")
        return names

    hold = ServedKey(open_serving_key(whole, names))
    reloader = KeyReloader(whole, lambda: open_serving_key(whole, names), hold, log, registry, ask)
    assert asyncio.run(reloader.look()) is False
    names.append("zenith")
    assert asyncio.run(reloader.look()) is True
    assert hold.current().labels == {"acme", "zenith"}
    away.append(True)
    assert asyncio.run(reloader.look()) is False
