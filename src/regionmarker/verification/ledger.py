"""The ledger: every look that was taken with a key, so that looking again is paid for.

A look is a distinct set of inputs of the statistic (questions, answers, key), whatever the suspect is called; the same
inputs judged again are the same look, because the verdict is a function of them. Under decoy-2 the first look is judged
at 0.9 of the level and look k at 0.1 level / (k (k - 1)); under decoy-1, look k at level / (k (k + 1)). Either way the
sum over all k is the level, so however often someone looks, innocent suspects are convicted with at most that
probability.

The ledger is a chain. With h_0 = SHA-256 of "regionmarker ledger 1" and a line break, and h_n = SHA-256 of h_(n-1) and
the bytes of line n without its line break, line n names h_(n-1) as ``before``, and the *head* h_n is part of every
bundle of evidence that line n is about. So a line that was removed or changed shows: by the line after it, or by a
bundle. Lines that older versions wrote name nothing, and are part of the chain like any other.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

from regionmarker.errors import InputError, OutsideError
from regionmarker.files import read_bounded

_LARGEST = 1 << 28  # bytes: some 400,000 looks
_FIRST = 0.9  # of the level, for the first look by decoy-2
START = sha256(b"regionmarker ledger 1\n").hexdigest()
"""The chain's value before the first line of any ledger."""


def correction(look: int, statistic: str) -> float:
    """Return what a p-value of the ``look``-th look, counted from 1, is multiplied by.

    Examples
    --------
    >>> correction(1, "decoy-1"), round(correction(1, "decoy-2"), 3), round(correction(2, "decoy-2"), 3)
    (2, 1.111, 20.0)
    >>> sum(1 / correction(look, "decoy-2") for look in range(1, 1000)) < 1.0
    True
    """
    if statistic == "decoy-1":
        return look * (look + 1)
    return 1.0 / _FIRST if look == 1 else look * (look - 1) / (1.0 - _FIRST)


def ledger_path(key_path: Path) -> Path:
    """Return where the ledger of a key file lies.

    Examples
    --------
    >>> ledger_path(Path("provider.rmkey")).name
    'provider.rmkey.ledger.jsonl'
    """
    return key_path.with_name(key_path.name + ".ledger.jsonl")


