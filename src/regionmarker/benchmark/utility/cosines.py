"""How far marking moves a vector: cos(e, e_p)."""

from __future__ import annotations

import numpy as np

from regionmarker.protocols import Doubles, Floats


def row_cosines(before: Floats, after: Floats) -> Doubles:
    """Return cos(e, e_p) row by row, (n,).

    Examples
    --------
    >>> row_cosines(np.eye(2, dtype=np.float32), np.ones((2, 2), dtype=np.float32)).round(3).tolist()
    [0.707, 0.707]
    """
    dots = np.einsum("ij,ij->i", before, after, dtype=np.float64)
    norms = np.linalg.norm(before.astype(np.float64), axis=1) * np.linalg.norm(after.astype(np.float64), axis=1)
    return np.asarray(dots / norms)
