"""All verbs under one name."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from regionmarker._version import __version__
from regionmarker.cli import bench, evidence, key, tenants
from regionmarker.cli.demo import demo
from regionmarker.cli.doctor import doctor
from regionmarker.cli.embed import embed
from regionmarker.cli.impact import impact
from regionmarker.cli.keygen import keygen
from regionmarker.cli.mark import mark
from regionmarker.cli.plan import plan
from regionmarker.cli.probes import probes
from regionmarker.cli.serve import serve
from regionmarker.cli.trace import trace
from regionmarker.cli.verify import verify

_HELP_WIDTH = 74  # of 80 columns, less the indentation and a backslash

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, and those may be secrets
    rich_markup_mode=None,  # boxes cut option names at 80 columns
    help="Proof of theft for embedding models: mark the vectors you serve, convict the copies, and an innocent model "
    "at most once in 1,000.",
)
app.command(short_help="The whole story, offline: a theft, its verdicts, a picture.")(demo)
app.command(short_help="What a verdict would catch, before anything is marked.")(plan)
app.command(short_help="Make a secret key from a corpus.")(keygen)
app.command(short_help="Mark files of embeddings.")(mark)
app.command(short_help="Texts in, marked vectors out.")(embed)
app.command(short_help="Serve an embeddings API whose vectors carry the mark.")(serve)
app.command(short_help="Write the texts to ask a suspect by hand.")(probes)
app.command(short_help="Ask a suspect, and judge its answers.")(verify)
app.command(short_help="Which tenant's vectors a suspect was trained on.")(trace)
app.command(short_help="What marking would do to your own texts.")(impact)
app.command(short_help="What is installed, what is missing, how to get it.")(doctor)
app.add_typer(key.app, name="key", short_help="Look at, commit to, rotate, add and export keys.")
app.add_typer(evidence.app, name="evidence", short_help="Check a bundle of evidence, ask again, stamp it.")
app.add_typer(tenants.app, name="tenants", short_help="Who may ask the gateway: API keys, limits, modes.")
app.add_typer(bench.app, name="bench", short_help="The benchmark: defenses against attacks.")


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Proof of theft for embedding models."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


def keep_examples_whole(verbs: typer.Typer) -> None:
    """Give every verb a help whose example can be copied: a long one goes on after a backslash, and is not wrapped."""
    for command in verbs.registered_commands:
        text, found, example = inspect.getdoc(command.callback or root).partition("Example: ")  # type: ignore[union-attr]
        if found:
            command.help = f"{text}\b\n{_broken_at_options(found + ' '.join(example.split()))}"
    for group in verbs.registered_groups:
        if group.typer_instance is not None:
            keep_examples_whole(group.typer_instance)


def _broken_at_options(line: str) -> str:
    """Break a command line before options so that it fits a screen, as a shell wants it.

    Examples
    --------
    >>> _broken_at_options("Example: regionmarker doctor --json")
    'Example: regionmarker doctor --json'
    """
    lines = [""]
    for part in line.replace(" --", "\n--").split("\n"):
        if lines[-1] and len(lines[-1]) + 1 + len(part) > _HELP_WIDTH:
            lines[-1] += " \\"
            lines.append("    ")
        lines[-1] += f" {part}" if lines[-1].strip() else part
    return "\n".join(lines)


keep_examples_whole(app)
