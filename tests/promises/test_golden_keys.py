"""Keys written by every released format open for ever and mark as they did on the day they were made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.keys.commitment import commit

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def folder(tmp_path):
    """A copy that only its owner can read: version control does not keep that."""
    for path in GOLDEN.glob("*.rmkey*"):
        shutil.copyfile(path, tmp_path / path.name)
        (tmp_path / path.name).chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("version", ["v1"])
def test_an_old_key_opens_and_marks_the_same_bytes(folder, version):
    facts, vectors = json.loads((GOLDEN / f"{version}.json").read_text()), np.load(GOLDEN / f"{version}.npz")
    marker = RegionMarker.load(folder / f"{version}.rmkey")
    assert marker.key_.id == facts["id"]
    assert marker.key_.created == facts["created"]
    assert commit(marker.key_) == facts["commitment"]
    serving = RegionMarker.load(folder / f"{version}-serving.rmkey")
    for opened in (marker, serving):
        assert np.array_equal(opened.regions(vectors["inputs"]), vectors["regions"])
        assert opened.transform(vectors["inputs"]).tobytes() == vectors["served"].tobytes()
        assert opened.transform(vectors["inputs"], tenant="acme").tobytes() == vectors["acme"].tobytes()
