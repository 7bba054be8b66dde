"""What the verbs that ask share: what it would cost, a name for people, and which answers were there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.cli.output import banner, print_result, stderr
from regionmarker.errors import InputError

if TYPE_CHECKING:
    from regionmarker.corpus import TextSet
    from regionmarker.vectors import Encoder
    from regionmarker.verification.answers import Answers
    from regionmarker.verification.quote import Quote
    from regionmarker.verification.tracing import Trace

SuspectName = Annotated[
    str | None,
    typer.Option(
        "--suspect-name", help="What people call the suspect: evidence names it so, with its address.",
        show_default=False,
    ),
]  # fmt: skip
Fresh = Annotated[bool, typer.Option("--fresh", help="Ask again what was answered and kept before.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what asking would cost in texts, tokens, time; ask nothing.")
]
Price = Annotated[
    float | None,
    typer.Option(
        "--price-per-million", min=0.0, help="The price of a million tokens; the dry run then tells money, too.",
        show_default=False,
    ),
]  # fmt: skip


def check_price(price: float | None, *, dry_run: bool) -> None:
    """Refuse a price that nothing would be computed from."""
    if price is not None and not dry_run:
        raise InputError("--price-per-million goes with --dry-run")


def print_quote(
    found: Quote, price: float | None, *, as_json: bool, before: dict[str, object] | None = None, **more: object
) -> None:
    """Print what asking would cost; ``before`` and ``more`` stand around it."""
    money = {} if price is None else {"price": found.price(price)}
    if as_json:
        counted = {**vars(found), "sent": found.sent}
        print_result({**(before or {}), **counted, **money, **more}, as_json=True)
        return
    kept = f", {found.kept:,} of them answered before and kept" if found.kept else ""
    how = "as fast as it answered before" if found.measured else "a guess: one second for each request"
    facts: dict[str, object] = {
        **(before or {}),
        "texts": f"{found.queries:,}{kept}",
        "would_be_sent": f"{found.sent:,} texts in {found.requests:,} requests",
        "tokens": f"about {found.tokens:,} (one for four bytes)",
        "time": f"about {_duration(found.seconds)} ({how})",
        **({} if price is None else {"price": f"{found.price(price):.4g}, at {price:g} for a million tokens"}),
        **{name: f"{value:,}" if isinstance(value, int) else value for name, value in more.items()},
    }
    print_result(facts, as_json=False, title="What asking would cost; nothing was asked")


def ask_suspect(
    key: object,
    suspect: str,
    budget: int | None,
    *,
    probes: TextSet | None = None,
    cache: Path | None,
    fresh: bool,
    name: str | None,
    quiet: bool,
) -> Answers:
    """Ask a suspect a key's questions; say which answers were kept from before."""
    from regionmarker.verification.asking import ask

    started = datetime.now(UTC)
    answers = ask(key, suspect, budget, probes=probes, cache=cache, progress=not quiet, fresh=fresh)
    if answers.reused and not quiet:
        stderr.print(f"{_reuse(answers, started)}\n")
    return answers.called(name) if name else answers


def quote_corpus(
    path: Path,
    encoder: Encoder | None,
    text_column: str | None,
    chosen: Callable[[list[str]], Sequence[str]] = lambda texts: texts,
) -> Quote:
    """Say what it would cost to embed the texts of a corpus, or what is ``chosen`` of them."""
    from regionmarker.corpus import read_texts
    from regionmarker.verification.quote import quote_encoding

    if encoder is None:
        raise InputError("--dry-run goes with --encoder: reading an embedding column costs nothing")
    return quote_encoding(encoder, chosen(read_texts(path, text_column=text_column)))


def check_names(name: str | None) -> None:
    """Refuse an empty name."""
    if name is not None and not name.strip():
        raise InputError("--suspect-name is empty: leave it away, or give a name")


def banner_traces(ranking: Sequence[Trace], sentence: str) -> None:
    """Print whom the answers point to, so that nobody overlooks it."""
    count = sum(row.accused for row in ranking)
    word = "nobody named" if not count else "tenant named" if count == 1 else "tenants named"
    banner(word, sentence)


def _reuse(answers: Answers, started: datetime) -> str:
    before = sorted(one.time for one in answers.exchanges if datetime.fromisoformat(one.time) < started)
    times = list(dict.fromkeys(_minute(time) for time in before[:1] + before[-1:]))
    when = f" from {' to '.join(times)}" if times else ""
    new = len(answers) - answers.reused
    asked = "nothing was asked" if new == 0 else f"{new:,} were asked now"
    return f"{answers.reused:,} answers{when}, {asked}; --fresh asks again."


def _minute(time: str) -> str:
    return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _duration(seconds: float) -> str:
    """Say how long something takes.

    Examples
    --------
    >>> _duration(47), _duration(150), _duration(9000)
    ('47 seconds', '2.5 minutes', '2.5 hours')
    """
    for size, name in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {name}"
    return f"{seconds:.2g} seconds" if seconds < 10 else f"{seconds:.0f} seconds"
