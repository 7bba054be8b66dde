"""``regionmarker trace``: rank tenants by how strongly a suspect carries their own mark."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regionmarker.cli.options import (
    AskPassphrase,
    Budget,
    Json,
    KeyPath,
    SecretFile,
    Suspect,
    TenantNames,
    TenantsFile,
    load_ring,
    tenant_names,
)
from regionmarker.cli.output import print_result, print_table


def trace(
    key: KeyPath,
    suspect: Suspect,
    tenant: TenantNames = None,
    tenants_file: TenantsFile = None,
    key_id: Annotated[
        str | None, typer.Option(help="A key of the file; default: the newest.", show_default=False)
    ] = None,
    budget: Budget = None,
    level: Annotated[float | None, typer.Option(help="Chance of accusing anyone when nobody leaked.")] = None,
    cache: Annotated[Path | None, typer.Option(help="SQLite file that keeps the answers; the one of verify.")] = None,
    most: Annotated[int, typer.Option(help="How many tenants to show.")] = 10,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Say which tenant's vectors a suspect was trained on, from the same answers as verify.

    Example: regionmarker trace --key provider.rmkey --suspect file:answers.parquet --tenants-file tenants.txt
    """
    from regionmarker.verification.asking import ask
    from regionmarker.verification.tracing import trace as rank

    primary = load_ring(key, secret_file, ask_passphrase, key_id).primary
    names = tenant_names(tenant, tenants_file)
    primary.tenant_targets(names[0] if names else "")  # a key without tenant regions says so before anything is asked
    answers = ask(primary, suspect, budget, cache=cache, progress=not json)
    ranking = rank(primary, answers, names, level=level)
    if json:
        print_result({"suspect": answers.suspect, "tenants": [asdict(row) for row in ranking[:most]]}, as_json=True)
        return
    print_table(
        ("tenant", "p", "corrected p", "accused"),
        [
            (row.tenant, f"{row.p_value:.3g}", f"{row.holm:.3g}", "yes" if row.accused else "no")
            for row in ranking[:most]
        ],
        title=f"Tenants, corrected for {len(ranking)} looked at",
    )
