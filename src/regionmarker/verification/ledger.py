"""The ledger: every look that was taken at a suspect with a key, so that looking again is paid for.

Look k is judged at level / (k (k + 1)). The sum over all k is the level itself, so however often someone looks, an
innocent suspect is convicted with at most that probability.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from regionmarker.errors import InputError, OutsideError


def correction(look: int) -> int:
    """Return what a p-value of the ``look``-th look, counted from 1, is multiplied by.

    Examples
    --------
    >>> correction(1), sum(1 / correction(look) for look in range(1, 1000)) < 1.0
    (2, True)
    """
    return look * (look + 1)


def ledger_path(key_path: Path) -> Path:
    """Return where the ledger of a key file lies.

    Examples
    --------
    >>> ledger_path(Path("provider.rmkey")).name
    'provider.rmkey.ledger.jsonl'
    """
    return key_path.with_name(key_path.name + ".ledger.jsonl")


def looks(path: Path, key_id: str, suspect: str, answers_digest: str) -> int:
    """Return the number of the look that comes next: 1 + the distinct sets of answers judged before.

    The same answers judged again are the same look: the verdict is a function of them.
    """
    seen: list[str] = []
    for line in _read(path):
        if line["key_id"] == key_id and line["suspect"] == suspect and line["answers"] not in seen:
            seen.append(line["answers"])
    return seen.index(answers_digest) + 1 if answers_digest in seen else len(seen) + 1


def record(path: Path, entry: dict[str, object]) -> None:
    """Add a line, whole or not at all."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, (json.dumps(entry, sort_keys=True) + "\n").encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OutsideError(f"cannot write the ledger {path}: {error.strerror}") from None


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    lines = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            entry = json.loads(line)
            lines.append({name: str(entry[name]) for name in ("key_id", "suspect", "answers")})
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}, line {number} is damaged: mend or remove that line") from None
    return lines
