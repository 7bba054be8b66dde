"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regionmarker.keys.ring import KeyRing

KeyPath = Annotated[Path, typer.Option("--key", help="The key file.", show_default=False)]
KeyArgument = Annotated[Path, typer.Argument(help="The key file.", show_default=False)]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file", help="The 32-byte secret that opens the key file; default: the file PATH.secret beside it."
    ),
]
KeyId = Annotated[
    str | None, typer.Option("--key-id", help="Only this key of the file; default: all of them.", show_default=False)
]
AskPassphrase = Annotated[
    bool, typer.Option("--passphrase", help="Ask for a passphrase (or set REGIONMARKER_PASSPHRASE).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output file if it exists.")]


def passphrase(ask: bool, *, confirm: bool = False) -> str | None:
    """Ask for a passphrase at the terminal, if the option says so."""
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)) if ask else None


def load_ring(path: Path, secret_file: Path | None, ask_passphrase: bool, key_id: str | None = None) -> KeyRing:
    """Open a key file: all its keys, or the one that ``key_id`` names."""
    from regionmarker.keys.ring import KeyRing

    ring = KeyRing.load(path, passphrase=passphrase(ask_passphrase), secret_file=secret_file)
    return ring if key_id is None else KeyRing((ring.find(key_id),))
