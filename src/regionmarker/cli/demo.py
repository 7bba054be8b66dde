"""``regionmarker demo``: the whole story on the embedded encoder and corpus, offline."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
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
        ("suspect", "guilty?", "our p", "our verdict", "the paper's p", "its verdict"),
        [_judged(story, name) for name in story.verdicts],
        title="\nWho is convicted",
    )
    print_table(
        ("customer", "p", "corrected p", "accused"),
        [_traced(row) for row in story.traces[:3]],
        title=f"\nWhose vectors the copy was trained on, of {len(story.traces)} customers",
    )
    stderr.print(
        "\nThe paper's test convicts the innocent as well; see docs/why/verdict.md. Next: open the report, or make a "
        "key of your own:\n  regionmarker keygen --corpus texts.txt --encoder wordllama --out provider.rmkey",
        soft_wrap=True,
    )


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
    return str(bundle / "report.html")


def _draw(out: Path, story: Story) -> str | None:
    path = out / "verdicts.png"
    try:
        story.draw(path)
    except MissingExtraError:
        return None
    return str(path)
