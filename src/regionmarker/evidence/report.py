"""The page for people: everything a level shows, in plain words, with pictures.

One file without scripts that asks nobody for anything, reads the same on paper, and is the same for the same evidence.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from regionmarker._version import __version__
from regionmarker.errors import MissingExtraError
from regionmarker.evidence.bundle import SUMMARY
from regionmarker.evidence.disclosure import Disclosure
from regionmarker.evidence.score_forms import form_of
from regionmarker.terminal import plain
from regionmarker.verification.paper_statistics import CANNOT_SAY
from regionmarker.verification.tracing import Trace, finding
from regionmarker.verification.verdict import INCONCLUSIVE, INFRINGEMENT, NO_EVIDENCE

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TIMES = "\N{NO-BREAK SPACE}\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}"
_SHOWN_TRACES = 20


def check_report_extra() -> None:
    """Say which extra is missing where the page could not be rendered."""
    for module in ("jinja2", "matplotlib"):
        if find_spec(module) is None:
            raise MissingExtraError.for_module(module, "report")


def render_report(shown: Disclosure) -> str:
    """Return the report as one HTML page."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError.for_module("jinja2", "report") from None
    from regionmarker.evidence import charts

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_harmless
    )
    environment.filters |= {"number": number, "signed": signed, "moment": moment}
    scores, power = shown.scores, shown.verdict["power"]
    form = form_of(shown.verdict)
    graded = not form.asks_candidates
    names = group_names(len(scores["lists"]), shown.name, form.group)
    pictures = {
        "null": charts.null_distribution(form, scores),
        "ranks": charts.list_scores(scores) if graded else charts.pool_ranks(scores, names),
        "curves": None if graded else charts.paper_curves(shown.curves, names),
        "power": None if power is None else charts.power_curve(power),
        "probe_map": None if shown.probe_map is None else charts.probe_map(shown.probe_map, names),
    }
    page = environment.from_string(_template("report.html.jinja"))
    return page.render(
        shown=shown,
        v=shown.verdict,
        scores=scores,
        graded=graded,
        exact=graded or scores["null"] is not None,
        pool=0 if graded else scores["pool"] + scores["unanswered"],
        keys=1 + len(shown.verdict["other_keys"]),
        power=power,
        names=names,
        headline=HEADLINES[shown.verdict["outcome"]],
        sentence=outcome_sentence(shown.verdict),
        transcript=transcript_facts(shown.transcript),
        traces=shown.traces,
        tracing=None if shown.traces is None else tracing_sentence(shown.traces),
        shown_traces=_SHOWN_TRACES,
        cannot_say=CANNOT_SAY,
        style=Markup(_template("report.css")),  # noqa: S704 - our own file
        pictures={name: svg and Markup(svg) for name, svg in pictures.items()},  # noqa: S704 - drawn here
        version=__version__,
    )


def _harmless(value: object) -> object:
    """Return a stranger's text so that it cannot turn the reading order round; our own markup as it is."""
    return plain(value) if type(value) is str else value


HEADLINES = {
    INFRINGEMENT: "The suspect carries this key's mark",
    NO_EVIDENCE: "No evidence of this key's mark",
    INCONCLUSIVE: "This run cannot tell",
}


def outcome_sentence(verdict: dict[str, Any]) -> str:
    """Say the outcome so that nobody needs statistics to understand it, and nobody with statistics winces."""
    p_is = f"p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{number(verdict['p_value'])}"
    limit = number(verdict["judged_at"])
    chance = "a model that never met vectors marked with this key shows a result at least this strong "
    chance += odds(verdict["p_value"])
    if verdict["outcome"] == INFRINGEMENT:
        return (
            f"{verdict['suspect']} answers as a model does that was trained on vectors marked with this key: "
            f"{chance} ({p_is}), and the agreed limit is {limit}."
        )
    if verdict["outcome"] == INCONCLUSIVE:
        return (
            f"Nothing was found at {verdict['suspect']} ({p_is}, limit {limit}), but this run would have missed "
            "good copies too often for that to mean anything: ask more texts."
        )
    return (
        f"The answers of {verdict['suspect']} give no evidence that it was trained on vectors marked with this key: "
        f"{chance} ({p_is}), and the agreed limit is {limit}."
    )


def tracing_sentence(traces: dict[str, Any]) -> str:
    """Say whom the answers point to, in the words of :func:`regionmarker.verification.tracing.finding`."""
    ranking = [
        Trace(**{**row, "tenant": row["tenant"] or "", "label": row["label"] or ""}) for row in traces["tenants"]
    ]
    return finding(ranking, traces["level"])


def group_names(count: int, disclosure: str, group: str) -> list[str]:
    """Return what the report calls regions or carriers: letters where their order is not the key's, else numbers.

    Examples
    --------
    >>> group_names(2, "summary", "region"), group_names(2, "expert", "carrier")
    (['Region A', 'Region B'], ['Carrier 1', 'Carrier 2'])
    """
    labels = _LETTERS if disclosure == SUMMARY and count <= len(_LETTERS) else [str(n) for n in range(1, count + 1)]
    return [f"{group.capitalize()} {label}" for label in labels[:count]]


def transcript_facts(transcript: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many requests were made, and between when."""
    times = sorted(str(exchange["time"]) for exchange in transcript)
    return {
        "requests": len(transcript),
        "texts": sum(int(exchange["count"]) for exchange in transcript),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
    }


def number(value: float) -> str:
    """Write a number for people.

    Examples
    --------
    >>> print(number(0.2912), number(0.0005), number(1.0), number(3.14e-09).split())
    0.29 0.0005 1 ['3.1', '×', '10⁻⁹']
    """
    if value == 0 or abs(value) >= 1e-4:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}{_TIMES}10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def signed(value: float) -> str:
    """Write a difference with four digits and a real minus sign.

    Examples
    --------
    >>> signed(0.13597), signed(-0.5)
    ('0.1360', '−0.5000')
    """
    return f"{value:.4f}".replace("-", "\N{MINUS SIGN}")


def moment(time: str) -> str:
    """Write a moment for people, to the second.

    Examples
    --------
    >>> moment("2026-01-02T03:04:05.678+00:00")
    '2026-01-02 03:04:05 UTC'
    """
    return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def odds(value: float) -> str:
    """Say a probability in words.

    Examples
    --------
    >>> odds(0.29), odds(1 / 2500), odds(1e-9), odds(1e-30)
    ('29 times in 100', '4 times in 10,000', 'once in 1 billion', 'less than once in a thousand trillion')
    """
    if value >= 0.01:
        return f"{round(value * 100)} times in 100"
    if value >= 1e-4:
        return f"{value * 10000:.2g} times in 10,000"
    times = 1.0 / value
    if times >= 1e15:
        return "less than once in a thousand trillion"
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if round(times, 6) >= size:
            return f"once in {times / size:,.3g} {name}"
    return f"once in {times:,.0f}"


def _template(name: str) -> str:
    return files("regionmarker.evidence").joinpath("templates", name).read_text(encoding="utf-8")
