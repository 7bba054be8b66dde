"""A bulk job: what to mark and how, the shards of its input, and where it reads and writes.

A job holds no key material, so that it may travel to workers; where its files lie follows from it, so that every worker
finds the same. A shard is a file of the input, or a fragment of a Lance data set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from regionmarker.bulk.formats import LANCE, SUFFIXES, open_lance, reading
from regionmarker.bulk.remote_storage import RemoteStorage
from regionmarker.bulk.storage import FileInfo, LocalStorage, Storage
from regionmarker.corpus import EMBEDDING
from regionmarker.errors import InputError

STATE = "_regionmarker"
BEGUN = "begun"
REFUSE, SET_ASIDE = "refuse", "set-aside"
_LANCE_SUFFIX = ".lance"
_DATA_SET = "state.json"  # what Hugging Face's save_to_disk writes beside the Arrow files that belong to the data set


@dataclass(frozen=True)
class Job:
    """What to mark and how.

    Attributes
    ----------
    source, target
        Paths or fsspec URLs, of a file or of a folder each.
    column, tenant, tenant_column
        As for :class:`~regionmarker.bulk.batch.RowMarker`.
    normalise
        Scale rows of any length to unit length instead of refusing them.
    on_bad_row
        ``refuse`` the shard of a row that cannot be marked, or put the row ``set-aside`` and mark the others.
    verify_output
        Read every output again and compare it with its input marked a second time; what an earlier run finished is
        compared with the digests of its entry.

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
class Shard:
    """One file of the input, and the name of its output."""

    name: str  # of the output, relative to the target
    source: str  # of the input, relative to the source
    kind: str
    bytes: int
    stamp: str  # changes when the input does
    part: int = 0  # the fragment of a Lance data set


@dataclass(frozen=True)
class JobPaths:
    """Where a job reads and writes."""

    source: Storage
    source_file: str | None  # the one file of the source that is meant, if one is
    target: Storage
    target_file: str | None  # the one file to write, if one is asked for: no more than its manifest stays beside it
    state: str  # the folder of the job's own files, relative to the target
    manifest: str

    @classmethod
    def of(cls, job: Job) -> JobPaths:
        source, source_file = _open_source(job.source)
        _refuse_file_names(job, one_file=source_file is not None)
        if source_file is None or not job.target.endswith(".parquet"):
            _refuse_nesting(job)
            return cls(source, source_file, open_storage(job.target), None, STATE, f"{STATE}/manifest.json")
        folder, name = folder_and_name(job.target)
        target = open_storage(folder)
        if not target.exists():
            raise InputError(f"cannot write {job.target}: the folder {folder} does not exist")
        if _resolved(job.source) == _resolved(job.target):
            raise InputError(f"{job.target} is the input itself: choose another output file")
        return cls(source, source_file, target, name, f".{name}{STATE}", f"{name}.manifest.json")

    @property
    def lock(self) -> str:
        return f"{self.state}/lock"

    def entry(self, shard: Shard) -> str:
        return f"{self.state}/entries/{shard.name}.json"

    def begun(self, shard: Shard) -> str:
        """Name the note that is there while a shard is worked on: found later, it says that a process died over it."""
        return f"{self.state}/{BEGUN}/{shard.name}.note"

    def set_aside(self, shard: Shard) -> tuple[Storage, str]:
        """Return where a shard's bad rows go: beside the target and not in it, because they are not marked."""
        if self.target_file is not None:
            return self.target, f"{PurePosixPath(self.target_file).stem}.set-aside.parquet"
        return open_storage(f"{self.target.where.rstrip('/')}.set-aside"), shard.name

    def shards(self) -> tuple[Shard, ...]:
        found = list_shards(self.source, self.source_file)
        return found if self.target_file is None else (replace(found[0], name=self.target_file),)


def open_storage(where: str) -> Storage:
    """Return the folder at a path or an fsspec URL.

    Examples
    --------
    >>> open_storage("memory://example").where, open_storage("file:///vectors").where
    ('memory://example', '/vectors')
    """
    if where.startswith(("file://", "local://")):
        where = where.partition("://")[2]
    return RemoteStorage(where) if _is_url(where) else LocalStorage(where)


def folder_and_name(where: str) -> tuple[str, str]:
    """Split a path or URL into its folder and its last part.

    Examples
    --------
    >>> folder_and_name("s3://bucket/a/b.parquet"), folder_and_name("b.parquet")
    (('s3://bucket/a', 'b.parquet'), ('.', 'b.parquet'))
    """
    if not _is_url(where):
        path = Path(where)
        return str(path.parent), path.name
    head, _, name = where.rstrip("/").rpartition("/")
    return head, name


def _is_url(where: str) -> bool:
    return "://" in where


