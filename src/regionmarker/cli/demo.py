"""``regionmarker demo``: the whole story on the embedded encoder and corpus, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.cli.options import Json
from regionmarker.cli.output import print_result, print_table, stderr
from regionmarker.errors import MissingExtraError

if TYPE_CHECKING:
    from regionmarker.demo import Story


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
        print_result({**facts, "suspects": suspects}, as_json=True)
        return
    print_table(
        ("region", "texts", "share", "mark", "cos(e, e_p)", "neighbours kept"),
        story.regions(),
        title="Regions (a demo's key may be looked at)",
        right=True,
    )
    print_result(facts, as_json=False, title="\nWhat marking did")
    print_table(
        ("suspect", "guilty?", "our p", "our verdict", "the paper's p", "the paper's verdict"),
        [_judged(story, name) for name in story.verdicts],
        title="\nWho is convicted",
    )
    stderr.print("\nThe paper's test convicts the innocent as well; see docs/why/verdict.md.")


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
    path = out / "marking.png"
    try:
        story.draw(path)
    except MissingExtraError:
        return None
    return str(path)
