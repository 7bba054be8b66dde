"""A bundle of evidence: a directory of files, or a zip of the same, under a manifest of their digests.

A bundle is whole or not there: it is written beside its place and renamed. The manifest covers every file but itself,
its signature and its time stamp. What every file holds: docs/reference/evidence-format.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from regionmarker._version import __version__
from regionmarker.crypto.secret import OWNER_ONLY, Sealed
from regionmarker.errors import InputError, OutsideError
from regionmarker.evidence.signature import Signer
from regionmarker.files import atomic_path

FORMAT = "regionmarker evidence 2"
FIRST_FORMAT = "regionmarker evidence 1"  # of version 0.1.0
SUMMARY, EXPERT, COURT = DISCLOSURES = ("summary", "expert", "court")
MANIFEST, SIGNATURE, SIGNER = "manifest.json", "manifest.sig", "signer.pem"
REQUEST, TOKEN = "timestamp.tsq", "timestamp.tsr"
UNLISTED = (MANIFEST, SIGNATURE, REQUEST, TOKEN)
# More than this is not evidence but an attack on whoever opens it.
_LARGEST = 1 << 31  # bytes of all files
_MOST_FILES = 1000
_PROPORTION, _SMALL = 50, 1 << 20  # what a zip may unpack to: so many times its own bytes, or so many bytes


@dataclass(frozen=True, repr=False, eq=False)
class Bundle(Sealed):
    """The bytes of every file; sealed, because a court bundle holds a key."""

    path: Path
    files: Mapping[str, bytes]

    def read(self, name: str) -> bytes:
        if name not in self.files:
            raise InputError(f"{name} is missing from {self.path}")
        return self.files[name]

    def json(self, name: str) -> Any:
        return parsed(name, self.read(name))

    def lines(self, name: str) -> list[Any]:
        return [parsed(name, line) for line in self.read(name).splitlines()]

    @property
    def disclosure(self) -> str:
        manifest = self.json(MANIFEST)
        found = manifest.get("level") if isinstance(manifest, dict) else None
        if found not in DISCLOSURES:
            raise InputError(f"{MANIFEST} names no known disclosure")
        return str(found)

    @property
    def is_first_format(self) -> bool:
        """Whether version 0.1.0 wrote the bundle, or someone who would have us believe so."""
        return bool(self.json(MANIFEST)["format"] == FIRST_FORMAT)

    @property
    def written_by(self) -> dict[str, str]:
        """What wrote the bundle, by its own account: names of programs and their versions."""
        return {} if self.is_first_format else dict(self.json(MANIFEST)["written_by"])


def need(condition: bool, complaint: str) -> None:
    """Refuse a bundle with a complaint unless the condition holds."""
    if not condition:
        raise InputError(complaint)


def manifest_of(disclosure: str, files: Mapping[str, bytes], written_by: Mapping[str, str] | None = None) -> bytes:
    """Return the manifest: one spelling only, so that signing its bytes signs its meaning.

    ``written_by`` is our own unless given; an empty one makes a manifest of the first format.
    """
    digests = {name: sha256(files[name]).hexdigest() for name in files}
    by = our_versions() if written_by is None else dict(written_by)
    about: dict[str, object] = {"format": FORMAT, "written_by": by} if by else {"format": FIRST_FORMAT}
    return plain_json({**about, "level": disclosure, "files": digests})


def our_versions() -> dict[str, str]:
    """Return what decides the bytes of a report: this program and the one that draws its pictures."""
    return {"regionmarker": __version__, "matplotlib": version("matplotlib")}


def plain_json(document: object) -> bytes:
    """Return JSON for people and programs, always the same for the same values."""
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def plain_lines(rows: list[dict[str, Any]]) -> bytes:
    """Return one JSON object per line."""
    return "".join(json.dumps(row, sort_keys=True, ensure_ascii=False) + "\n" for row in rows).encode()


def write_bundle(
    directory: Path,
    files: Mapping[str, bytes],
    *,
    disclosure: str,
    signer: Signer | None = None,
    archive: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write files, manifest and signature to ``directory``, and to a zip beside it if asked."""
    target = Path(os.path.abspath(directory))  # noqa: PTH100 - "." and ".." must go, symbolic links must stay
    packed = target.with_name(target.name + ".zip")
    _check_free(target, overwrite)
    if archive and packed.exists() and not overwrite:
        raise InputError(f"{packed} exists already: choose another name, or say that it is to be overwritten")
    listed = {**files, SIGNER: signer.public_pem} if signer else dict(files)
    manifest = manifest_of(disclosure, listed)
    whole = {**listed, MANIFEST: manifest, **({SIGNATURE: signer.sign(manifest)} if signer else {})}
    # Beyond the summary a bundle shows parts of the key: for its owner's eyes until it is handed over.
    mode = 0o666 if disclosure == SUMMARY else OWNER_ONLY
    with contextlib.ExitStack() as stack:
        if archive:
            _pack(stack.enter_context(atomic_path(packed, mode)), whole)
        place = stack.enter_context(_whole_directory(target, 0o777 if disclosure == SUMMARY else 0o700))
        for name in sorted(whole):
            _write_new(place / name, whole[name], mode)
    return target


