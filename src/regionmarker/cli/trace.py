"""``regionmarker trace``: rank tenants by how strongly a suspect carries their own mark."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regionmarker.cli.asking import (
    DryRun,
    Fresh,
    Price,
    SuspectName,
    ask_suspect,
    banner_traces,
    check_names,
    check_price,
    print_quote,
)
from regionmarker.cli.options import (
    AskPassphrase,
    Budget,
    Json,
    KeyPath,
    SecretFile,
    Suspect,
    TenantNames,
    TenantsDatabase,
    TenantsFile,
    check_level,
    load_ring,
    read_tenants,
)
from regionmarker.cli.output import print_result, print_table, stderr
from regionmarker.errors import InputError


def trace(
    key: KeyPath,
    suspect: Suspect,
    suspect_name: SuspectName = None,
    tenant: TenantNames = None,
    tenants_file: TenantsFile = None,
    database: TenantsDatabase = None,
    key_id: Annotated[
        str | None, typer.Option(help="A key of the file; default: the newest.", show_default=False)
    ] = None,
    budget: Budget = None,
    level: Annotated[float | None, typer.Option(help="Chance of accusing anyone when nobody leaked.")] = None,
    cache: Annotated[Path | None, typer.Option(help="SQLite file that keeps the answers; the one of verify.")] = None,
    fresh: Fresh = False,
    dry_run: DryRun = False,
    price_per_million: Price = None,
    most: Annotated[int, typer.Option(min=1, help="How many tenants to show.")] = 10,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Say which tenant's vectors a suspect was trained on, from the same answers as verify.

    With --database every place ever issued is looked at, revoked tenants included, after the chain of assignments was
    checked; with --tenant and --tenants-file, the tenants that you name: leave nobody out.

    Example: regionmarker trace --key provider.rmkey --suspect file:answers.parquet --database tenants.db
    """
    from regionmarker.keys.places import chain_digest
    from regionmarker.verification.questions import DEFAULT_BUDGET, plan_all, plan_questions
    from regionmarker.verification.quote import quote
    from regionmarker.verification.tracing import finding, labels_of
    from regionmarker.verification.tracing import trace as rank

    check_price(price_per_million, dry_run=dry_run)
    check_names(suspect_name)
    check_level(level)
    primary = load_ring(key, secret_file, ask_passphrase, key_id).primary
    named, places = read_tenants(tenant, tenants_file, database)
    if not named:
        raise InputError("say which tenants to look at: give --database, --tenants-file or --tenant")
    labels = labels_of(primary, named)  # a key without marks for tenants says so before anything is asked
    if dry_run:
        asked = plan_questions(primary, DEFAULT_BUDGET if budget is None else budget).texts
        most_asked = {} if budget is not None else {"at_most": len(plan_all(primary))}
        found = quote(suspect, asked, cache=cache, fresh=fresh)
        before: dict[str, object] = {"suspect": suspect, "tenants": len(labels)}
        print_quote(found, price_per_million, as_json=json, before=before, **most_asked)
        return
    answers = ask_suspect(primary, suspect, budget, cache=cache, fresh=fresh, name=suspect_name, quiet=json)
    ranking = rank(primary, answers, labels, level=level)
    said = finding(ranking, primary.settings.level if level is None else level)
    issued = {"count": len(places), "digest": chain_digest(places)} if places else None
    if json:
        rows = [asdict(row) for row in ranking[:most]]
        print_result({"suspect": answers.suspect, "finding": said, "places": issued, "tenants": rows}, as_json=True)
        return
    banner_traces(ranking, said)
    print_table(
        ("tenant", "place", "p", "corrected p", "accused"),
        [
            (row.tenant, row.label, f"{row.p_value:.3g}", f"{row.holm:.3g}", "yes" if row.accused else "no")
            for row in ranking[:most]
        ],
        title=f"\nTenants, corrected for {len(ranking)} looked at",
    )
    if issued is not None:
        stderr.print(f"\nAll {issued['count']} places issued were looked at; their digest is {issued['digest']}.")
