"""``regionmarker demo``: the whole story on the embedded encoder and corpus, offline."""

from __future__ import annotations

import sys
from dataclasses import asdict
from os.path import relpath
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.cli.options import Json
from regionmarker.cli.output import print_result, print_table, stderr
from regionmarker.errors import MissingExtraError

if TYPE_CHECKING:
    from regionmarker.demo import Story
    from regionmarker.verification.tracing import Trace


def demo(
    out: Annotated[Path, typer.Option(help="Where the key, the verdicts and the picture go.")] = Path(
        "regionmarker-demo"
    ),
    json: Json = False,
) -> None:
    """Protect an embedded model, steal it, disguise the copy, and judge copies and innocents with both tests.

    Example: regionmarker demo --out out/demo
    """
    from regionmarker.demo import run_demo

    out.mkdir(parents=True, exist_ok=True)
    story = run_demo(lambda line: None if json else stderr.print(line))
    made = story.marker.save(out / "demo.rmkey", overwrite=True)
    facts: dict[str, object] = {
        **story.utility(),
        "key_file": str(out / "demo.rmkey"),
        "secret_file": None if made is None else str(made),
        "picture": _draw(out, story),
        "report": _report(out, story),
    }
    if json:
        suspects = [{**verdict.to_dict(), "suspect": name} for name, verdict in story.verdicts.items()]
        traces = [asdict(row) for row in story.traces]
        print_result({**facts, "suspects": suspects, "tenants": traces}, as_json=True)
        return
    print_result(facts, as_json=False, title="What marking did")
    print_table(
        ("customer", "p", "corrected p", "accused"),
        [_traced(row) for row in story.traces[:3]],
        title=f"\nWhose vectors the copy was trained on, of {len(story.traces)} customers",
    )
    print_table(
        ("suspect", "guilty?", "our p", "our verdict", "paper's p", "its verdict"),
        [_judged(story, name) for name in story.verdicts],
        title="\nWho is convicted",
    )
    _conclude(out, story)


def _conclude(out: Path, story: Story) -> None:
    """Say the verdict where nobody can miss it, and what to do next."""
    from regionmarker.verification.verdict import INFRINGEMENT

    ours = [name for name, verdict in story.verdicts.items() if verdict.outcome == INFRINGEMENT]
    innocent = [name for name in story.verdicts if name not in story.guilty]
    theirs = sum(story.verdicts[name].paper.copy for name in innocent)
    copy = story.verdicts["the copy"]
    caught = "the copy" in ours
    verdict = f"THE COPY IS CONVICTED: p = {copy.p_value:.1g}" if caught else "THE COPY ESCAPED: try once more"
    stderr.print(f"\n{verdict}", style="bold white on red" if caught else "bold black on yellow")
    stderr.print(f"Who leaked: {', '.join(story.accused) or 'nobody is named'}.")
    stderr.print(
        f"Of {len(innocent)} innocents our test convicts {sum(name in innocent for name in ours)}, the paper's "
        f"{theirs}: docs/why/verdict.md says why.",
        soft_wrap=True,
    )
    # make demo leaves the program in .venv, where a shell does not look for it
    program = "regionmarker" if which("regionmarker") else relpath(Path(sys.executable).parent / "regionmarker")
    stderr.print("\nNext:", style="bold")
    for line in (
        f"  the picture        {out / 'verdicts.png'}",
        f"  the evidence       {out / 'evidence' / 'report.html'}",
        f"  check it yourself  {program} evidence check {out / 'evidence'}",
        f"  your own texts     {program} keygen --corpus texts.txt \\\n"
        "                       --encoder wordllama --out provider.rmkey",
        "  the whole way      docs/tutorial.md",
    ):
        stderr.print(line, soft_wrap=True, highlight=False, markup=False)


def _traced(row: Trace) -> tuple[str, ...]:
    return row.tenant, f"{row.p_value:.2g}", f"{row.holm:.2g}", "yes" if row.accused else "no"


def _judged(story: Story, name: str) -> tuple[str, ...]:
    verdict = story.verdicts[name]
    return (
        name,
        "yes" if name in story.guilty else "no",
        f"{verdict.p_value:.2g}",
        verdict.outcome,
        f"{verdict.paper.p_value:.2g}",
        "copy" if verdict.paper.copy else "no copy",
    )


def _report(out: Path, story: Story) -> str | None:
    try:
        bundle = story.verdicts["the copy"].save(out / "evidence", overwrite=True)
    except MissingExtraError:
        return None
    return relpath(bundle / "report.html")


def _draw(out: Path, story: Story) -> str | None:
    path = out / "verdicts.png"
    try:
        story.draw(path)
    except MissingExtraError:
        return None
    return str(path)
