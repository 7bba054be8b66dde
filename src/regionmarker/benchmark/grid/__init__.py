"""A grid of cells: a TOML file in, a row of results a cell out.

    cell.py          one cell, and its digest
    file.py          the grid file
    identity.py      what else can change a result: versions, source, encoders' files
    material.py      what all cells share; lookup.py, memo.py: so that nothing is done twice
    scene.py         who has which texts
    attacking.py     the attacks of a cell, before and after the training
    workbench.py     parts by their specs
    compute.py       one cell, from its parts to its row; portrait.py: a look at the mark itself
    row.py, store.py what is kept, and where
    engines/         who computes
    run.py           all of it

See docs/how-to/run-the-benchmark.md.
"""

from __future__ import annotations

from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.grid_file import Grid
from regionmarker.benchmark.grid.output_folder import Store
from regionmarker.benchmark.grid.run import Summary, run_grid

__all__ = ["Cell", "Grid", "Store", "Summary", "run_grid"]
