"""All verbs under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from regionmarker._version import __version__
from regionmarker.cli import bench, evidence, key, tenants
from regionmarker.cli.demo import demo
from regionmarker.cli.doctor import doctor
from regionmarker.cli.impact import impact
from regionmarker.cli.keygen import keygen
from regionmarker.cli.mark import mark
from regionmarker.cli.plan import plan
from regionmarker.cli.probes import probes
from regionmarker.cli.serve import serve
from regionmarker.cli.trace import trace
from regionmarker.cli.verify import verify

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, and those may be secrets
    add_completion=False,
    help="Proof of theft for embedding models: mark the vectors you serve, convict the copies, never the innocent.",
)
app.command()(demo)
app.command()(plan)
app.command()(keygen)
app.add_typer(key.app, name="key")
app.command()(mark)
app.command()(serve)
app.command()(probes)
app.command()(verify)
app.command()(trace)
app.add_typer(evidence.app, name="evidence")
app.command()(impact)
app.add_typer(tenants.app, name="tenants")
app.add_typer(bench.app, name="bench")
app.command()(doctor)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Proof of theft for embedding models."""
    if version:
        typer.echo(__version__)
        raise typer.Exit
