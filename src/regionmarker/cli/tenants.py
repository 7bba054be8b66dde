"""``regionmarker tenants``: who may ask the gateway, with which API key, how much."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.cli.options import Json, SecretFile, tenants_database
from regionmarker.cli.output import print_result, print_table, stderr
from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.gateway.tenants.accounts import Account, Accounts

app = typer.Typer(no_args_is_help=True, help="Who may ask the gateway: API keys, limits, modes. Shows an API key once.")

Name = Annotated[str, typer.Argument(help="The tenant's name.", show_default=False)]
Database = Annotated[
    str,
    typer.Option(
        envvar="REGIONMARKER_DATABASE",
        help="A SQLite file, or postgresql://USER:PASSWORD@HOST/NAME.",
        show_default=False,
    ),
]
PerMinute = Annotated[
    int | None, typer.Option("--requests-per-minute", help="Requests per minute and gateway; 0 for no limit.")
]
InFlight = Annotated[
    int | None, typer.Option("--inputs-in-flight", help="Texts in flight at once per gateway; 0 for no limit.")
]
_SHADOW = "shadow sends unmarked vectors where the gateway allows it (serve --serve-unmarked)"


@app.command()
def add(
    name: Name,
    database: Database,
    requests_per_minute: PerMinute = None,
    inputs_in_flight: InFlight = None,
    mode: Annotated[str, typer.Option(help=f"mark or shadow; {_SHADOW}.")] = "mark",
    key: Annotated[
        Path | None, typer.Option(help="The gateway's serving key: its places are entered first.", show_default=False)
    ] = None,
    by_name: Annotated[
        bool, typer.Option("--by-name", help="Let the mark follow from the name: takes no place, needs an export.")
    ] = False,
    secret_file: SecretFile = None,
    json: Json = False,
) -> None:
    """Add a tenant and print its API key, once.

    Where a serving key holds places (key export-serving --places), the tenant gets the next free one, for ever, and can
    be served at once: nobody needs the master secret.

    Example: regionmarker tenants add acme --database tenants.db --requests-per-minute 600
    """
    limits = {"requests_per_minute": requests_per_minute or None, "inputs_in_flight": inputs_in_flight or None}
    with tenants_database(database, new=True) as accounts:
        if key is not None:
            _enter_places(accounts, key, secret_file)
        accounts.places()  # what is wrong with them is said before an API key is made that nobody sees
        api_key = accounts.add(name, limits=limits, mode=mode, by_name=by_name)
        places = accounts.places()
    label = places.labels[name]
    _show_key(name, api_key, label, as_json=json)
    if not json:
        if label == name:
            stderr.print(
                f"\nThe gateway marks for {name} once its serving key holds the name: run regionmarker key "
                f"export-serving again with --tenant {name}, or with what tenants list --labels prints."
            )
        else:
            stderr.print(f"\n{name} has {label} for ever; {len(places.free)} places are left.")
        _warn_of_shadow(name, mode)


@app.command()
def renew(name: Name, database: Database, json: Json = False) -> None:
    """Give a tenant a further API key; the old ones work until they are revoked.

    Example: regionmarker tenants renew acme --database tenants.db
    """
    with tenants_database(database) as accounts:
        labels = accounts.places().labels
        key = accounts.renew(name)
    _show_key(name, key, labels[name], as_json=json)


@app.command()
def change(
    name: Name,
    database: Database,
    requests_per_minute: PerMinute = None,
    inputs_in_flight: InFlight = None,
    mode: Annotated[str | None, typer.Option(help=f"mark or shadow; {_SHADOW}.")] = None,
    json: Json = False,
) -> None:
    """Change a tenant's limits or mode; gateways follow within seconds.

    Example: regionmarker tenants change acme --database tenants.db --mode mark
    """
    given = {"requests_per_minute": requests_per_minute, "inputs_in_flight": inputs_in_flight}
    limits = {unit: count or None for unit, count in given.items() if count is not None}
    if not limits and mode is None:
        raise InputError("nothing to change: give --requests-per-minute, --inputs-in-flight or --mode")
    with tenants_database(database) as accounts:
        accounts.change(name, limits=limits, mode=mode)
        account = next(account for account in accounts.all() if account.name == name)
    print_result(asdict(account), as_json=json)
    if mode is not None and not json:
        _warn_of_shadow(name, mode)


@app.command("list")
def list_tenants(
    database: Database,
    names: Annotated[bool, typer.Option("--names", help="Print the names alone, one per line.")] = False,
    labels: Annotated[
        bool, typer.Option("--labels", help="Print what the marks follow from, one per line: for export-serving.")
    ] = False,
    json: Json = False,
) -> None:
    """List every tenant, revoked ones included, with its limits and what it has used.

    Example: regionmarker tenants list --database tenants.db
    """
    with tenants_database(database) as accounts:
        entries = accounts.all()
    if json:
        print_result({"tenants": [asdict(entry) for entry in entries]}, as_json=True)
    elif names or labels:
        sys.stdout.write("".join(f"{entry.label if labels else entry.name}\n" for entry in entries))
    else:
        _print_accounts(entries)


@app.command()
def places(
    database: Database,
    published: Annotated[
        str | None,
        typer.Option(help="A digest that was published: refuse assignments that it does not stand for.",
                     show_default=False),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Show whose place is whose, what is left, and the digest of all assignments: publish it now and then.

    Assignments are only ever added, each with a digest of the one before. A digest that was published before a
    suspicion shows, with --published, that nobody was put in another's place afterwards.

    Example: regionmarker tenants places --database tenants.db
    """
    from regionmarker.keys.places import assigned_since

    with tenants_database(database) as accounts:
        found = accounts.places()
    since = None if published is None else assigned_since(found.assignments, published.strip().lower())
    facts: dict[str, object] = {"assigned": len(found.assignments), "digest": found.digest, "places": found.offered}
    facts |= {"free": len(found.free), "next": found.free[0] if found.free else None}
    facts |= {} if since is None else {"assigned_since_published": since}
    if json:
        print_result({**facts, "assignments": [one.to_dict() for one in found.assignments]}, as_json=True)
        return
    print_result(facts, as_json=False)
    rows = [(str(one.number), one.tenant, one.label, one.assigned[:19]) for one in found.assignments]
    print_table(("number", "tenant", "place", "assigned (UTC)"), rows)


