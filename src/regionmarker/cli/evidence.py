"""``regionmarker evidence``: check a bundle offline, ask the suspect again, stamp a bundle with the time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.cli.options import Json, Suspect
from regionmarker.cli.output import print_result, print_table, stderr
from regionmarker.errors import InputError
from regionmarker.terminal import plain

if TYPE_CHECKING:
    from regionmarker.evidence.check import CheckReport

FAILED = 2
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
    json: Json = False,
) -> None:
    """Recompute, offline and without the key, all that a bundle's level of disclosure allows.

    Example: regionmarker evidence check evidence/
    """
    from regionmarker.evidence import check_evidence

    if signer is not None and not signer.is_file():
        raise InputError(f"{signer} does not exist, or is not a file")
    report = check_evidence(
        bundle, signer=None if signer is None else signer.read_bytes(), authority=tuple(authority or ())
    )
    _show(report, as_json=json)
    if not report.ok:
        raise typer.Exit(FAILED)


@app.command()
def replay(
    bundle: BundlePath,
    suspect: Suspect,
    sample: Annotated[int, typer.Option(help="How many of the bundle's texts to ask.")] = 100,
    json: Json = False,
) -> None:
    """Ask a suspect a random sample of the texts again and compare its answers with those in the bundle.

    Example: regionmarker evidence replay evidence/ --suspect https://api.example.com/v1#model
    """
    from regionmarker.evidence import replay_evidence

    outcome = replay_evidence(bundle, suspect, sample=sample, progress=not json)
    print_result(outcome.to_dict(), as_json=json, title="Asked again")
    if not outcome.confirmed:
        if not json:
            stderr.print(f"regionmarker: {outcome.sentence}")
        raise typer.Exit(FAILED)


@app.command()
def stamp(
    bundle: BundlePath,
    response: Annotated[
        Path | None, typer.Option(help="The authority's answer to timestamp.tsq, to be put into the bundle.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a time-stamp request (RFC 3161) into a bundle, or put the authority's answer there; sends nothing.

    Example: regionmarker evidence stamp evidence/ --response answer.tsr
    """
    from regionmarker.evidence.timestamp import attach_response, write_request

    if response is not None:
        print_result({"bundle": str(bundle), "time": attach_response(bundle, response)}, as_json=json)
        return
    request = write_request(bundle)
    print_result({"bundle": str(bundle), "request": str(request)}, as_json=json)
    if not json:
        stderr.print(
            f"\nSend it to a time-stamping authority, then: regionmarker evidence stamp {bundle} --response ANSWER:\n"
            f"curl -H 'Content-Type: application/timestamp-query' --data-binary @{request} -o answer.tsr URL"
        )


def _show(report: CheckReport, *, as_json: bool) -> None:
    if as_json:
        print_result(report.to_dict(), as_json=True)
        return
    print_table((), [(row.name, "ok" if row.ok else "FAILED", row.detail) for row in report.checks])
    if report.ok:
        outcome = plain(report.outcome)
        typer.echo(f"\nAll checks of the level {report.level} passed: {outcome}, p = {report.p_value:.3g}.")
    else:
        stderr.print(f"regionmarker: {report.failure}")
