"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

KeyPath = Annotated[Path, typer.Option("--key", help="The key file.", show_default=False)]
KeyArgument = Annotated[Path, typer.Argument(help="The key file.", show_default=False)]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file", help="The 32-byte secret that opens the key file; default: the file PATH.secret beside it."
    ),
]
AskPassphrase = Annotated[
    bool, typer.Option("--passphrase", help="Ask for a passphrase (or set REGIONMARKER_PASSPHRASE).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output file if it exists.")]


def passphrase(ask: bool, *, confirm: bool = False) -> str | None:
    """Ask for a passphrase at the terminal, if the option says so."""
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)) if ask else None
