"""The ledger: every look that was taken with a key, so that looking again is paid for.

A look is a distinct set of inputs of the statistic (questions, answers, key), whatever the suspect is called; the same
inputs judged again are the same look, because the verdict is a function of them. Under decoy-2 the first look is judged
at 0.9 of the level and look k at 0.1 level / (k (k - 1)); under decoy-1, look k at level / (k (k + 1)). Either way the
sum over all k is the level, so however often someone looks, innocent suspects are convicted with at most that
probability.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from regionmarker.errors import InputError, OutsideError

_FIRST = 0.9  # of the level, for the first look by decoy-2


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


def looks(path: Path, key_id: str, inputs: str) -> int:
    """Return the number of the look that comes next with a key: 1 + the distinct inputs judged before."""
    seen: list[str] = []
    for line in _read(path):
        if line["key_id"] == key_id and line["inputs"] not in seen:
            seen.append(line["inputs"])
    return seen.index(inputs) + 1 if inputs in seen else len(seen) + 1


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
            # 0.1.0 wrote down the digest of the answers alone.
            lines.append({"key_id": str(entry["key_id"]), "inputs": str(entry.get("inputs", entry["answers"]))})
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}, line {number} is damaged: mend or remove that line") from None
    return lines
