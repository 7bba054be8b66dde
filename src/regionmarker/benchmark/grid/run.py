"""A whole grid: checked, then computed, and gone on with where it was left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from regionmarker.benchmark.corpora import STORED, check_corpus, data_folder
from regionmarker.benchmark.grid.cell import COPY, PORTRAIT, PROVIDER, UNMARKED, Cell, expand
from regionmarker.benchmark.grid.grid_file import Grid
from regionmarker.benchmark.grid.inputs import GridInputs
from regionmarker.benchmark.grid.output_folder import Store
from regionmarker.benchmark.grid.parts import cached_encoder
from regionmarker.benchmark.grid.workers import ProcessWorkers, SerialWorkers, check_engine, run_batches
from regionmarker.errors import InputError
from regionmarker.progress import Progress
from regionmarker.vectors import Encoder

Say = Callable[[str], None]


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    cells: int
    computed: int
    failed: int
    results: Path


def check_grid(grid: Grid, data_dir: Path | None = None) -> None:
    """Load every part by its spec, and look for every corpus: a mistake shows before anything is written."""
    from regionmarker.benchmark.attacks import FineTune, plan_attacks
    from regionmarker.benchmark.defenses import load_defense
    from regionmarker.benchmark.stealers import STEALERS, features_encoder, keeps_trainings, load_stealer
    from regionmarker.encoders import ENCODERS

    encoders, folder = dict(grid.encoders), data_folder(data_dir)
    for name, provider, _ in dict.fromkeys(cell.corpus_id for cell in grid.cells):
        check_corpus(name, expand(provider, encoders), folder)
        if not provider.startswith(STORED):
            ENCODERS.check(expand(provider, encoders))
    for spec in dict.fromkeys(cell.defense for cell in grid.cells):
        load_defense(expand(spec, encoders), seed=0)
    for attacks in dict.fromkeys(cell.attacks for cell in grid.cells):
        for later in plan_attacks([expand(attack, encoders) for attack in attacks]).after:
            if isinstance(later, FineTune):
                check_corpus(later.corpus, "", folder)
    for spec in dict.fromkeys(cell.stealer for cell in grid.cells if cell.stealer):
        STEALERS.check(expand(spec, encoders))
        if keeps_trainings(expand(spec, encoders)):
            load_stealer(expand(spec, encoders))  # a folder that is not there shows now, and not after an hour
        if (encoder := features_encoder(expand(spec, encoders))) is not None:
            ENCODERS.check(encoder)
    for spec in {spec for cell in grid.cells for spec in (cell.public, cell.suspect)}:
        if spec not in ("", COPY, UNMARKED, PROVIDER, PORTRAIT):
            ENCODERS.check(expand(spec, encoders))


def run_grid(
    grid: Grid,
    out: Path,
    *,
    data_dir: Path | None = None,
    engine: str = "processes",
    workers: int = 2,
    retry: bool = False,
    say: Say = lambda _: None,
    tick: Progress = lambda _done, _total: None,
    embedded: Progress = lambda _done, _total: None,
) -> Summary:
    """Compute the cells of a grid that are not in ``out`` yet.

    Parameters
    ----------
    grid, out
        What to compute, and the folder to keep it in.
    data_dir
        The folder of the corpora.
    engine, workers
        Who computes; see :mod:`regionmarker.benchmark.grid.workers`.
    retry
        Compute cells that failed once more.
    say, tick, embedded
        Called with what happens, with how many cells of how many are done, and before that with how many texts of how
        many are embedded.
    """
    check_engine(engine)
    if workers < 1:
        raise InputError(f"--workers must be at least 1, but is {workers}")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file: choose a folder for --out")
    check_grid(grid, data_dir)
    say("reading the corpora ...")
    with Store.writing(out) as store:
        inputs = GridInputs({}, dict(grid.encoders), cache=store.cache)
        encoder: Callable[[str], Encoder] = cache(lambda spec: cached_encoder(spec, inputs))
        inputs.gather(grid, data_dir, encoder)
        digests = inputs.digests(grid.cells)
        store.plan([digests[cell] for cell in grid.cells])
        missing = set(store.missing(list(digests.values()), retry=retry))
        todo = [cell for cell in grid.cells if digests[cell] in missing]
        if todo:
            say("embedding the corpora by public encoders ...")
            inputs.embed(todo, encoder, embedded)
            say(f"{len(todo)} of {len(grid.cells)} cells are left to compute")
            before = len(grid.cells) - len(todo)
            tick(before, len(grid.cells))
            count = min(workers, len(todo))
            idle = SerialWorkers(inputs) if engine == "here" else ProcessWorkers(inputs, count)
            with closing(run_batches(idle, _batches(grid, todo))) as finished:  # Ctrl-C ends the workers, too
                for done, (cell, row) in enumerate(finished, start=before + 1):
                    store.add(digests[cell], row)
                    tick(done, len(grid.cells))
        results = store.finish()
        failures = sum(row["error"] is not None for row in store.rows())
        return Summary(len(grid.cells), len(todo), failures, results)


def _batches(grid: Grid, todo: list[Cell]) -> list[list[Cell]]:
    wanted = set(todo)
    return [[cell for cell in batch if cell in wanted] for batch in grid.batches()]
