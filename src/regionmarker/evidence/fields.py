"""What the files of a bundle hold, field by field, and how they are spelled.

A bundle has one spelling: a field that no bundle has, a number where a text belongs, a second value under the same name
or a blank more than there must be is refused, so that nothing stands in a bundle that nobody looks at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from regionmarker.evidence.bundle import (
    COURT,
    MANIFEST,
    SIGNER,
    SUMMARY,
    UNLISTED,
    Bundle,
    need,
    parsed,
    plain_json,
    plain_lines,
)
from regionmarker.evidence.score_forms import POOL, SCORES, VERDICT, form_of
from regionmarker.evidence.traces import TRACES
from regionmarker.keys.commitment import COMMITMENT

TRANSCRIPT, REPORT = "transcript.jsonl", "report.html"
PROBES, ANSWERS, OWN_PROBES = "probes.jsonl", "answers.parquet", "own-probes.parquet"
STATEMENT, STATEMENT_SIGNATURE, STATEMENT_REQUEST = "statement.json", "statement.sig", "statement.tsq"
STATEMENT_TOKEN, STATEMENT_LOG, ROUND = "statement.tsr", "statement-log.json", "beacon-round.json"


class Maybe(NamedTuple):
    """A shape, or null."""

    shape: Any


class Each(NamedTuple):
    """An object with any names, all of whose values have one shape."""

    shape: Any


HEX = re.compile(r"(?:[0-9a-f]{2})*")
TIME = datetime

_REGION = {"delta_cos": float, "delta_l2": float, "p_value": float, "probes": int}
_PAPER = {
    "cannot_say": str, "copy": bool, "delta_cos": float, "delta_l2": float, "p_value": float, "target": str,
    "regions": [_REGION],
}  # fmt: skip
_POWER_1 = {
    "fidelities": [float], "detected": [float], "caught": Maybe(float), "shadows": int, "texts": int,
    "wanted": float, "enough": bool,
}  # fmt: skip
_POWER = {
    **_POWER_1, "low": [float], "high": [float], "plain_fidelities": [float], "sets": int, "axes": Maybe(str),
}  # fmt: skip
_OTHER_KEY = {"key_id": HEX, "p_value": float, "look": int, "holm": float, "infringement": bool}
_VERDICT_1 = {
    "outcome": str, "p_value": float, "level": float, "judged_at": float, "look": int, "total": Maybe(float),
    "floor": float, "statistic": str, "suspect": str, "key_id": HEX, "created": TIME, "disclosure": str,
    "asked": {"queries": int, "characters": int, "tokens": int}, "missing": int, "scores_digest": HEX,
    "answers_digest": HEX, "paper": _PAPER, "power": Maybe(_POWER_1), "other_keys": [_OTHER_KEY], "notes": [str],
    "probes": str,
}  # fmt: skip
_VERDICT = {
    **_VERDICT_1, "inputs_digest": HEX, "axes": Maybe(str), "power": Maybe(_POWER), "unasked": int,
    "other_keys": [{**_OTHER_KEY, "inputs_digest": HEX}],
    "ledger": Maybe({"entries": int, "before": HEX, "head": HEX}),
}  # fmt: skip
_SCORES = {"step": float, "lists": [[int]], "paper_deciles": [[float]]}
_SCORES_OF = {
    "region": {
        **_SCORES, "pool": int, "unanswered": int, "regions": int, "observed": [Maybe(int)],
        "null": Maybe({"lowest": int, "counts": [int]}),
    },
    "carrier": {
        **_SCORES, "carriers": int, "list": int, "weights": [float], "observed": [int], "shown": Maybe(int),
    },
}  # fmt: skip
_OPENED = {"blinding": HEX}
_COMMITMENT = {"scheme": str, "commitment": HEX, "key_id": HEX, "salt": HEX, "leaves": Each(HEX), "opened": Each(dict)}
_TRANSCRIPT = [{"number": int, "time": TIME, "count": int, "request": HEX, "response": HEX}]
_TRACES_1 = [{"accused": bool, "holm": float, "p_value": float, "tenant": str, "total": float}]
_TENANT = {
    "accused": bool, "holm": float, "p_value": float, "tenant": Maybe(str), "label": Maybe(str), "total": Maybe(float),
}  # fmt: skip
_ASSIGNMENT = {"number": int, "tenant": str, "label": str, "assigned": TIME, "nonce": HEX, "digest": HEX}
_TRACES = {"level": float, "tenants": [_TENANT], "places": Maybe({"count": int, "digest": HEX})}
_PLACE = {"place": int, "text": str, "target_of": Maybe(int)}
_POOL_OF = {"region": [{**_PLACE, "z": Maybe([float])}], "carrier": [{**_PLACE, "list": int, "z": float}]}
_PROBE = {"text": str, "plane": [float]}
_PROBES_OF = {"region": [{**_PROBE, "region": int}], "carrier": [{**_PROBE, "fifths": [int]}]}
_STATEMENT = {
    "format": str, "key_id": HEX, "scheme": str, "commitment": HEX, "signer": HEX, "log_key": str,
    "beacon": str, "delay": int,
}  # fmt: skip
_ROUND = {"round": int, "signature": HEX}


def written(name: str, document: Any) -> bytes:
    """Return a document as it stands in a bundle, in its one spelling."""
    if name == SCORES:  # a list per line: thousands of lines of one number help nobody
        lines = ",\n".join(
            f" {json.dumps(key)}: {json.dumps(document[key], sort_keys=True)}" for key in sorted(document)
        )
        return f"{{\n{lines}\n}}\n".encode()
    return plain_lines(document) if name.endswith(".jsonl") else plain_json(document)


def check_shape(name: str, content: bytes, shape: Any = None) -> Any:
    """Return what a file holds; refuse fields that it has not, and other spellings than its own."""
    document = (
        [parsed(name, line) for line in content.splitlines()] if name.endswith(".jsonl") else parsed(name, content)
    )
    misfit = next(_misfits(document, _STATEMENT if shape is None else shape, ""), None)
    need(misfit is None, f"{name}: {misfit}")
    try:
        spelled = written(name, document)
    except UnicodeEncodeError:  # half of a letter, which JSON can name and no file can hold
        spelled = b""
    need(spelled == content, f"{name} is not spelled as a bundle is")
    return document


def check_fields(bundle: Bundle) -> str:
    """Refuse files that do not belong to the level, fields that no bundle has, and other spellings."""
    shapes = _shapes(bundle)
    for name, shape in shapes.items():
        check_shape(name, bundle.read(name), shape)
    _check_opened(bundle)
    strange = sorted(set(bundle.files) - _names(bundle, set(shapes)))
    need(not strange, f"{', '.join(strange)}: no {bundle.disclosure} bundle holds that")
    return f"{len(shapes)} files hold the fields of their format, and no others"


def _shapes(bundle: Bundle) -> dict[str, Any]:
    verdict, first = bundle.json(VERDICT), bundle.is_first_format
    need(isinstance(verdict, dict) and isinstance(verdict.get("statistic"), str), f"{VERDICT} names no statistic")
    group = form_of(verdict).group
    need(not first or group == "region", f"{MANIFEST}: bundles of the first format are of decoy-1 alone")
    shapes = {
        VERDICT: _VERDICT_1 if first else _VERDICT,
        SCORES: _SCORES_OF[group],
        COMMITMENT: _COMMITMENT,
        TRANSCRIPT: _TRANSCRIPT,
    }
    if bundle.disclosure != SUMMARY:
        shapes |= {POOL: _POOL_OF[group], PROBES: _PROBES_OF[group]}
    optional: dict[str, Any] = {TRACES: _TRACES_1} if first else {STATEMENT: _STATEMENT, ROUND: _ROUND}
    if TRACES in bundle.files and not first:
        assigned = bundle.disclosure == COURT and "assignments" in bundle.json(TRACES)
        optional[TRACES] = {**_TRACES, "assignments": [_ASSIGNMENT]} if assigned else _TRACES
    return shapes | {name: shape for name, shape in optional.items() if name in bundle.files}


def _names(bundle: Bundle, described: set[str]) -> set[str]:
    """Return the names of all files that a bundle of this level may hold."""
    opened = bundle.json(COMMITMENT)["opened"].values()
    names = {*described, *UNLISTED, SIGNER, REPORT, *(part["file"] for part in opened if "file" in part)}
    if bundle.disclosure != SUMMARY:
        names.add(ANSWERS)
    if bundle.disclosure == COURT and bundle.json(VERDICT)["probes"] == "own":
        names.add(OWN_PROBES)
    if STATEMENT in described:
        names |= {STATEMENT_SIGNATURE, STATEMENT_TOKEN, STATEMENT_LOG}
    return names


def _check_opened(bundle: Bundle) -> None:
    for part, shown in bundle.json(COMMITMENT)["opened"].items():
        where = {"content": HEX} if "content" in shown else {"file": str}
        misfit = next(_misfits(shown, {**_OPENED, **where}, f"opened.{part}"), None)
        need(misfit is None, f"{COMMITMENT}: {misfit}")
        need(shown.get("file") in (None, f"opened-{part}.bin"), f"{COMMITMENT}: opened.{part}.file has another name")


def _misfits(value: Any, shape: Any, path: str) -> Iterator[str]:
    """Yield what does not fit, by its place."""
    if isinstance(shape, Maybe):
        if value is not None:
            yield from _misfits(value, shape.shape, path)
    elif isinstance(shape, list):
        if type(value) is not list:
            yield f"{path or 'it'} is not a list"
            return
        for number, item in enumerate(value):
            yield from _misfits(item, shape[0], f"{path}[{number}]")
    elif isinstance(shape, Mapping | Each):
        yield from _object_misfits(value, shape, path)
    elif isinstance(shape, re.Pattern):
        if type(value) is not str or shape.fullmatch(value) is None:
            yield f"{path} is not written in hexadecimal digits"
    elif shape is TIME:
        if not _is_time(value):
            yield f"{path} is not a time"
    elif type(value) is not shape:  # True is no number, and 1 is not 1.0
        yield f"{path} is {value!r:.40}, which is not of its kind ({shape.__name__})"


def _object_misfits(value: Any, shape: Mapping[str, Any] | Each, path: str) -> Iterator[str]:
    if type(value) is not dict:
        yield f"{path or 'it'} is not an object"
        return
    if isinstance(shape, Mapping):
        for name in sorted(set(value) ^ set(shape)):
            yield f"{path + '.' if path else ''}{name} " + (
                "is missing" if name in shape else "is a field of no bundle"
            )
    for name, item in value.items():
        within = shape.shape if isinstance(shape, Each) else shape.get(name)
        if within is not None:
            yield from _misfits(item, within, f"{path}.{name}" if path else name)


def _is_time(value: Any) -> bool:
    try:
        return type(value) is str and bool(datetime.fromisoformat(value).astimezone(UTC))
    except (ValueError, OverflowError):
        return False
