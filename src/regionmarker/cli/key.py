"""``regionmarker key``: look at, commit to, rotate and export keys; never shows a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regionmarker.cli.options import (
    AskPassphrase,
    Force,
    Json,
    KeyArgument,
    SecretFile,
    TenantNames,
    TenantsFile,
    load_ring,
    passphrase,
    tenant_names,
)
from regionmarker.cli.output import print_result, stderr
from regionmarker.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Look at, commit to, rotate and export keys. Never shows a secret.")


@app.command()
def info(
    key: KeyArgument, secret_file: SecretFile = None, ask_passphrase: AskPassphrase = False, json: Json = False
) -> None:
    """Show what a key file holds, without its secrets.

    Example: regionmarker key info provider.rmkey
    """
    from regionmarker.keys.files import open_key

    opened = open_key(key, passphrase=passphrase(ask_passphrase), secret_file=secret_file)
    print_result({"key_file": str(key), **opened.describe()}, as_json=json)


@app.command()
def commit(
    key: KeyArgument, secret_file: SecretFile = None, ask_passphrase: AskPassphrase = False, json: Json = False
) -> None:
    """Print the commitment to a key: publish it, with a time stamp, before the first vector is served.

    Example: regionmarker key commit provider.rmkey
    """
    from regionmarker.keys.commitment import commit as commit_to

    primary = load_ring(key, secret_file, ask_passphrase).primary
    print_result({"key_id": primary.id, "commitment": commit_to(primary)}, as_json=json)


@app.command()
def salt(
    key: KeyArgument,
    value: Annotated[str, typer.Argument(help="Public randomness issued after the commitment, in hexadecimal.")],
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Mix public randomness into the targets, once, after the commitment and before anything is served.

    Example: regionmarker key salt provider.rmkey 8f14e45fceea167a5a36dedd4bea2543
    """
    from regionmarker.keys.files import KeyRing

    phrase = passphrase(ask_passphrase)
    ring = KeyRing.load(key, passphrase=phrase, secret_file=secret_file)
    try:
        salted = ring.primary.with_salt(bytes.fromhex(value))
    except ValueError as error:
        raise error if isinstance(error, InputError) else InputError("the salt must be hexadecimal digits") from None
    KeyRing((*ring.keys[:-1], salted)).save(key, passphrase=phrase, secret_file=secret_file, overwrite=True)
    print_result({"key_id": salted.id, "public_salt": salted.salt.hex()}, as_json=json)


@app.command()
def rotate(
    key: KeyArgument,
    accept_removal: Annotated[
        bool, typer.Option("--accept-removal", help="Rotate a graded key although customers can then remove its mark.")
    ] = False,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Add a new key to the ring: new master, hyperplanes, regions and targets on the old fit.

    A graded key stays with its version of the model: who sees the same texts under both keys can subtract them and
    remove both marks. Make a new key with keygen for the next version. A published key may be rotated when a serving
    key has leaked; pool and probes stay the same.

    Example: regionmarker key rotate provider.rmkey
    """
    from regionmarker.keys.files import KeyRing
    from regionmarker.keys.key import key_from_key
    from regionmarker.marks.graded import GradedMark

    phrase = passphrase(ask_passphrase)
    ring = KeyRing.load(key, passphrase=phrase, secret_file=secret_file)
    if ring.primary.test:
        raise InputError(f"{key} holds a TEST key: make a real one with keygen")
    if isinstance(ring.primary.mark, GradedMark) and not accept_removal:
        raise InputError(
            f"{key} has a graded mark, which stays with its version of the model: customers who hold vectors of the "
            "same texts under two keys can subtract them and remove both marks. Make a new key with keygen for the "
            "next version, or give --accept-removal"
        )
    ring = ring.rotated(key_from_key(ring.primary))
    ring.save(key, passphrase=phrase, secret_file=secret_file, overwrite=True)
    facts = {"key_file": str(key), "key_id": ring.primary.id, "older_keys": [older.id for older in ring.keys[:-1]]}
    print_result(facts, as_json=json)


@app.command("export-serving")
def export_serving(
    key: KeyArgument,
    out: Annotated[Path, typer.Option(help="The serving key file to write.")],
    tenant: TenantNames = None,
    tenants_file: TenantsFile = None,
    places: Annotated[
        int, typer.Option(min=0, max=100_000, help="Also derive this many places, place-0001 and on, for new tenants.")
    ] = 0,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write what gateways and bulk workers need to mark: no master secret, no texts.

    A place is a tenant's mark that nobody has yet: with places derived ahead, signing up a tenant needs a free place
    and no master secret.

    It is locked like the key (same passphrase or secret file), or with a new secret beside it.

    Example: regionmarker key export-serving provider.rmkey --out serving.rmkey --tenant acme
    """
    from regionmarker.keys.commitment import serving_with_commitment
    from regionmarker.keys.files import KeyRing, given_opener, save_serving
    from regionmarker.keys.serving import place_labels

    phrase = passphrase(ask_passphrase)
    primary = KeyRing.load(key, passphrase=phrase, secret_file=secret_file).primary
    serving = serving_with_commitment(primary, [*tenant_names(tenant, tenants_file), *place_labels(places)])
    made = save_serving(out, serving, given_opener(phrase, secret_file), overwrite=force)
    facts = {"key_file": str(out), "secret_file": None if made is None else str(made), **serving.describe()}
    print_result(facts, as_json=json)
    if made is not None and not json:
        stderr.print(f"\nThe serving key opens with {made}.")
