"""The page for people, rendered again from the other files of a bundle, and compared.

The text of the page has to be the same wherever the same version wrote it. Pictures are compared where the same version
of the library drew them; otherwise, as the whole page of another version, they are the claimant's word.
"""

from __future__ import annotations

import re

import numpy as np

from regionmarker.errors import MissingExtraError
from regionmarker.evidence import report
from regionmarker.evidence.bundle import SUMMARY, Bundle, need, our_versions
from regionmarker.evidence.check_expert import stored_answers, stored_scores
from regionmarker.evidence.disclosure import Curve, Disclosure, ProbeMap
from regionmarker.evidence.fields import PROBES, REPORT, TRANSCRIPT
from regionmarker.evidence.score_forms import POOL, SCORES, VERDICT, form_of
from regionmarker.evidence.traces import TRACES
from regionmarker.keys.commitment import COMMITMENT

_PICTURE = re.compile(r"<svg .*?</svg>", re.DOTALL)


def is_ours(bundle: Bundle) -> bool:
    """Whether this very version wrote the bundle, by its own account, and can render its page again."""
    try:
        return bundle.written_by.get("regionmarker") == our_versions()["regionmarker"]
    except ModuleNotFoundError:  # no matplotlib
        return False


def pictures_are_ours(bundle: Bundle) -> bool:
    """Whether the pictures, too, can be drawn again to the last byte."""
    return is_ours(bundle) and bundle.written_by == our_versions() and _curves(bundle) is not None


def check_report(bundle: Bundle) -> str:
    """Compare the page with the one that the other files give."""
    page = bundle.read(REPORT).decode()
    if not is_ours(bundle):
        return "not rendered again: another version wrote it, or the extra 'report' is missing here"
    try:
        again = report.render_report(disclosed(bundle))
    except MissingExtraError:
        return "not rendered again: the extra 'report' is missing here"
    if page == again:
        return "rendered again from the other files: the same page"
    same = _PICTURE.sub("", page) == _PICTURE.sub("", again)
    need(same, f"{REPORT} does not say what the other files say")
    need(not pictures_are_ours(bundle), f"{REPORT}: a picture is not the one that the other files give")
    return "rendered again from the other files: the same text; the pictures were drawn by another version"


def disclosed(bundle: Bundle) -> Disclosure:
    """Return what a bundle shows, as it was when its page was rendered."""
    return Disclosure(
        name=bundle.disclosure,
        verdict=bundle.json(VERDICT),
        scores=bundle.json(SCORES),
        commitment=bundle.json(COMMITMENT),
        transcript=bundle.lines(TRANSCRIPT),
        traces=bundle.json(TRACES) if TRACES in bundle.files else None,
        curves=_curves(bundle) or [Curve(np.zeros(11), None)] * len(bundle.json(SCORES)["lists"]),
        probe_map=None if bundle.disclosure == SUMMARY else _probe_map(bundle),
        files={},
    )


def _curves(bundle: Bundle) -> list[Curve] | None:
    """Return the curves of the paper's comparison; None where only the claimant has what they are made of."""
    verdict, scores = bundle.json(VERDICT), bundle.json(SCORES)
    if bundle.disclosure == SUMMARY or not form_of(verdict).asks_candidates:
        return [Curve(np.array(deciles), None) for deciles in scores["paper_deciles"]]
    return None if verdict["paper"]["target"] != "suspect" else suspect_curves(bundle)


def suspect_curves(bundle: Bundle) -> list[Curve]:
    """Return the cosines of probes to the suspect's own answers for the targets, inside and outside each region."""
    answers, rows, pool = stored_answers(bundle), bundle.lines(PROBES), bundle.lines(POOL)
    vectors = answers.lookup([row["text"] for row in rows])
    there = np.isfinite(vectors).all(axis=1)
    group = np.array([row["region"] for row in rows])
    goals = answers.lookup([pool[place]["text"] for place in stored_scores(bundle)[1]]).astype(np.float64)
    goals /= np.linalg.norm(goals, axis=1, keepdims=True)
    outside = vectors[there & (group == 0)]
    return [
        Curve(np.sort(vectors[there & (group == number)] @ goal), np.sort(outside @ goal))
        for number, goal in enumerate(goals, start=1)
    ]


def _probe_map(bundle: Bundle) -> ProbeMap:
    rows, scores = bundle.lines(PROBES), bundle.json(SCORES)
    name = "region" if form_of(bundle.json(VERDICT)).asks_candidates else "fifths"
    groups = np.array([row[name] for row in rows], dtype=np.int64)
    return ProbeMap(np.array([row["plane"] for row in rows]), groups, scores.get("shown"))
