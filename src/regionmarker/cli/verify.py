"""``regionmarker verify``: judge a suspect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    EmbeddingColumn,
    Force,
    Json,
    KeyId,
    KeyPath,
    SecretFile,
    Suspect,
    TenantNames,
    TenantsDatabase,
    TenantsFile,
    TextColumn,
    check_folder,
    check_level,
    check_new,
    load_ring,
    open_encoder,
    read_corpus,
    read_tenants,
)
from regionmarker.cli.output import banner, print_list, print_result, stderr
from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.corpus import TextSet
    from regionmarker.keys.files import KeyRing
    from regionmarker.verification.tracing import Trace
    from regionmarker.verification.verdict import OtherKey, Verdict

FOUND_INFRINGEMENT = 1


def verify(
    key: KeyPath,
    suspect: Suspect,
    suspect_name: SuspectName = None,
    key_id: KeyId = None,
    budget: Budget = None,
    level: Annotated[float | None, typer.Option(help="False-positive rate; default: the key's own.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Own probe texts instead of the key's reservoir.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="The clean encoder, for own probes; checked against the key.")
    ] = None,
    text_column: TextColumn = None,
    embedding_column: EmbeddingColumn = None,
    power: Annotated[bool, typer.Option(help="Estimate what this run would have caught.")] = True,
    cache: Annotated[
        Path | None, typer.Option(help="SQLite file that keeps the answers, so that none is asked twice.")
    ] = None,
    fresh: Fresh = False,
    out: Annotated[
        Path | None, typer.Option(help="Write evidence here: a directory with the verdict and a report.")
    ] = None,
    disclosure: Annotated[
        str | None,
        typer.Option(help="What the evidence shows: summary, expert or court; default: summary.", show_default=False),
    ] = None,
    archive: Annotated[bool, typer.Option("--zip", help="Also write the evidence as one file, OUT.zip.")] = False,
    tenant: TenantNames = None,
    tenants_file: TenantsFile = None,
    database: TenantsDatabase = None,
    dry_run: DryRun = False,
    price_per_million: Price = None,
    force: Force = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with code 1 when infringement is found.")
    ] = False,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Ask a suspect the questions of every key of the file, and judge its answers.

    With --database, or --tenant and --tenants-file, the verdict and its evidence also say which tenant's vectors were
    used, from the same answers.

    Example: regionmarker verify --key provider.rmkey --suspect https://api.example.com/v1#model
    """
    from regionmarker.evidence import Signer
    from regionmarker.evidence.save import check_before
    from regionmarker.evidence.statement import read_statement, statement_path
    from regionmarker.verification.judging import judge
    from regionmarker.verification.ledger import ledger_path, read_ledger
    from regionmarker.verification.questions import DEFAULT_BUDGET, merged_texts, plan_all, plan_questions
    from regionmarker.verification.quote import quote
    from regionmarker.verification.tracing import labels_of, trace_examined
    from regionmarker.verification.verdict import INFRINGEMENT

    check_price(price_per_million, dry_run=dry_run)
    check_names(suspect_name)
    check_level(level)
    if out is None:
        for option, given in {"--zip": archive, "--disclosure": disclosure is not None}.items():
            if given:
                raise InputError(f"{option} goes with --out, which writes the evidence")
    else:
        check_new(out, force)
        check_folder(out)
        if archive:
            check_new(out.with_name(f"{out.name}.zip"), force)
    shown = disclosure or "summary"
    ring = load_ring(key, secret_file, ask_passphrase, key_id)
    named, places = read_tenants(tenant, tenants_file, database)
    if named:
        for one in ring:
            labels_of(one, named)  # a key without marks for tenants says so before anything is asked
    if out is not None:
        check_before(ring.keys, shown, level)
    check_folder(ledger_path(key))
    read_ledger(ledger_path(key))  # one that is damaged says so before anything is asked
    probes = _own_probes(ring, corpus, encoder, text_column, embedding_column)
    if dry_run:
        usual = DEFAULT_BUDGET if budget is None else budget
        asked = merged_texts([plan_questions(one, usual, probes) for one in ring])
        most = {} if budget is not None else {"at_most": len(merged_texts([plan_all(one, probes) for one in ring]))}
        found = quote(suspect, asked, cache=cache, fresh=fresh)
        before: dict[str, object] = {"suspect": suspect, "keys": len(ring)}
        print_quote(found, price_per_million, as_json=json, before=before, **most)
        return
    signer = None if out is None else Signer.beside(key)
    statement = read_statement(statement_path(key)) if out is not None else {}
    answers = ask_suspect(ring, suspect, budget, probes=probes, cache=cache, fresh=fresh, name=suspect_name, quiet=json)
    verdict = judge(ring, answers, probes=probes, level=level, ledger=ledger_path(key), power=power)
    traces: list[Trace] = []
    if named and verdict.basis is not None:
        traces = trace_examined(verdict.basis.key, verdict.basis.examination, named, level=verdict.level)
    if out is not None:
        verdict.save(
            out,
            level=shown,
            signer=signer,
            archive=archive,
            traces=traces,
            places=places,
            overwrite=force,
            statement=statement if verdict.basis and verdict.basis.key.salt else {},
        )
    _show(verdict, traces, out, reused=answers.reused, as_json=json)
    if out is not None:
        stderr.print(f"\nevidence ({shown}): {out}{f', packed as {out}.zip' if archive else ''}")
    if exit_code and verdict.outcome == INFRINGEMENT:
        raise typer.Exit(FOUND_INFRINGEMENT)


