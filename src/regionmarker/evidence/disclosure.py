"""What each level of disclosure shows, and nothing else: the report is drawn from this, too.

=========  =============================================================================================================
summary    the scores of each region or carrier as a sorted list, U, p, digests. The suspect knows its own answers, so
           whatever would let it recognise a text is left out or made coarse: cosines become deciles, the paper's
           numbers get three digits, regions and carriers are ordered by their scores.
expert     also the texts with their groups and scores, the targets, the answers, and the probes in a plane of the
           secret space.
court      also every committed part, the master secret included. A key that was opened marks nothing any more.
=========  =============================================================================================================
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.errors import InputError
from regionmarker.evidence.bundle import COURT, EXPERT, SUMMARY
from regionmarker.evidence.fields import ANSWERS, OWN_PROBES, PROBES, TRANSCRIPT, written
from regionmarker.evidence.score_forms import FORMS, POOL, SCORES, VERDICT
from regionmarker.evidence.traces import TRACES, traces_document
from regionmarker.keys.commitment import COMMITMENT, open_parts
from regionmarker.keys.key import Key
from regionmarker.keys.places import Assignment
from regionmarker.vectors import Doubles, Integers
from regionmarker.verification.answers import Answers
from regionmarker.verification.examination import Examination
from regionmarker.verification.graded_examination import GradedExamination
from regionmarker.verification.tracing import Trace
from regionmarker.verification.verdict import DRAWS, Basis, Verdict

OPENED: dict[str, tuple[str, ...] | None] = {
    SUMMARY: ("statistic", "level"),
    EXPERT: ("statistic", "level", "encoder"),
    COURT: None,
}
"""The parts of the commitment that each level opens, None for all. At summary only what is no secret, so that nobody
can say that it was chosen afterwards."""
DECILES = np.linspace(0.0, 1.0, 11)


@dataclass(frozen=True, eq=False)
class Curve:
    """How close the probes of one region and those outside lie to the target: the paper's comparison.

    ``inside`` (and ``outside``) are cosines; at *summary* ``outside`` is None and ``inside`` the share of the region's
    probes below each decile of the outside ones, (11,).
    """

    inside: Doubles
    outside: Doubles | None


@dataclass(frozen=True, eq=False)
class ProbeMap:
    """The probes in two of the secret coordinates (m, 2), and what each shows there.

    ``groups`` says of the published mark which of the R regions a probe belongs to, 0 for none, (m,); of the graded
    mark which fifth of each carrier it lies in, 0 .. 4, (m, J), and ``shown`` is the carrier that the plane belongs to.
    """

    coordinates: Doubles
    groups: Integers
    shown: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Disclosure:
    """What a level shows: plain values for the report, and the files of the bundle."""

    name: str  # of the level
    verdict: dict[str, Any]
    scores: dict[str, Any]
    commitment: dict[str, Any]
    transcript: list[dict[str, Any]]
    traces: dict[str, Any] | None
    curves: list[Curve]
    probe_map: ProbeMap | None
    files: dict[str, bytes]


def disclose(
    verdict: Verdict,
    disclosure: str,
    traces: Sequence[Trace] = (),
    places: Sequence[Assignment] = (),
    *,
    draw: str | None = None,
) -> Disclosure:
    """Return what a level of disclosure shows of a verdict; TEST keys are refused.

    ``draw`` is what may be said of the draw of the targets where a statement shows more than the key does.
    """
    basis = _basis_of(verdict)
    form = FORMS[verdict.statistic]
    observed = form.observed(basis, verdict.scores)
    order = _order(observed) if disclosure == SUMMARY else list(range(len(observed)))
    curves = cosines(basis.examination, basis.targets, order)
    plain = _verdict(verdict, basis, order, disclosure)
    plain["notes"] = [draw if draw and note in DRAWS else note for note in plain["notes"]]
    scores = form.document(basis, [observed[place] for place in order], order)
    scores["paper_deciles"] = [coarse(curve).inside.tolist() for curve in curves]
    commitment, opened = open_parts(basis.key, OPENED[disclosure])
    transcript = [dict(exchange.to_dict()) for exchange in basis.answers.exchanges]
    ranking = traces_document(traces, places, verdict.level, disclosure) if traces else None
    points = None if disclosure == SUMMARY else probe_map(basis.examination, observed)
    if not form.asks_candidates:
        scores["shown"] = None if points is None else points.shown
    documents: dict[str, Any] = {VERDICT: plain, SCORES: scores, COMMITMENT: commitment, TRANSCRIPT: transcript}
    documents |= {TRACES: ranking} if ranking else {}
    files = {**{name: written(name, document) for name, document in documents.items()}, **opened}
    if points is not None:
        files |= _expert_files(verdict, basis, points)
    if disclosure == COURT and basis.probes is not None:
        asked = basis.examination.questions.probes
        files[OWN_PROBES] = _parquet(Answers("clean", asked.texts, asked.embeddings))
    curves = [coarse(curve) for curve in curves] if disclosure == SUMMARY else curves
    return Disclosure(disclosure, plain, scores, commitment, transcript, ranking, curves, points, files)


def _basis_of(verdict: Verdict) -> Basis:
    if verdict.basis is None:
        raise InputError("this verdict came without its key and answers: save evidence where it was judged")
    problem = why_no_evidence(verdict.basis.key, verdict.level)
    if problem is not None:
        raise InputError(problem)
    return verdict.basis


def why_no_evidence(key: Key, level: float) -> str | None:
    """Say why a key gives no evidence for a verdict at a level; None where it does."""
    if key.test:
        return "this is a TEST key (made with a fixed seed): anyone can make it again, so it gives no evidence"
    committed = key.settings.level
    if level != committed:
        return (
            f"this verdict is judged at level {level:g}, but the key is committed to {committed:g}: evidence "
            "is given at the committed level alone (leave --level away, or name one key of the ring with --key-id)"
        )
    return None


def _order(observed: list[int | None]) -> list[int]:
    """Return the regions by the score of their target, highest first: an order that says nothing of the key's."""
    scored = [np.inf if score is None else -score for score in observed]
    return sorted(range(len(observed)), key=lambda place: (scored[place], place))


