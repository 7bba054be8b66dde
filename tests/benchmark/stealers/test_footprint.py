"""Memory that is told beforehand: what it counts, and that less is trained for less."""

from __future__ import annotations

import pytest

from regionmarker.benchmark.stealers.footprint import Footprint, free_memory

pytestmark = pytest.mark.usefixtures("quiet_torch")


def test_what_a_training_holds(tiny_bert: str) -> None:
    pytest.importorskip("torch", reason="needs torch==2.13.0")
    from regionmarker.benchmark.stealers.backbone import Backbone

    def footprint(batch: int = 32, longest: int = 20, **options: object) -> Footprint:
        return Footprint.of(Backbone(tiny_bert, **options)._start(16)[0], batch, longest)  # type: ignore[arg-type]

    whole = footprint()
    count = sum(tensor.numel() for tensor in Backbone(tiny_bert)._start(16)[0].parameters())
    assert whole.weights == 4 * count
    assert whole.training == 16 * count
    assert whole.total == whole.weights + whole.training + whole.activations
    assert footprint(freeze_words=True).training < whole.training
    frozen = footprint(freeze_layers=1)
    assert frozen.training < footprint(freeze_words=True).training
    assert frozen.activations == 0
    assert footprint(batch=64).activations == 2 * whole.activations
    assert footprint(longest=40).activations > 2 * whole.activations


def test_what_is_free(tmp_path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable:   42 kB\n")
    assert free_memory(tmp_path / "meminfo") == 42 * 1024
    assert free_memory(tmp_path / "none") is None
    Footprint(1, 10**18, 1).check("huge", free=None) if free_memory() is None else None
    Footprint(10**18, 1, 1).check("loaded already", free=10)
