"""``regionmarker evidence``: check a bundle or a ledger offline, ask the suspect again, stamp a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from regionmarker.cli.asking import DryRun, Price, check_price, print_quote
from regionmarker.cli.options import Json, Suspect
from regionmarker.cli.output import banner, print_list, print_result, stderr
from regionmarker.terminal import plain

if TYPE_CHECKING:
    from regionmarker.evidence.check import CheckReport
    from regionmarker.evidence.replay import Replay

FAILED = 2
STATUS_COLOURS = {"ok": "green", "failed": "bold red", "absent": "yellow", "unexpected": "yellow"}
BundlePath = Annotated[Path, typer.Argument(help="The bundle: its directory, or its zip.", show_default=False)]

app = typer.Typer(
    no_args_is_help=True, help="Check a bundle of evidence offline, ask the suspect again, stamp it with the time."
)


@app.command()
def check(
    bundle: BundlePath,
    signer: Annotated[
        Path | None, typer.Option(help="Public key (PEM) that must have signed the bundle, as published elsewhere.")
    ] = None,
    authority: Annotated[
        list[Path] | None, typer.Option(help="Certificate (PEM) of the time-stamping authority; may be repeated.")
    ] = None,
    log_key: Annotated[
        Path | None, typer.Option(help="Public key (PEM) of the transparency log that must hold the statement.")
    ] = None,
    commitment: Annotated[
        str | None, typer.Option(help="The commitment that was published, in hexadecimal.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Recompute, offline and without the key, all that a bundle allows; name the rest as the claimant's word.

    Example: regionmarker evidence check evidence/ --signer published.pem
    """
    from regionmarker.evidence import check_evidence

    report = check_evidence(
        bundle,
        signer=_content(signer),
        authority=tuple(authority or ()),
        log_key=_content(log_key),
        commitment=None if commitment is None else commitment.strip().lower(),
    )
    if json:
        print_result(report.to_dict(), as_json=True)
    else:
        _show(report)
    if not report.ok:
        raise typer.Exit(FAILED)


@app.command()
def replay(
    bundle: BundlePath,
    suspect: Suspect,
    sample: Annotated[int, typer.Option(min=1, help="How many of the bundle's texts to ask.")] = 100,
    dry_run: DryRun = False,
    price_per_million: Price = None,
    json: Json = False,
) -> None:
    """Ask a suspect a random sample of the texts again and compare its answers with those in the bundle.

    Example: regionmarker evidence replay evidence/ --suspect https://api.example.com/v1#model
    """
    from regionmarker.evidence import replay_evidence
    from regionmarker.evidence.replay import draw_texts
    from regionmarker.verification.quote import quote

    check_price(price_per_million, dry_run=dry_run)
    if dry_run:
        texts = draw_texts(bundle, sample)[1]
        print_quote(quote(suspect, texts, cache=False), price_per_million, as_json=json, before={"suspect": suspect})
        return
    outcome = replay_evidence(bundle, suspect, sample=sample, progress=not json)
    if json:
        print_result(outcome.to_dict(), as_json=True)
    else:
        _show_replay(outcome)
    if not outcome.confirmed:
        raise typer.Exit(FAILED)


@app.command()
def ledger(
    path: Annotated[
        Path,
        typer.Argument(metavar="LEDGER", help="The ledger: KEY.ledger.jsonl beside the key file.", show_default=False),
    ],
    bundles: Annotated[
        list[Path] | None,
        typer.Argument(metavar="BUNDLE", help="Bundles that were made with it; each names where the ledger stood."),
    ] = None,
    json: Json = False,
) -> None:
    """See that no line of a ledger was removed or changed, and that bundles stand in it where they say.

    Example: regionmarker evidence ledger provider.rmkey.ledger.jsonl evidence/
    """
    from regionmarker.evidence import check_ledger

    report = check_ledger(path, bundles or ())
    if json:
        print_result(report.to_dict(), as_json=True)
        return
    looks = [f"{count} with key {key_id}" for key_id, count in report.looks.items()]
    stands = [f"{name} ends at line {line}" for name, line in report.bundles.items()]
    facts = {"lines": report.entries, "looks": looks, "head": report.head, **({"bundles": stands} if stands else {})}
    print_result(facts, as_json=False)
    typer.echo("\nEvery line follows from the one before it" + (", and every bundle stands in it." if stands else "."))


