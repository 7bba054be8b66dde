"""``regionmarker verify``: judge a suspect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    TextColumn,
    check_new,
    load_ring,
    open_encoder,
    read_corpus,
)
from regionmarker.cli.output import print_result, stderr
from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.corpus import TextSet
    from regionmarker.keys.files import KeyRing
    from regionmarker.verification.verdict import OtherKey, Verdict

FOUND_INFRINGEMENT = 1


def verify(
    key: KeyPath,
    suspect: Suspect,
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
    out: Annotated[
        Path | None, typer.Option(help="Write evidence here: a directory with the verdict and a report.")
    ] = None,
    disclosure: Annotated[str, typer.Option(help="What the evidence shows: summary, expert or court.")] = "summary",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what asking would cost, and ask nothing.")] = False,
    force: Force = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with code 1 when infringement is found.")
    ] = False,
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
    json: Json = False,
) -> None:
    """Ask a suspect the questions of every key of the file, and judge its answers.

    Example: regionmarker verify --key provider.rmkey --suspect https://api.example.com/v1#model
    """
    from regionmarker.verification.asking import ask
    from regionmarker.verification.judging import judge
    from regionmarker.verification.ledger import ledger_path
    from regionmarker.verification.questions import DEFAULT_BUDGET, Cost, merged_texts, plan_all, plan_questions
    from regionmarker.verification.verdict import INFRINGEMENT

    if out is not None:
        check_new(out, force)
    ring = load_ring(key, secret_file, ask_passphrase, key_id)
    probes = _own_probes(ring, corpus, encoder, text_column, embedding_column)
    if dry_run:
        asked = merged_texts([plan_questions(one, budget or DEFAULT_BUDGET, probes) for one in ring])
        most = {} if budget is not None else {"at_most": len(merged_texts([plan_all(one, probes) for one in ring]))}
        print_result({"suspect": suspect, "keys": len(ring), **vars(Cost.of(asked)), **most}, as_json=json)
        return
    answers = ask(ring, suspect, budget, probes=probes, cache=cache, progress=not json)
    verdict = judge(ring, answers, probes=probes, level=level, ledger=ledger_path(key), power=power)
    if out is not None:
        _save(verdict, out, disclosure, key, overwrite=force)
    _show(verdict, as_json=json)
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
    from regionmarker.verification.judging import check_encoder

    clean = open_encoder(encoder)
    if clean is not None:
        for key in ring:
            check_encoder(key, clean)
    return TextSet.of_blocks(read_corpus(corpus, clean, text_column, embedding_column))


def _save(verdict: Verdict, out: Path, disclosure: str, key: Path, *, overwrite: bool) -> None:
    """Write the evidence, signed with the signer that lies beside the key."""
    from regionmarker.evidence import Signer

    verdict.save(out, level=disclosure, signer=Signer.beside(key), overwrite=overwrite)
    stderr.print(f"evidence ({disclosure}): {out}")


def _show(verdict: Verdict, *, as_json: bool) -> None:
    if as_json:
        print_result(verdict.to_dict(), as_json=True)
        return
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
        title="Verdict",
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


def _correction(verdict: Verdict) -> str:
    keys = f", {1 + len(verdict.other_keys)} keys" if verdict.other_keys else ""
    return f"level {verdict.level:.3g}, look {verdict.look} with this key{keys}"


def _other(other: OtherKey) -> str:
    found = " infringement," if other.infringement else ""
    return f"{other.key_id}:{found} p {other.p_value:.3g}, corrected {other.holm:.3g}"