def _open_source(where: str) -> tuple[Storage, str | None]:
    folder, name = folder_and_name(where)
    if _is_url(where):
        is_file = PurePosixPath(name).suffix in SUFFIXES
    else:
        if not Path(where).exists():
            raise InputError(f"{where} does not exist")
        is_file = not Path(where).is_dir()
    return (open_storage(folder), name) if is_file else (open_storage(where), None)


def _refuse_file_names(job: Job, *, one_file: bool) -> None:
    """Refuse a folder to be made whose name is a file's, which nobody means."""
    path = PurePosixPath(job.target)
    if path.suffix not in SUFFIXES or (one_file and path.suffix == ".parquet"):
        return
    if not _is_url(job.target) and Path(job.target).is_dir():
        return  # it is there, so it is meant
    if one_file:
        raise InputError(f"{job.target}: marked vectors are written as Parquet: name the output {path.stem}.parquet")
    raise InputError(f"{job.source} is a folder, so the output is one, too: name it without {path.suffix}")


def _refuse_nesting(job: Job) -> None:
    """Refuse an output inside the input: the next run would take it for input. And the other way round."""
    source, target = (f"{_resolved(where).rstrip('/')}/" for where in (job.source, job.target))
    if source.startswith(target) or target.startswith(source):
        raise InputError(f"{job.target} and {job.source} lie one in the other: choose another output folder")


def _resolved(where: str) -> str:
    return where if _is_url(where) else str(Path(where).resolve())


def list_shards(source: Storage, only: str | None = None) -> tuple[Shard, ...]:
    """Return the shards of a folder in order of name, or the one file ``only`` of it.

    Examples
    --------
    >>> source = open_storage("memory://shards")
    >>> for name in ("b.npy", "2024/a.arrow", "notes.txt", "_old/c.npy"):
    ...     source.write(name, b"")
    >>> [(shard.source, shard.name) for shard in list_shards(source)]
    [('2024/a.arrow', '2024/a.parquet'), ('b.npy', 'b.parquet')]
    """
    if only is not None:
        info = source.info(only)
        if info is None:
            raise InputError(f"{source.where}/{only} does not exist, or is not a file")
        kind = SUFFIXES.get(PurePosixPath(only).suffix)
        if kind is None:
            raise InputError(f"{only} is not a file of vectors: use {', '.join(SUFFIXES)}")
        return (_shard(info, kind),)
    by_name: dict[str, Shard] = {}
    for shard in _in_folder(source):
        twin = by_name.setdefault(shard.name, shard)
        if twin is not shard:
            raise InputError(f"{twin.source} and {shard.source} would both become {shard.name}: rename one of them")
    if not by_name:
        raise InputError(f"{source.where} holds no file of vectors: use {', '.join(SUFFIXES)}")
    return tuple(by_name[name] for name in sorted(by_name))


def _in_folder(source: Storage) -> Iterator[Shard]:
    """Yield the shards of a folder; hidden files and names with a leading underscore are not data."""
    if source.where.rstrip("/").endswith(_LANCE_SUFFIX):
        yield from _fragments(source, "")
        return
    files = [info for info in source.files() if not any(part[0] in "._" for part in PurePosixPath(info.name).parts)]
    data_sets = {
        str(PurePosixPath(info.name).parent): _members(source, info.name)
        for info in files
        if PurePosixPath(info.name).name == _DATA_SET
    }
    lance = set()
    for info in files:
        path = PurePosixPath(info.name)
        inside = [parent for parent in path.parents if parent.suffix == _LANCE_SUFFIX]
        members = data_sets.get(str(path.parent))
        kind = SUFFIXES.get(path.suffix)
        if inside:
            lance.add(str(inside[-1]))
        elif kind is not None and (members is None or path.name in members):
            yield _shard(info, kind)
    for folder in sorted(lance):
        yield from _fragments(source, folder)


def _shard(info: FileInfo, kind: str) -> Shard:
    name = str(PurePosixPath(info.name).with_suffix(".parquet"))
    return Shard(name, info.name, kind, info.bytes, info.stamp)


def _members(source: Storage, name: str) -> set[str]:
    """Return the files that belong to a Hugging Face data set; leftovers of its cache do not."""
    try:
        return {entry["filename"] for entry in json.loads(source.read(name) or b"")["_data_files"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{source.where}/{name} is not the state of a data set") from None


def _fragments(source: Storage, folder: str) -> list[Shard]:
    path = source.local_folder(folder)
    if path is None:
        raise InputError(f"{source.where}: a Lance data set is read from a local disk only: copy it there first")
    stem = f"{Path(folder).with_suffix('').as_posix()}/" if folder else ""
    with reading(path):
        found = open_lance(path)
        return [
            Shard(
                name=f"{stem}fragment-{fragment.fragment_id:05d}.parquet",
                source=folder,
                kind=LANCE,
                bytes=sum(file.file_size_bytes or 0 for file in fragment.data_files()),
                stamp=str(found.version),
                part=fragment.fragment_id,
            )
            for fragment in found.get_fragments()
        ]
