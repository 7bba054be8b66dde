"""A bulk job: what to mark, how, and where it goes. It holds no key material, so that it may travel to workers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from regionmarker.bulk.formats import SUFFIXES
from regionmarker.bulk.places import LocalPlace, Place, is_url, open_place, parent_and_name
from regionmarker.bulk.shards import Shard, list_shards
from regionmarker.corpus import EMBEDDING
from regionmarker.errors import InputError

STATE = "_regionmarker"
REFUSE, SET_ASIDE = "refuse", "set-aside"


@dataclass(frozen=True)
class Job:
    """What to mark and how.

    Attributes
    ----------
    source, target
        Paths or fsspec URLs, of a file or of a folder each.
    column, tenant, tenant_column
        As for :class:`~regionmarker.bulk.rows.RowMarker`.
    normalise
        Scale rows of any length to unit length instead of refusing them.
    on_bad_row
        ``refuse`` the shard of a row that cannot be marked, or put the row ``set-aside`` and mark the others.
    verify_output
        Read every output again and compare it with its input marked a second time.

    Examples
    --------
    >>> Job("vectors", "served", tenant="acme").settings()["tenant"]
    'acme'
    """

    source: str
    target: str
    column: str = EMBEDDING
    tenant: str = ""
    tenant_column: str | None = None
    normalise: bool = False
    on_bad_row: str = REFUSE
    verify_output: bool = False

    def __post_init__(self) -> None:
        if self.on_bad_row not in (REFUSE, SET_ASIDE):
            raise InputError(f"--on-bad-row is {self.on_bad_row!r}, but must be {REFUSE} or {SET_ASIDE}")
        if self.tenant and self.tenant_column is not None:
            raise InputError("give --tenant or --tenant-column, not both")

    def settings(self) -> dict[str, object]:
        """Return what decides the output's bytes beside the key and the input."""
        return {
            "column": self.column,
            "tenant": self.tenant,
            "tenant_column": self.tenant_column,
            "normalise": self.normalise,
            "on_bad_row": self.on_bad_row,
        }


@dataclass(frozen=True)
class Layout:
    """Where a job reads and writes; it follows from the job, so that every worker finds the same."""

    source: Place
    only: str | None  # the one file of the source that is meant, if one is
    target: Place
    name: str | None  # the one file to write, if one file is asked for
    state: str  # the folder of the job's own files, relative to the target
    manifest: str

    @property
    def single(self) -> bool:
        """One file in, one file out: nothing of the job stays but the manifest beside it."""
        return self.name is not None

    @property
    def lock(self) -> str:
        """The file that keeps a second job away."""
        return f"{self.state}/lock"

    @property
    def partial(self) -> str:
        """Where shards are written before they are whole."""
        return f"{self.state}/partial"

    def entry(self, shard: Shard) -> str:
        """Return where a finished shard is written down."""
        return f"{self.state}/entries/{shard.name}.json"

    def aside(self, shard: Shard) -> tuple[Place, str]:
        """Return where a shard's bad rows go: beside the target and not in it, because they are not marked."""
        if self.name is not None:
            return self.target, f"{PurePosixPath(self.name).stem}.set-aside.parquet"
        return open_place(f"{self.target.where.rstrip('/')}.set-aside"), shard.name

    def shards(self) -> tuple[Shard, ...]:
        """List the shards of the input."""
        found = list_shards(self.source, self.only)
        return found if self.name is None else (found[0].called(self.name),)


def lay_out(job: Job) -> Layout:
    """Find the two ends of a job."""
    source, only = _source(job.source)
    if only is None or not job.target.endswith(".parquet"):
        _refuse_nesting(job)
        return Layout(source, only, open_place(job.target), None, STATE, f"{STATE}/manifest.json")
    parent, name = parent_and_name(job.target)
    target = open_place(parent)
    if isinstance(target, LocalPlace) and not target.root.is_dir():
        raise InputError(f"cannot write {job.target}: the folder {parent} does not exist")
    if _resolved(job.source) == _resolved(job.target):
        raise InputError(f"{job.target} is the input itself: choose another output file")
    return Layout(source, only, target, name, f".{name}{STATE}", f"{name}.manifest.json")


def _source(where: str) -> tuple[Place, str | None]:
    parent, name = parent_and_name(where)
    if is_url(where):
        return (open_place(parent), name) if PurePosixPath(name).suffix in SUFFIXES else (open_place(where), None)
    if not Path(where).exists():
        raise InputError(f"{where} does not exist")
    return (open_place(where), None) if Path(where).is_dir() else (open_place(parent), name)


def _refuse_nesting(job: Job) -> None:
    """Refuse an output inside the input: the next run would take it for input. And the other way round."""
    source, target = (f"{_resolved(where).rstrip('/')}/" for where in (job.source, job.target))
    if source.startswith(target) or target.startswith(source):
        raise InputError(f"{job.target} and {job.source} lie one in the other: choose another output folder")


def _resolved(where: str) -> str:
    return where if is_url(where) else str(Path(where).resolve())