def read_bundle(path: str | Path) -> Bundle:
    """Read a bundle from its directory or zip; what it holds is not checked here."""
    path = Path(path)
    try:
        if path.is_dir():
            entries = sorted(path.iterdir())
            _check_size(path, len(entries), sum(entry.lstat().st_size for entry in entries), _LARGEST)
            return Bundle(path, {entry.name: _read_entry(entry) for entry in entries})
        if path.is_file():
            return Bundle(path, _unpack(path))
    except OSError as error:
        raise OutsideError(f"cannot read {path}: {error.strerror or error}") from None
    raise InputError(f"{path} does not exist: give the directory or the zip of a bundle")


_DAMAGED = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError,
    NotImplementedError,  # a way of packing that zipfile does not know
    RuntimeError,  # an encrypted entry
    ValueError, OverflowError, struct.error,  # names that are no text, places before the beginning, times before 1980
)  # fmt: skip
"""All that zipfile raises on files that no bundle was packed into."""


def _read_entry(entry: Path) -> bytes:
    if entry.is_symlink() or not entry.is_file():
        raise InputError(f"{entry.name} is not a file: a bundle holds plain files only")
    return entry.read_bytes()


def _unpack(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as packed:
            entries = packed.infolist()
            names = [entry.filename for entry in entries]
            if len(set(names)) != len(names) or any("/" in name or "\\" in name for name in names):
                raise InputError(f"{path} is not a bundle: it holds folders, or a name twice")
            most = min(_LARGEST, max(_SMALL, _PROPORTION * path.stat().st_size))
            _check_size(path, len(entries), sum(entry.file_size for entry in entries), most)
            if any(entry.compress_type not in _PACKED for entry in entries):
                raise InputError(f"{path} is not a bundle: it is packed in another way than zip's own")
            return {name: packed.read(name) for name in names}
    except InputError:
        raise
    except _DAMAGED as error:
        raise InputError(f"{path} is not a bundle: {error}") from None


_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _check_size(path: Path, files: int, size: int, most: int) -> None:
    """Refuse a bundle by what its list of files says, before any of them is read."""
    if files > _MOST_FILES:
        raise InputError(f"{path} holds {files} files: that is not a bundle")
    if size > most:
        raise InputError(f"{path} holds {size >> 20} MiB, where {most >> 20} MiB are the most: that is not a bundle")


def _pack(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name)  # dated 1980: the same files give the same zip
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, files[name])


def _check_free(target: Path, overwrite: bool) -> None:
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist")
    if not target.exists() and not target.is_symlink():
        return
    if target.is_dir() and not target.is_symlink() and not any(target.iterdir()):
        return
    if not overwrite:
        raise InputError(f"{target} exists already: choose another name, or say that it is to be overwritten")
    if not (target / MANIFEST).is_file() or target.is_symlink():
        raise InputError(f"{target} is not a bundle of evidence: it is left alone; choose another name")


@contextlib.contextmanager
def _whole_directory(target: Path, mode: int) -> Iterator[Path]:
    """Give a temporary directory; when the block ends well it takes ``target``'s place, else it is removed."""
    mark = secrets.token_hex(6)
    temporary, old = (target.with_name(f".{target.name}.{mark}.{kind}") for kind in ("tmp", "old"))
    try:
        temporary.mkdir(mode=mode)
        yield temporary
        if target.exists():
            target.rename(old)
        try:
            temporary.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    except OSError as error:
        raise OutsideError(f"cannot write {target}: {error.strerror or error}; nothing was changed") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def parsed(name: str, content: bytes) -> Any:
    """Return what JSON says, or complain of the file."""
    try:
        return json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise InputError(f"{name} is damaged: it cannot be read") from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number that a bundle holds")