def _own_probes(
    ring: KeyRing, corpus: Path | None, encoder: str | None, text_column: str | None, embedding_column: str | None
) -> TextSet | None:
    if corpus is None:
        given = {"--encoder": encoder, "--text-column": text_column, "--embedding-column": embedding_column}
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} goes with --corpus: the key's own probes need none")
        return None
    from regionmarker.corpus import TextSet
    from regionmarker.verification.judging import check_encoder, check_own_probes

    clean = open_encoder(encoder)
    if clean is not None:
        for key in ring:
            check_encoder(key, clean)
    found = TextSet.of_blocks(read_corpus(corpus, clean, text_column, embedding_column))
    check_own_probes(ring.keys, found)  # before anyone is asked
    return found


def _show(verdict: Verdict, traces: list[Trace], out: Path | None, *, reused: int, as_json: bool) -> None:
    from regionmarker.evidence.report import outcome_sentence
    from regionmarker.verification.tracing import finding

    said = {"tenants": finding(traces, verdict.level)} if traces else {}
    if as_json:
        accused = {"accused": [row.tenant for row in traces if row.accused]} if traces else {}
        print_result({**verdict.to_dict(), "reused": reused, **said, **accused}, as_json=True)
        return
    banner(verdict.outcome, outcome_sentence(verdict.to_dict()))
    if traces:
        banner_traces(traces, said["tenants"])
    power = verdict.power
    if power is None:
        caught = "not estimated"
    else:
        least = "nothing" if power.caught is None else f"fidelity {power.caught} and above"
        rotated = ", as if rotated" if power.axes == "unknown" else ""
        caught = f"{least} (at least 90 % of simulated copies{rotated})"
    print_result(
        {
            "outcome": verdict.outcome,
            "p_value": f"{verdict.p_value:.3g}",
            "judged_at": f"{verdict.judged_at:.3g} ({_correction(verdict)})",
            "suspect": verdict.suspect,
            "key_id": verdict.key_id,
            **({"other_keys": [_other(one) for one in verdict.other_keys]} if verdict.other_keys else {}),
            "asked": f"{verdict.asked.queries} texts, about {verdict.asked.tokens} tokens",
            "would_have_caught": caught,
        },
        as_json=False,
        title="\nVerdict",
    )
    print_result(
        {
            "delta_cos": f"{verdict.paper.delta_cos:.4f}",
            "delta_l2": f"{verdict.paper.delta_l2:.4f}",
            "KS p": f"{verdict.paper.p_value:.3g}",
            "its decision": "copy" if verdict.paper.copy else "no copy",
        },
        as_json=False,
        title="\nThe paper's statistics (they convict innocent models too; see docs/why/verdict.md)",
    )
    for note in verdict.notes:
        stderr.print(f"\nNote: {note}.")
    print_list("Next", _next_steps(verdict, traces, out))


def _next_steps(verdict: Verdict, traces: list[Trace], out: Path | None) -> list[str]:
    from regionmarker.verification.verdict import INCONCLUSIVE, INFRINGEMENT

    if out is not None:
        return [f"Open {out}/report.html.", f"See what others can check: regionmarker evidence check {out}"]
    steps = ["Ask more texts: --budget, or own ones with --corpus."] if verdict.outcome == INCONCLUSIVE else []
    if verdict.outcome == INFRINGEMENT:
        steps.append("Write evidence that others can check: the same with --out evidence.")
        if not traces:
            steps.append("Find out who leaked: the same with --database, or with --tenants-file.")
    return steps


def _correction(verdict: Verdict) -> str:
    keys = f", {1 + len(verdict.other_keys)} keys" if verdict.other_keys else ""
    return f"level {verdict.level:.3g}, look {verdict.look} with this key{keys}"


def _other(other: OtherKey) -> str:
    found = " infringement," if other.infringement else ""
    return f"{other.key_id}:{found} p {other.p_value:.3g}, corrected {other.holm:.3g}"
