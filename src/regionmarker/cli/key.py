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
    key: KeyArgument,
    delay: Annotated[
        float | None,
        typer.Option(
            help="Also write a statement: a beacon decides the salt, this many hours after it.", min=1 / 60, max=87_600
        ),
    ] = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Print the commitment to a key: publish it, with a time stamp, before the first vector is served.

    With --delay it also writes KEY.statement/, a signed statement that names a public beacon: have it stamped (evidence
    stamp) or put on a log (key log), and take the salt from the beacon afterwards (key salt --round).

    Example: regionmarker key commit provider.rmkey --delay 24
    """
    from datetime import timedelta

    from regionmarker.keys.commitment import commit as commit_to

    primary = load_ring(key, secret_file, ask_passphrase).primary
    facts = {"key_id": primary.id, "commitment": commit_to(primary)}
    if delay is not None:
        from regionmarker.evidence import Signer
        from regionmarker.evidence.statement import statement_path, write_statement

        folder = write_statement(statement_path(key), primary, Signer.beside(key), delay=timedelta(hours=delay))
        facts["statement"] = str(folder)
    print_result(facts, as_json=json)


@app.command()
def log(
    key: KeyArgument,
    url: Annotated[str, typer.Option("--log", help="The log's address (Rekor's API).")] = "https://rekor.sigstore.dev",
    json: Json = False,
) -> None:
    """Put the statement of a key on a transparency log, and keep the log's proof beside it.

    Only the digest of the statement is sent, with its signature and the signer's public log key. A log shows all that
    a signer put there; a time stamp alone does not.

    Example: regionmarker key log provider.rmkey
    """
    from regionmarker.evidence import Signer
    from regionmarker.evidence.fields import STATEMENT, STATEMENT_LOG
    from regionmarker.evidence.statement import add_file, read_statement, statement_path
    from regionmarker.evidence.transparency_log import check_log_entry, put_on_log

    folder = statement_path(key)
    files = read_statement(folder)
    if not files:
        raise InputError(f"{folder} does not exist: make a statement first (key commit {key} --delay HOURS)")
    signer = Signer.beside(key)
    entry = put_on_log(files[STATEMENT], signer, url)
    add_file(folder, STATEMENT_LOG, entry)
    found = check_log_entry(entry, files[STATEMENT], signer.log_key_pem)
    print_result({"entry": found.index, "log": found.log, "time": found.time.isoformat()}, as_json=json)


@app.command()
def salt(
    key: KeyArgument,
    value: Annotated[
        str | None, typer.Argument(help="Public randomness issued after the commitment, in hexadecimal.")
    ] = None,
    beacon_round: Annotated[
        Path | None, typer.Option("--round", help="The beacon's round (JSON) that the key's statement asks for.")
    ] = None,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Mix public randomness into the targets, once, after the commitment and before anything is served.

    A value of one's own choice is taken, and evidence will say that it was chosen. A round that the key's statement
    asks for is checked against the beacon's public key; without either, the round that is wanted is named.

    Example: regionmarker key salt provider.rmkey --round round.json
    """
    from regionmarker.keys.files import KeyRing

    if value is not None and beacon_round is not None:
        raise InputError("give a value or --round, not both")
    if value is None and beacon_round is None:
        print_result(_wanted_round(key), as_json=json)
        return
    phrase = passphrase(ask_passphrase)
    ring = KeyRing.load(key, passphrase=phrase, secret_file=secret_file)
    try:
        drawn = bytes.fromhex(value) if value is not None else _from_beacon(key, beacon_round)
        salted = ring.primary.with_salt(drawn)
    except ValueError as error:
        raise error if isinstance(error, InputError) else InputError("the salt must be hexadecimal digits") from None
    KeyRing((*ring.keys[:-1], salted)).save(key, passphrase=phrase, secret_file=secret_file, overwrite=True)
    print_result({"key_id": salted.id, "public_salt": salted.salt.hex()}, as_json=json)