@app.command()
def revoke(
    name: Name,
    database: Database,
    key_id: Annotated[
        str | None, typer.Option("--api-key-id", help="Revoke this API key alone: the digits after rm-.")
    ] = None,
    json: Json = False,
) -> None:
    """Revoke a tenant's API keys, or one of them; gateways follow within seconds. The tenant can still be traced.

    Example: regionmarker tenants revoke acme --database tenants.db
    """
    with tenants_database(database) as accounts:
        count = accounts.revoke(name, key_id)
    print_result({"tenant": name, "revoked_keys": count}, as_json=json)


def _enter_places(accounts: Accounts, path: Path, secret_file: Path | None) -> None:
    """Enter the places that a key holds; refuse one that has no marks for tenants."""
    from regionmarker.keys.files import open_key
    from regionmarker.keys.serving import ServingKey

    opened = open_key(path, secret_file=secret_file)
    key = opened if isinstance(opened, ServingKey) else opened.primary
    if not key.marks_tenants:
        raise InputError(
            f"{path} has no marks for tenants (it was made with --no-tenants): a gateway cannot serve tenants with it"
        )
    if isinstance(key, ServingKey):
        accounts.offer(key.tenants)


def _show_key(name: str, key: str, label: str, *, as_json: bool) -> None:
    print_result({"tenant": name, "place": label, "api_key": key}, as_json=as_json)
    if not as_json:
        stderr.print("\nThis is the only time the API key is shown: only its digest is kept.")


def _warn_of_shadow(name: str, mode: str) -> None:
    if mode == "shadow":
        stderr.print(f"\n{name} is in shadow mode: {_SHADOW}.", style="bold red")


def _print_accounts(accounts: list[Account]) -> None:
    if not accounts:
        stderr.print("no tenants yet: regionmarker tenants add enters one")
        return
    rows, keys = [], []
    for account in accounts:
        limits = [str(limit or "no limit") for limit in (account.requests_per_minute, account.inputs_in_flight)]
        used = [str(count) for count in (account.requests, account.inputs, account.tokens)]
        rows.append((account.name, account.label, account.mode, *limits, *used))
        keys += [(account.name, key_id) for key_id in account.api_key_ids or ("revoked",)]
    print_table(("tenant", "place", "mode", "per minute", "in flight", "requests", "inputs", "tokens"), rows)
    print_table(("tenant", "id"), keys, title="\nAPI keys")  # apart: an id that is broken cannot be copied
