"""What every storage promises: whole files, small and large, found again and removed."""

from __future__ import annotations

import pytest

from regionmarker.bulk.storage import open_place


def tree(place) -> dict[str, bytes]:
    return {file.name: place.read(file.name) for file in place.files()}


@pytest.mark.parametrize("where", ["local", "memory"])
def test_small_files_and_published_ones(tmp_path, where):
    place = open_place(str(tmp_path / "place") if where == "local" else "memory://small-files")
    place.write("a/b.txt", b"small")
    with place.scratch("partial") as path:
        path.write_bytes(b"large")
        place.publish(path, "c/d.bin")
    assert tree(place) == {"a/b.txt": b"small", "c/d.bin": b"large"}
    with place.fetched("c/d.bin") as copy:
        assert copy.read_bytes() == b"large"
    stamp = place.facts("a/b.txt")
    place.write("a/b.txt", b"other content")
    assert place.facts("a/b.txt") != stamp
    place.remove("a")
    place.remove("never/there")
    assert list(tree(place)) == ["c/d.bin"]
    assert (place.facts("a/b.txt"), place.read("a/b.txt")) == (None, None)
