"""A grid of cells: a TOML file in, one row of results per cell out.

    cell.py            one cell, its digest and its columns
    grid_file.py       the grid file, as cells
    inputs.py          what all workers are given; what identifies a cell
    parts.py           split, fitted defense, stolen model, kept between cells
    experiment.py      one cell, from its parts to its row; portraits
    workers.py         who computes: schedule, this process, processes
    output_folder.py   where rows are kept
    run.py             all of it: checks, computes, resumes

See docs/how-to/run-the-benchmark.md.
"""

from __future__ import annotations

from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.grid_file import Grid
from regionmarker.benchmark.grid.output_folder import Store
from regionmarker.benchmark.grid.run import Summary, run_grid

__all__ = ["Cell", "Grid", "Store", "Summary", "run_grid"]