@dataclass(frozen=True)
class LedgerHead:
    """Where the ledger stood when a verdict was entered.

    Attributes
    ----------
    entries
        Its lines, those of the verdict included: one per key that judged.
    before, head
        The chain's value before the verdict's lines and after them, in hexadecimal.
    """

    entries: int
    before: str
    head: str

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def verdict_entries(verdict: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the ledger holds of a verdict in plain values: one entry per key that judged."""
    plain = {"time": verdict["created"], "suspect": verdict["suspect"], "answers": verdict["answers_digest"]}
    own = {name: verdict[name] for name in ("key_id", "look", "judged_at", "p_value", "outcome")}
    entries = [{**plain, **own, "inputs": verdict["inputs_digest"]}]
    for other in verdict["other_keys"]:
        found = {name: other[name] for name in ("key_id", "look", "p_value", "holm", "infringement")}
        entries.append({**plain, **found, "inputs": other["inputs_digest"]})
    return entries


def chained(before: str, entries: Sequence[Mapping[str, Any]]) -> tuple[list[bytes], str]:
    """Return the lines of entries that follow ``before``, and the head after them.

    Examples
    --------
    >>> lines, head = chained(START, [{"look": 1}])
    >>> lines[0][:22], len(bytes.fromhex(head))
    (b'{"before": "4a4948afbd', 32)
    """
    lines, head = [], bytes.fromhex(before)
    for entry in entries:
        lines.append(json.dumps({**entry, "before": head.hex()}, sort_keys=True).encode())
        head = _next(head, lines[-1])
    return lines, head.hex()


def _next(head: bytes, line: bytes) -> bytes:
    return sha256(head + line).digest()


class LookLines:
    """The lines of a ledger, their chain followed from the first to the last.

    Attributes
    ----------
    entries
        What each line says.
    heads
        The chain's value before the first line and after each, in hexadecimal.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self.entries: list[dict[str, Any]] = []
        self.heads = [START]
        self._seen: dict[str, list[str]] = {}  # by key: the inputs that were judged, in the order of their first look
        begun = False
        *lines, torn = content.split(b"\n")  # every line ends with a break, so the last part is empty
        for number, line in enumerate([*lines, torn] if torn else lines, start=1):
            entry = _parsed(line if number <= len(lines) else b"", f"{name}, line {number}")
            named = entry.get("before")
            if named != self.heads[-1] and (begun or named is not None):
                raise InputError(
                    f"{name}, line {number} does not follow from the lines before it: a line was changed or removed; "
                    "restore the file from a backup"
                )
            begun = begun or named is not None
            look = self.look(entry["key_id"], entry["inputs"])
            if begun and entry.get("look") != look:
                raise InputError(
                    f"{name}, line {number} is look {look} with key {entry['key_id']}, but says {entry.get('look')}: "
                    "restore the file from a backup"
                )
            self._add(entry, line)

    def look(self, key_id: str, inputs: str) -> int:
        """Return the number of a look with a key: that of the same inputs, or else 1 + the distinct inputs so far."""
        seen = self._seen.get(key_id, [])
        return seen.index(inputs) + 1 if inputs in seen else len(seen) + 1

    @property
    def looks(self) -> dict[str, int]:
        """How many looks were taken with each key."""
        return {key_id: len(seen) for key_id, seen in self._seen.items()}

    def _add(self, entry: dict[str, Any], line: bytes) -> None:
        self.entries.append(entry)
        self.heads.append(_next(bytes.fromhex(self.heads[-1]), line).hex())
        seen = self._seen.setdefault(entry["key_id"], [])
        if entry["inputs"] not in seen:
            seen.append(entry["inputs"])


def read_ledger(path: Path) -> LookLines:
    """Read a ledger and follow its chain; one that is not there has no lines."""
    _check_kind(path)
    return LookLines(read_bounded(path, _LARGEST) if path.exists() else b"", str(path))


class Ledger:
    """A ledger that looks are counted in, locked from the first count until it is closed.

    Whoever judges at the same time waits: two looks never get one number.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._lines = LookLines(b"", "")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def look(self, key_id: str, inputs: str) -> int:
        """Return the number of the look that inputs are, with a key."""
        self._open()
        return self._lines.look(key_id, inputs)

    def enter(self, verdict: Mapping[str, Any]) -> LedgerHead:
        """Add the lines of a verdict, all of them or none."""
        descriptor = self._open()
        before = self._lines.heads[-1]
        lines, head = chained(before, verdict_entries(verdict))
        try:
            _append(descriptor, b"".join(line + b"\n" for line in lines))
        except OSError as error:
            raise OutsideError(f"cannot write the ledger {self._path}: {error.strerror or error}") from None
        return LedgerHead(len(self._lines.entries) + len(lines), before, head)

    def _open(self) -> int:
        if self._descriptor is None:
            _check_kind(self._path)
            try:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            except OSError as error:
                raise OutsideError(f"cannot write the ledger {self._path}: {error.strerror}") from None
            self._lines = read_ledger(self._path)
        return self._descriptor


def _check_kind(path: Path) -> None:
    """Refuse what is no file: a named pipe would keep whoever reads it waiting for ever."""
    if path.exists() and not path.is_file():
        raise InputError(f"the ledger {path} is not a file: move it away, and restore the ledger from a backup")


def _append(descriptor: int, content: bytes) -> None:
    """Write at the end of a file, or leave it as it was."""
    size = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, content)
        if written < len(content):
            raise OSError("the disk is full")
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _parsed(line: bytes, place: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        # 0.1.0 wrote down the digest of the answers alone.
        return {**entry, "key_id": str(entry["key_id"]), "inputs": str(entry.get("inputs") or entry["answers"])}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"{place} is damaged: remove it if it is the last line, or restore the file from a backup"
        ) from None
