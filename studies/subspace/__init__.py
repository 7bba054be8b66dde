"""Which k a key should have by default: ``python -m studies.subspace``."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy; the budgets are CPU seconds of one thread
