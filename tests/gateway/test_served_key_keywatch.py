"""A new key without a restart; a bad file changes nothing but the log."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.support.gateways import Log

from regionmarker.gateway.served_key import KeyReloader, ServedKey, open_key
from regionmarker.keys.files import save_serving
from regionmarker.keys.key import key_from_key
from regionmarker.marks.number_format import NumberFormat


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
    opened = open_key(path)
    return ServedKey(opened.serving, commitment=opened.commitment)


@pytest.fixture
def watch(path, hold, log, registry):
    return KeyReloader(path, lambda: open_key(path), hold, log, registry)


def replace_key(path, serving):
    save_serving(path, serving, None, overwrite=True)


def test_a_replaced_file_is_swapped_in(path, watch, hold, key, log, registry):
    assert asyncio.run(watch.look()) is False
    rotated = key_from_key(key)
    replace_key(path, rotated.serving(["acme", "zenith"]))
    assert asyncio.run(watch.look()) is True
    assert (hold.current().key_id, hold.current().version) == (rotated.id, 2)
    assert hold.current().tenants == ("acme", "zenith")
    assert asyncio.run(watch.look()) is False
    assert log.lines == [("serving with a new key", {"key_id": rotated.id, "version": 2})]
    assert 'regionmarker_key_reloads_total{outcome="swapped"} 1.0' in generate_latest(registry).decode()


def damaged(path, key):
    path.write_bytes(path.read_bytes()[:-1] + b"x")


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
def test_a_bad_file_keeps_the_old_key_loudly(path, watch, hold, key, log, registry, spoil, reason, tmp_path):
    before = hold.current()
    shutil.copy2(path, tmp_path / "kept")
    spoil(path, key)
    assert asyncio.run(watch.look()) is False
    assert asyncio.run(watch.look()) is False  # not tried, and not complained about, again
    assert hold.current() is before
    ((event, fields),) = log.lines
    assert "THE NEW KEY FILE IS NOT USED" in event
    assert reason in fields["reason"]
    assert reason in watch.trouble
    assert "regionmarker_key_stale 1.0" in generate_latest(registry).decode()
    (tmp_path / "kept").replace(path)
    assert asyncio.run(watch.look()) is True  # the good file again
    assert watch.trouble == ""
    assert "regionmarker_key_stale 0.0" in generate_latest(registry).decode()


def test_asked_to_it_loads_the_same_file_again(watch, hold):
    assert asyncio.run(watch.reload()) is True
    assert hold.current().version == 2


def test_asked_by_several_at_once_it_loads_one_after_the_other(watch, hold):
    async def ask():
        return await asyncio.gather(*(watch.reload() for _ in range(4)))

    assert asyncio.run(ask()) == [True] * 4
    assert hold.current().version == 5


def test_it_looks_by_itself(path, watch, hold, key):
    async def main():
        task = asyncio.ensure_future(watch.run(every=0.01))
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

    hold = ServedKey(open_key(whole, names).serving)
    watch = KeyReloader(whole, lambda: open_key(whole, names), hold, log, registry, ask)
    assert asyncio.run(watch.look()) is False
    names.append("zenith")
    assert asyncio.run(watch.look()) is True
    assert hold.current().tenants == ("acme", "zenith")
    away.append(True)
    assert asyncio.run(watch.look()) is False
