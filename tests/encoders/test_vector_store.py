"""The file of the cache: whole, private, and plain about what is wrong with it."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from regionmarker.encoders.vector_store import open_store
from regionmarker.errors import InputError, OutsideError, RegionMarkerError

ROWS = np.array([[0.6, 0.8], [0.8, -0.6], [1.0, -0.0]], dtype=np.float32)
DIGESTS = [b"one", b"two", b"six"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.sqlite"


def fill(path: Path, encoder: str = "mine") -> None:
    with open_store(path, encoder) as store:
        store.put(DIGESTS, ROWS)


def test_vectors_come_back_bit_for_bit(path: Path) -> None:
    odd = np.array([[np.float32(1e-45), -0.0, np.float32(1) + np.float32(2**-23)]], dtype=np.float32)
    with open_store(path, "mine") as store:
        store.put([b"odd"], odd)
    with open_store(path, "mine") as store:
        assert store.get([b"odd"])[b"odd"].tobytes() == odd.tobytes()


def test_each_encoder_has_its_own_vectors(path: Path) -> None:
    fill(path)
    with open_store(path, "other") as store:
        assert store.get(DIGESTS) == {}
        assert store.width is None
        store.put(DIGESTS, np.ones((3, 5), dtype=np.float32))
    with open_store(path, "mine") as store:
        assert store.width == 2
        assert len(store.get(DIGESTS)) == 3


def test_what_is_there_first_stays(path: Path) -> None:
    fill(path)
    with open_store(path, "mine") as store:
        store.put(DIGESTS, -ROWS)
        assert store.get(DIGESTS)[b"two"].tolist() == ROWS[1].tolist()


def test_any_number_of_texts_can_be_looked_up(path: Path) -> None:
    digests = [f"{number}".encode() for number in range(5000)]
    with open_store(path, "mine") as store:
        store.put(digests, np.ones((5000, 1), dtype=np.float32))
        assert len(store.get(digests)) == 5000


def test_only_the_owner_can_read_it(path: Path) -> None:
    with open_store(path, "mine") as store:
        store.put(DIGESTS, ROWS)
        modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {0o600}


def test_a_failure_inside_leaves_what_was_committed(path: Path) -> None:
    fill(path)
    with pytest.raises(ZeroDivisionError), open_store(path, "mine"):
        raise ZeroDivisionError
    changed = "holds vectors of width 2 for this encoder, which now gives width 3"
    with pytest.raises(InputError, match=changed), open_store(path, "mine") as store:
        store.put([b"new"], np.ones((1, 3), dtype=np.float32))
    with open_store(path, "mine") as store:
        assert set(store.get([*DIGESTS, b"new"])) == set(DIGESTS)


def test_a_file_that_is_no_database_is_named_and_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("my diary, " * 200)
    with pytest.raises(
        InputError, match=rf"^{path} is not a cache of regionmarker, or is damaged: delete it, or give another"
    ):
        fill(path)
    assert path.read_text().startswith("my diary")


def test_the_database_of_another_program_is_named_and_kept(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE vectors (mine TEXT)")
    with pytest.raises(InputError, match="is a database of something else"):
        fill(path)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("vectors",)]


def test_a_newer_cache_is_left_alone(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="newer version of regionmarker"):
        fill(path)


def test_a_changed_bit_in_a_vector_is_noticed(path: Path) -> None:
    fill(path)
    raw = path.read_bytes()
    assert raw.count(ROWS[1].tobytes()) == 1
    path.write_bytes(raw.replace(ROWS[1].tobytes(), (ROWS[1] * 2).tobytes()))
    with (
        pytest.raises(OutsideError, match=rf"the cache {path} is damaged: delete it"),
        open_store(path, "mine") as store,
    ):
        store.get(DIGESTS)


def test_damage_anywhere_is_one_clear_error_or_no_harm(path: Path) -> None:
    with open_store(path, "mine") as store:
        digests = [bytes([number]) * 32 for number in range(200)]
        rows = np.random.default_rng(3).normal(size=(200, 64)).astype(np.float32)
        store.put(digests, rows)
    raw = path.read_bytes()
    outcomes = set()
    for start in [0, 20, 100, *range(1000, len(raw), 1999)]:
        path.write_bytes(raw[:start] + b"\xa5" * 50 + raw[start + 50 :])
        try:
            with open_store(path, "mine") as store:
                found = store.get(digests)
            assert all(found[digest].tobytes() == rows[digests.index(digest)].tobytes() for digest in found)
            outcomes.add("harmless")
        except RegionMarkerError as error:
            assert str(path) in str(error)  # noqa: PT017
            outcomes.add(type(error).__name__)
    assert "OutsideError" in outcomes


@pytest.mark.parametrize("length", [10, 100, 4096, 5000, 9000])
def test_a_file_that_was_cut_off_is_named(path: Path, length: int) -> None:
    fill(path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(RegionMarkerError, match=str(path)), open_store(path, "mine") as store:
        store.get(DIGESTS)


def test_a_place_where_no_file_can_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "cache.sqlite", Path("/proc/no/cache.sqlite")):
        with pytest.raises(OutsideError, match=f"cannot open the cache {path}"):
            fill(path)


def test_a_full_disk_is_named_and_keeps_what_was_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)
    connect = sqlite3.connect

    def small(*args: object, **options: object) -> sqlite3.Connection:
        connection = connect(*args, **options)  # type: ignore[call-overload]
        connection.execute("PRAGMA max_page_count = 10")
        return connection  # type: ignore[no-any-return]

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(OutsideError, match=f"the disk of the cache {path} is full"), open_store(path, "mine") as store:
        store.put([b"%d" % number for number in range(20_000)], np.ones((20_000, 2), dtype=np.float32))
    monkeypatch.undo()
    with open_store(path, "mine") as store:
        assert len(store.get(DIGESTS)) == 3


def test_a_lock_that_is_never_released_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regionmarker.encoders import vector_store as module

    fill(path)
    monkeypatch.setattr(module, "_BUSY", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with open_store(path, "mine") as store:
            assert len(store.get(DIGESTS)) == 3  # readers do not wait
        with pytest.raises(OutsideError, match=f"the cache {path} is in use by another process"):
            fill(path)
