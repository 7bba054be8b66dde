"""What every storage promises: whole files, small and large, found again and removed."""

from __future__ import annotations

import pytest

from regionmarker.bulk.job import open_storage


def tree(storage) -> dict[str, bytes]:
    return {file.name: storage.read(file.name) for file in storage.files()}


@pytest.mark.parametrize("where", ["local", "memory"])
def test_small_files_and_committed_ones(tmp_path, where):
    storage = open_storage(str(tmp_path / "storage") if where == "local" else "memory://small-files")
    storage.write("a/b.txt", b"small")
    with storage.new_file("state") as path:
        path.write_bytes(b"large")
        storage.commit(path, "c/d.bin")
    assert tree(storage) == {"a/b.txt": b"small", "c/d.bin": b"large"}
    with storage.open_local("c/d.bin") as copy:
        assert copy.read_bytes() == b"large"
    stamp = storage.info("a/b.txt")
    storage.write("a/b.txt", b"other content")
    assert storage.info("a/b.txt") != stamp
    storage.note("notes/begun")
    assert storage.read("notes/begun") == b""
    storage.remove("notes/begun")
    assert storage.info("notes/begun") is None
    storage.remove("a")
    storage.remove("never/there")
    assert list(tree(storage)) == ["c/d.bin"]
    assert (storage.info("a/b.txt"), storage.read("a/b.txt")) == (None, None)
