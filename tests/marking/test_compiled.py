"""What compiled engines share: a function is kept on disk under a name that changes with what it is made of."""

from __future__ import annotations

import pytest

pytest.importorskip("numba", reason="numba is not installed")

from regionmarker.marking.compiled import compiled, types


def test_it_compiles_at_once_and_its_name_tells_one_version_of_the_source_from_the_next():
    @compiled(types.float64)
    def doubled(x):
        return 2.0 * x

    assert doubled.signatures == [(types.float64,)]
    assert doubled(21.0) == 42.0
    name = doubled.py_func.__qualname__
    assert name.startswith("test_it_compiles")
    assert len(name.rpartition("doubled")[2]) == 8
