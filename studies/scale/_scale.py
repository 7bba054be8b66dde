"""What the studies of scale share: a graded key of any width, the machine in a line, processor time and memory."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studies._study import unit_rows

WIDTH = 1536


def graded_key(path: Path, width: int = WIDTH) -> Path:
    """Make a key of the default mark on random rows: what marking costs does not depend on the texts."""
    from regionmarker import RegionMarker

    rows = unit_rows(400, width)
    RegionMarker(grid="float32").fit([f"text {number}" for number in range(len(rows))], embeddings=rows).save(path)
    return path


def conditions() -> str:
    """Say what the numbers were taken on."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {versions}"


@dataclass
class Spent:
    """What a block took."""

    processor_seconds: float = 0.0
    megabytes: float = 0.0  # memory at the peak, over that at the start
    kept: float = 0.0  # memory at the end, over that at the start


@contextmanager
def spent() -> Iterator[Spent]:
    """Take the processor time of a block, all threads of this process together, and the memory that it takes more."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew; see proc(5)
    found, memory, used = Spent(), _megabytes("VmRSS"), time.process_time()
    yield found
    found.processor_seconds = time.process_time() - used
    found.megabytes = max(0.0, _megabytes("VmHWM") - memory)
    found.kept = max(0.0, _megabytes("VmRSS") - memory)


def _megabytes(name: str) -> float:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) / 1024


def quantiles(values: list[float], *shares: float) -> list[float]:
    """Return quantiles of some values."""
    return [float(found) for found in np.quantile(values, shares)]
