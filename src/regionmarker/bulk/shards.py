"""The shards of an input: a file, or every file of a folder that holds vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from regionmarker.bulk.formats import LANCE, SUFFIXES, open_lance, reading
from regionmarker.bulk.places import FileFacts, LocalPlace, Place
from regionmarker.errors import InputError

_LANCE_SUFFIX = ".lance"
_DATA_SET = "state.json"  # what Hugging Face's save_to_disk writes beside the Arrow files that belong to the data set


@dataclass(frozen=True)
class Shard:
    """One file of the input, and the name of its output."""

    name: str  # of the output, relative to the target
    source: str  # of the input, relative to the source
    kind: str
    bytes: int
    stamp: str  # changes when the input does
    part: int = 0  # the fragment of a Lance data set

    def called(self, name: str) -> Shard:
        """Return the same shard under another output name."""
        return replace(self, name=name)


def list_shards(source: Place, only: str | None = None) -> tuple[Shard, ...]:
    """Return the shards of a folder in order of name, or the one file ``only`` of it.

    Examples
    --------
    >>> from regionmarker.bulk.places import open_place
    >>> place = open_place("memory://shards")
    >>> for name in ("b.npy", "2024/a.arrow", "notes.txt", "_old/c.npy"):
    ...     place.write(name, b"")
    >>> [(shard.source, shard.name) for shard in list_shards(place)]
    [('2024/a.arrow', '2024/a.parquet'), ('b.npy', 'b.parquet')]
    """
    if only is not None:
        facts = source.facts(only)
        if facts is None:
            raise InputError(f"{source.where}/{only} does not exist")
        kind = SUFFIXES.get(PurePosixPath(only).suffix)
        if kind is None:
            raise InputError(f"{only} is not a file of vectors: use {', '.join(SUFFIXES)}")
        return (_shard(facts, kind),)
    by_name: dict[str, Shard] = {}
    for shard in _in_folder(source):
        twin = by_name.setdefault(shard.name, shard)
        if twin is not shard:
            raise InputError(f"{twin.source} and {shard.source} would both become {shard.name}: rename one of them")
    if not by_name:
        raise InputError(f"{source.where} holds no file of vectors: use {', '.join(SUFFIXES)}")
    return tuple(by_name[name] for name in sorted(by_name))


def _in_folder(source: Place) -> Iterator[Shard]:
    """Yield the shards of a folder; hidden files and names with a leading underscore are not data."""
    if source.where.rstrip("/").endswith(_LANCE_SUFFIX):
        yield from _fragments(source, "")
        return
    files = [facts for facts in source.files() if not any(part[0] in "._" for part in PurePosixPath(facts.name).parts)]
    data_sets = {
        str(PurePosixPath(facts.name).parent): _members(source, facts.name)
        for facts in files
        if PurePosixPath(facts.name).name == _DATA_SET
    }
    lance = set()
    for facts in files:
        path = PurePosixPath(facts.name)
        inside = [parent for parent in path.parents if parent.suffix == _LANCE_SUFFIX]
        members = data_sets.get(str(path.parent))
        kind = SUFFIXES.get(path.suffix)
        if inside:
            lance.add(str(inside[-1]))
        elif kind is not None and (members is None or path.name in members):
            yield _shard(facts, kind)
    for folder in sorted(lance):
        yield from _fragments(source, folder)


def _shard(facts: FileFacts, kind: str) -> Shard:
    name = str(PurePosixPath(facts.name).with_suffix(".parquet"))
    return Shard(name, facts.name, kind, facts.bytes, facts.stamp)


def _members(source: Place, name: str) -> set[str]:
    """Return the files that belong to a Hugging Face data set; leftovers of its cache do not."""
    try:
        return {entry["filename"] for entry in json.loads(source.read(name) or b"")["_data_files"]}
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{source.where}/{name} is not the state of a data set") from None


def _fragments(source: Place, folder: str) -> list[Shard]:
    if not isinstance(source, LocalPlace):
        raise InputError(f"{source.where}: a Lance data set is read from a local disk only: copy it there first")
    path = source.root / folder
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