@app.command()
def stamp(
    bundle: Annotated[
        Path, typer.Argument(help="A bundle, or the folder of a statement (key commit --delay).", show_default=False)
    ],
    response: Annotated[
        Path | None, typer.Option(help="The authority's answer to the request, to be put into the folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a time-stamp request (RFC 3161) into a folder, or put the authority's answer there; sends nothing.

    Example: regionmarker evidence stamp evidence/ --response answer.tsr
    """
    from regionmarker.evidence.timestamp import attach_response, write_request

    if response is not None:
        print_result({"bundle": str(bundle), "time": attach_response(bundle, response)}, as_json=json)
        return
    request = write_request(bundle)
    print_result({"bundle": str(bundle), "request": str(request)}, as_json=json)
    if not json:
        steps = [  # commands, which must not be broken
            "Send it to a time-stamping authority: curl -H 'Content-Type: application/timestamp-query' --data-binary "
            f"@{request} -o answer.tsr URL",
            f"Put its answer into the folder: regionmarker evidence stamp {bundle} --response answer.tsr",
        ]
        print_list("Next", steps)


def _content(path: Path | None) -> bytes | None:
    from regionmarker.files import read_bounded

    return None if path is None else read_bounded(path)


def _show(report: CheckReport) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if report.ok:
        sentence = f"All that this {report.level} bundle allows was recomputed, and holds: p = {report.p_value:.3g}."
        banner(report.outcome, sentence)
    else:
        banner("refused", f"This bundle does not hold, whatever it says: {report.failure}.")
    console.print("\nWhat was looked at", style="bold")
    for row in report.checks:
        line = Text(f"{row.status:>10}  ", style=STATUS_COLOURS[row.status])
        console.print(line.append(Text(plain(f"{row.name.capitalize()}: {row.detail}."), style="default")))
    print_list("Cautions", [f"{note[:1].upper()}{note[1:]}." for note in report.cautions])
    words: dict[str, list[str]] = {word.sentence: [] for word in report.words}
    for word in report.words:
        words[word.sentence].append(f"{word.file}{': ' + ', '.join(word.fields) if word.fields else ''}")
    told = [f"{sentence[:1].upper()}{sentence[1:]} ({'; '.join(where)})." for sentence, where in words.items()]
    print_list("The claimant's word: nothing in the bundle could contradict it", told)
    if report.ok:
        print_list("Next", _next_steps(report))
    else:
        stderr.print(f"regionmarker: {report.failure}")


def _next_steps(report: CheckReport) -> list[str]:
    status = {check.name: check.status for check in report.checks}
    steps = [f"Open {report.path}/report.html." if Path(report.path).is_dir() else "Unpack the zip, open report.html."]
    if status["signature"] != "ok":
        steps.append("Ask where the claimant published the signer's public key, and give it with --signer.")
    if status["draw of the salt"] != "ok":
        steps.append("Ask when the commitment was published, and what shows that the salt was not chosen.")
    if report.level == "summary":
        steps.append("Ask the claimant for an expert bundle, with which a neutral party can ask the suspect again.")
    else:
        steps.append(f"Ask the suspect again: regionmarker evidence replay {report.path} --suspect ADDRESS.")
    return steps


def _show_replay(outcome: Replay) -> None:
    banner("confirmed" if outcome.confirmed else "not confirmed", f"{outcome.sentence}.")
    facts = [
        f"{outcome.answered} of {outcome.sample} texts were answered; {outcome.same} answers are the stored ones.",
        f"The median cosine of new and stored answers is {outcome.median:g}, the lowest {outcome.lowest:g}.",
        f"The bundle names its suspect {outcome.recorded_suspect}.",
    ]
    print_list("What was found", facts)
    if outcome.confirmed:
        steps = ["This says that the answers are the suspect's. What they prove: regionmarker evidence check."]
    else:
        steps = ["Ask when the model was changed, and have it asked again by a neutral party."]
    print_list("Next", steps)