def _verdict(verdict: Verdict, basis: Basis, order: list[int], disclosure: str) -> dict[str, Any]:
    plain: dict[str, Any] = dict(verdict.to_dict())
    plain["total"] = None if np.isnan(plain["total"]) else plain["total"]  # JSON has no NaN
    plain["disclosure"] = disclosure
    plain["probes"] = "reservoir" if basis.probes is None else "own"
    paper = dict(plain["paper"])
    regions = [dict(paper["regions"][place]) for place in order]
    if disclosure == SUMMARY:
        # At full length these would confirm to the suspect, who can compute cosines, a guess at the key.
        paper |= {name: _short(paper[name]) for name in ("delta_cos", "delta_l2", "p_value")}
        regions = [
            {name: value if name == "probes" else _short(value) for name, value in region.items()} for region in regions
        ]
    plain["paper"] = {**paper, "regions": regions}
    return plain


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def cosines(examination: Examination, targets: tuple[int, ...], order: Sequence[int]) -> list[Curve]:
    """Return how close the probes lie to each target, in an order of regions or carriers."""
    goals = examination.goals(targets)[0].astype(np.float64)
    goals /= np.linalg.norm(goals, axis=1, keepdims=True)
    found = []
    for place in order:
        inside, outside = examination.inside(place), examination.outside(place)
        found.append(Curve(np.sort(inside @ goals[place]), np.sort(outside @ goals[place])))
    return found


def coarse(curve: Curve) -> Curve:
    """Return a curve in deciles of the outside cosines, two digits: enough to see the paper's effect, and no more.

    Exact cosines would name the target and every probe of the region to a suspect who looks them up in its own answers.
    """
    edges = np.quantile(curve.outside, DECILES) if curve.outside is not None else DECILES
    edges[0], edges[-1] = -np.inf, np.inf
    below = np.searchsorted(curve.inside, edges, side="left") / max(len(curve.inside), 1)
    return Curve(np.round(below, 2), None)


def probe_map(examination: Examination, observed: Sequence[int | None]) -> ProbeMap:
    """Return the probes in two of the secret coordinates."""
    if isinstance(examination, GradedExamination):
        return _carrier_map(examination, observed)
    questions, regions = examination.questions, examination.regions
    pairs = list(combinations(range(questions.coordinates.shape[1]), 2))
    groups = np.zeros(len(questions.regions), dtype=np.int64)
    for number, region in enumerate(regions, start=1):
        groups[questions.regions == region] = number
    if not pairs:  # one hyperplane only
        flat = np.column_stack([questions.coordinates[:, 0], np.zeros(len(groups))])
        return ProbeMap(flat, groups)
    # The two coordinates in which the trigger regions fall into the most different quadrants.
    first, second = max(pairs, key=lambda pair: len({(r >> pair[0] & 1, r >> pair[1] & 1) for r in regions}))
    return ProbeMap(np.round(questions.coordinates[:, [first, second]], 4), groups)


def _carrier_map(examination: GradedExamination, observed: Sequence[int | None]) -> ProbeMap:
    """Return the probes between the two hyperplanes of the pair whose target scored highest."""
    mark, places = examination.mark, examination.mark.settings.places("provider")
    is_pair = mark.planes_of[places, 1] >= 0
    shown = int(np.argmax(np.where(is_pair, np.array(observed, dtype=np.float64), -np.inf)))
    u = mark.signed_distances(examination.questions.probes.embeddings)
    return ProbeMap(np.round(u[:, mark.planes_of[places[shown]]], 4), examination.fifths(), shown)


def _expert_files(verdict: Verdict, basis: Basis, probe_map: ProbeMap) -> dict[str, bytes]:
    questions = basis.examination.questions
    pool = FORMS[verdict.statistic].rows(verdict.scores, basis.key.pool.texts, basis.targets)
    group = "region" if probe_map.groups.ndim == 1 else "fifths"
    probes = [
        {"text": text, group: found.tolist(), "plane": point.tolist()}
        for text, found, point in zip(questions.probes.texts, probe_map.groups, probe_map.coordinates, strict=True)
    ]
    return {POOL: written(POOL, pool), PROBES: written(PROBES, probes), ANSWERS: _parquet(basis.answers)}


def _parquet(answers: Answers) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ANSWERS
        answers.to_parquet(path)
        return path.read_bytes()