def _wanted_round(key: Path) -> dict[str, object]:
    from regionmarker.evidence.fields import STATEMENT
    from regionmarker.evidence.statement import read_fields, read_statement, stated_time, statement_path, wanted_round

    files = read_statement(statement_path(key))
    if not files:
        raise InputError(
            f"give the salt in hexadecimal digits, or make a statement first: key commit {key} --delay HOURS"
        )
    beacon, number = wanted_round(read_fields(files[STATEMENT]), stated_time(files)[0])
    return {"round": number, "address": beacon.address(number)}


def _from_beacon(key: Path, path: Path | None) -> bytes:
    """Return the randomness of the round that the statement asks for, and keep the round beside it."""
    from regionmarker.evidence.beacon import BEACONS, randomness, read_round
    from regionmarker.evidence.fields import ROUND, STATEMENT
    from regionmarker.evidence.statement import add_file, read_fields, read_statement, statement_path
    from regionmarker.files import read_bounded

    if path is None:
        raise InputError("give the round with --beacon-round, or the salt itself")
    served = read_bounded(path)
    wanted, (number, signature) = _wanted_round(key), read_round(served, path)
    if number != wanted["round"]:
        raise InputError(f"{path} is round {number}, but the statement asks for {wanted['round']}: {wanted['address']}")
    folder = statement_path(key)
    document = read_fields(read_statement(folder)[STATEMENT])
    found = randomness(BEACONS[document["beacon"]], number, signature)
    add_file(folder, ROUND, served)
    return found


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


@app.command()
def add(
    key: KeyArgument,
    new: Annotated[Path, typer.Argument(help="The key file that keygen made for the next version of the model.")],
    new_secret_file: Annotated[
        Path | None, typer.Option(help="The secret that opens the new key file; default: beside it.")
    ] = None,
    accept_removal: Annotated[
        bool,
        typer.Option("--accept-removal", help="Add a key of the same model although customers can remove both marks."),
    ] = False,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Add the key of another file to the ring: it marks from now on, and all keys of the ring verify.

    For the next version of the model; a graded key beside another key of the same version is refused, as by key rotate.
    The file of the new key stays as it is: delete it once the ring is safe.

    Example: regionmarker key add provider.rmkey new.rmkey
    """
    from regionmarker.keys.files import KeyRing
    from regionmarker.keys.key import same_model
    from regionmarker.marks.graded import GradedMark

    phrase = passphrase(ask_passphrase)
    ring = KeyRing.load(key, passphrase=phrase, secret_file=secret_file)
    added = KeyRing.load(new, passphrase=None if new_secret_file else phrase, secret_file=new_secret_file).primary
    if added.test or ring.primary.test:
        raise InputError(f"{new if added.test else key} holds a TEST key: make a real one with keygen")
    if any(one.id == added.id for one in ring):
        raise InputError(f"{key} holds the key {added.id} of {new} already")
    graded = any(isinstance(one.mark, GradedMark) for one in (ring.primary, added))
    if graded and not accept_removal and same_model(ring.primary, added):
        raise InputError(
            f"{new} holds a key for the model that {key} marks already: customers who hold vectors of the same texts "
            "under two keys can subtract them and remove both marks. Make the new key with keygen on the next version "
            "of the model, or give --accept-removal"
        )
    ring = ring.rotated(added)
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
    from regionmarker.keys.places import place_labels

    phrase = passphrase(ask_passphrase)
    primary = KeyRing.load(key, passphrase=phrase, secret_file=secret_file).primary
    serving = serving_with_commitment(primary, [*tenant_names(tenant, tenants_file), *place_labels(places)])
    made = save_serving(out, serving, given_opener(phrase, secret_file), overwrite=force)
    facts = {"key_file": str(out), "secret_file": None if made is None else str(made), **serving.describe()}
    print_result(facts, as_json=json)
    if made is not None and not json:
        stderr.print(f"\nThe serving key opens with {made}.")
