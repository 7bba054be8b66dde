"""What a job did: one entry per shard, and one manifest over all of them, the same whichever engine did the work.

A manifest holds no time, no machine and no path, so that two runs of one job are equal exactly when their manifests
are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regionmarker.bulk.job import STATE, Job, JobPaths, Shard
from regionmarker.errors import InputError, RegionMarkerError
from regionmarker.files import read_bounded
from regionmarker.keys.commitment import commit
from regionmarker.marking.marker import RegionMarker

FORMAT = 1
_LARGEST = 1 << 28  # bytes
DONE, REFUSED = "done", "refused"


@dataclass(frozen=True)
class KeyLabel:
    """What may be said of the key that a job marks with."""

    id: str
    commitment: str | None  # none for TEST keys, and for serving keys that were exported before they carried one
    public_salt: str | None
    test: bool

    @classmethod
    def of(cls, marker: RegionMarker) -> KeyLabel:
        if "key_" in vars(marker):
            key = marker.key_
            return cls(key.id, None if key.test else commit(key), key.salt.hex() or None, key.test)
        serving = marker.serving_
        return cls(serving.id, serving.commitment or None, serving.salt or None, serving.test)


@dataclass(frozen=True)
class Entry:
    """One shard's line in the manifest.

    Examples
    --------
    >>> shard = Shard("a.parquet", "a.npy", "npy", 10, "1")
    >>> Entry.refused(shard, "row 3 holds NaN").status
    'refused'
    """

    shard: str  # the output's name
    source: str
    part: int
    status: str
    reason: str | None  # why a shard was refused
    input_bytes: int
    input_stamp: str
    input_sha256: str | None
    output_bytes: int | None
    output_sha256: str | None
    rows: int  # written
    rows_set_aside: int
    set_aside: tuple[int, ...]  # the first of them, by row number
    set_aside_reason: str | None  # what is wrong with the first

    @classmethod
    def refused(cls, shard: Shard, reason: str, input_sha256: str | None = None) -> Entry:
        return cls(
            shard.name, shard.source, shard.part, REFUSED, reason, shard.bytes, shard.stamp, input_sha256,
            None, None, 0, 0, (), None,
        )  # fmt: skip

    def to_json(self) -> bytes:
        return _json(asdict(self))

    @classmethod
    def from_json(cls, content: bytes | None) -> Entry | None:
        """Read an entry; None where there is none, or one that cannot be understood: the shard is then done again."""
        try:
            document = json.loads(content or b"")
            entry = cls(**{**document, "set_aside": tuple(document["set_aside"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return entry if entry._is_sound() else None

    def _is_sound(self) -> bool:
        texts = (self.shard, self.source, self.status, self.input_stamp)
        maybe_texts = (self.reason, self.input_sha256, self.output_sha256, self.set_aside_reason)
        numbers = (self.part, self.input_bytes, self.rows, self.rows_set_aside, *self.set_aside)
        return (
            all(isinstance(text, str) for text in texts)
            and all(text is None or isinstance(text, str) for text in maybe_texts)
            and all(_is_count(number) for number in numbers)
            and (self.output_bytes is None or _is_count(self.output_bytes))
        )


def _json(document: object) -> bytes:
    """Write a document in UTF-8; with escapes where the name of a file is none."""
    try:
        return json.dumps(document, indent=1, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(document, indent=1).encode()


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class JobFile:
    """The job that a target belongs to; a second run must be the same job, or say that it starts anew."""

    def __init__(self, paths: JobPaths, job: Job, key: KeyLabel) -> None:
        self._target = paths.target
        self._name = f"{paths.state}/job.json"
        self.document: dict[str, Any] = {"format": FORMAT, "key": asdict(key), "settings": job.settings()}

    def belongs(self) -> bool:
        """Tell whether the target is this job's already; refuse one that is another's."""
        content = self._target.read(self._name)
        if content is None:
            return False
        where = self._target.where
        try:
            before = json.loads(content)
            key, settings = dict(before["key"]), dict(before["settings"])
            commitment = key.get("commitment")
            if commitment is not None and not isinstance(commitment, str):
                raise ValueError("a commitment is a text")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{where}: {self._name} is damaged: use --force to mark everything again") from None
        if not _same_key(key, self.document["key"]):
            raise InputError(
                f"{where} was begun with key {key.get('id')}{_salted(key)}, and this is key "
                f"{self.document['key']['id']}{_salted(self.document['key'])}: give that key, choose another output, "
                "or use --force to mark everything again"
            )
        for name, value in self.document["settings"].items():
            if settings.get(name) != value:
                raise InputError(
                    f"{where} was begun with {name.replace('_', ' ')} {settings.get(name)!r}, and now it is {value!r}: "
                    "give the same, choose another output, or use --force to mark everything again"
                )
        return True

    def write(self) -> None:
        """Say whose the target is."""
        self._target.write(self._name, json.dumps(self.document, indent=1).encode())


def marked_by(where: str) -> str | None:
    """Return the id of the key whose mark the vectors of a local file or folder carry, where a manifest says so.

    A manifest whose file has another size now tells nothing.
    """
    path = Path(where)
    folder = path.is_dir()
    manifest = path / STATE / "manifest.json" if folder else path.with_name(f"{path.name}.manifest.json")
    try:
        document = json.loads(read_bounded(manifest, _LARGEST))
        sizes = {shard["shard"]: shard["output_bytes"] for shard in document["shards"]}
        found = any(_size(path / name if folder else path) == size for name, size in sizes.items())
        return str(document["key"]["id"]) if found else None
    except (OSError, RegionMarkerError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _same_key(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Compare two keys' labels; a serving key of the first days does not know its commitment."""
    commitments = {one.get("commitment"), other.get("commitment")} - {None}
    return len(commitments) < 2 and all(one.get(name) == other.get(name) for name in ("id", "public_salt", "test"))


def _salted(key: dict[str, Any]) -> str:
    return " with a public salt" if key.get("public_salt") else ""


def write_manifest(paths: JobPaths, document: dict[str, Any], entries: Sequence[Entry]) -> dict[str, Any]:
    """Write a whole job down in one step, and return it: its settings, its totals, its shards in order of name."""
    ordered = sorted(entries, key=lambda entry: entry.shard)
    manifest = {
        **document,
        "totals": {
            "shards": len(ordered),
            "refused": sum(entry.status == REFUSED for entry in ordered),
            "rows": sum(entry.rows for entry in ordered),
            "rows_set_aside": sum(entry.rows_set_aside for entry in ordered),
            "input_bytes": sum(entry.input_bytes for entry in ordered),
            "output_bytes": sum(entry.output_bytes or 0 for entry in ordered),
        },
        "shards": [asdict(entry) for entry in ordered],
    }
    content = _json(manifest) + b"\n"
    paths.target.write(paths.manifest, content)
    return dict(json.loads(content))
