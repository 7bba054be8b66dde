"""The README's ten lines, as they stand there: how many runs convict the copy and name who leaked.

    python -m studies.ten_lines [--runs N] [--out DIR]

Each run executes the block of the README in a fresh namespace, so with a new secret key and no seed anywhere. Then the
same thief trains on the unmarked vectors of the same texts, and the same key judges that copy as well.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from studies._study import Command, Log, Row, markdown

PAGE = "docs/results/ten-lines.md"
README = Path(__file__).resolve().parents[1] / "README.md"
CONVICTED = "infringement"


def source() -> str:
    """Return the one block of Python that the README has."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(block)


def one_run() -> Row:
    """Execute the lines, then judge the copy of unmarked vectors."""
    import regionmarker as rm
    from regionmarker.benchmark.stealers import TokenBag

    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(source(), str(README), "exec"), names)
    outcome, named, original = printed.getvalue().splitlines()
    marker, bought = names["marker"], names["texts"][4000:]
    clean = rm.verify(marker, TokenBag().steal(bought, names["encoder"].encode(bought)).encode, power=False)
    return {
        "copy": outcome,
        "p": rm.verify(marker, names["answers"], power=False).p_value,
        "named": str(re.findall(r"tenant='(\w+)'", named)[0]) if "accused=True" in named else "nobody",
        "original": original,
        "clean_copy": clean.outcome,
        "clean_p": clean.p_value,
    }


def summary(rows: list[Row]) -> str:
    """Count."""
    total = len(rows)
    body = [
        ("the copy of acme's vectors", "convicted", count(rows, "copy", CONVICTED), f"{max(r['p'] for r in rows):.1g}"),
        ("the same copy", "acme named", count(rows, "named", "acme"), ""),
        ("a copy of the unmarked vectors", "convicted", count(rows, "clean_copy", CONVICTED),
         f"{min(r['clean_p'] for r in rows):.1g}"),
        ("the unmarked encoder", "convicted", count(rows, "original", CONVICTED), ""),
    ]  # fmt: skip
    return markdown(
        ("suspect", "what is counted", "runs", "worst p"),
        [(suspect, what, f"{found} of {total}", worst) for suspect, what, found, worst in body],
    )


def count(rows: list[Row], column: str, value: str) -> int:
    """How many rows have this value."""
    return sum(row[column] == value for row in rows)


def main() -> None:
    """Run what is missing and print the table."""
    command = Command(__doc__, PAGE, smoke={"runs": 1})
    command.add_argument("--runs", type=int, default=20)
    command.add_argument("--out", type=Path, default=Path("out/ten-lines"), help="finished runs stay here")
    given = command.read()
    log = Log(given.out / "rows.jsonl")
    for run in range(given.runs):
        log.once({"run": run}, one_run)
    print(summary(log.rows))


if __name__ == "__main__":
    main()
