"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.keys.files import KeyRing

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
Engine = Annotated[str, typer.Option("--engine", help="local: this machine; ray: a Ray cluster.")]
Address = Annotated[
    str | None, typer.Option("--address", help="The Ray cluster to use; default: one of its own on this machine.")
]


def passphrase(ask: bool, *, confirm: bool = False) -> str | None:
    """Ask for a passphrase at the terminal, if the option says so."""
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)) if ask else None


def check_engine(engine: str, address: str | None, ask_passphrase: bool) -> None:
    """Refuse options that do not go together."""
    if engine not in ("local", "ray"):
        raise InputError(f"--engine is {engine!r}, but must be local or ray")
    if address is not None and engine != "ray":
        raise InputError("--address goes with --engine ray")
    if ask_passphrase and engine == "ray":
        raise InputError(
            "a passphrase typed here does not reach Ray's workers, and must not travel to them: "
            "set REGIONMARKER_PASSPHRASE where they run, or use a secret file or --opener"
        )


def load_ring(path: Path, secret_file: Path | None, ask_passphrase: bool, key_id: str | None = None) -> KeyRing:
    """Open a key file: all its keys, or the one that ``key_id`` names."""
    from regionmarker.keys.files import KeyRing

    ring = KeyRing.load(path, passphrase=passphrase(ask_passphrase), secret_file=secret_file)
    return ring if key_id is None else KeyRing((ring.find(key_id),))
