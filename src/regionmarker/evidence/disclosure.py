"""What each level of disclosure shows, and nothing else: the report is drawn from this, too.

=========  =============================================================================================================
summary    the scores of each region as a sorted list, the table of all tuples' sums, U, p, digests. The suspect knows
           its own answers, so whatever would let it recognise a text is left out or made coarse: cosines become
           deciles, the paper's numbers get three digits, regions are ordered by their scores.
expert     also the texts with their groups and scores, the targets, the answers, and the probes in a plane of the
           secret space.
court      also every committed part, the master secret included. A key that was opened marks nothing any more.
=========  =============================================================================================================
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.errors import InputError
from regionmarker.evidence.bundle import COURT, EXPERT, SUMMARY, plain_json, plain_lines
from regionmarker.keys.commitment import COMMITMENT, PARTS, open_parts
from regionmarker.vectors import Doubles, Integers
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoy_test import STEP, in_steps
from regionmarker.verification.examination import Examination
from regionmarker.verification.tracing import Trace
from regionmarker.verification.verdict import Basis, Verdict

VERDICT, SCORES, TRANSCRIPT = "verdict.json", "scores.json", "transcript.jsonl"
TRACES, REPORT = "traces.json", "report.html"
POOL, PROBES, ANSWERS, OWN_PROBES = "pool.jsonl", "probes.jsonl", "answers.parquet", "own-probes.parquet"
OPENED = {SUMMARY: ("statistic", "level"), EXPERT: ("statistic", "level", "encoder"), COURT: PARTS}
"""The parts of the commitment that each level opens. At summary only what is no secret, so that nobody can say that it
was chosen afterwards."""
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
    """The probes in two of the secret coordinates (m, 2), and which of the R regions each belongs to; 0 for none."""

    coordinates: Doubles
    groups: Integers


@dataclass(frozen=True, eq=False, repr=False)
class Disclosure:
    """What a level shows: plain values for the report, and the files of the bundle."""

    name: str  # of the level
    verdict: dict[str, Any]
    scores: dict[str, Any]
    commitment: dict[str, Any]
    transcript: list[dict[str, Any]]
    traces: list[dict[str, Any]]
    curves: list[Curve]
    probe_map: ProbeMap | None
    files: dict[str, bytes]


def disclose(verdict: Verdict, disclosure: str, traces: Sequence[Trace] = ()) -> Disclosure:
    """Return what a level of disclosure shows of a verdict; TEST keys are refused."""
    basis = _basis_of(verdict)
    observed = _observed(verdict, basis)
    order = _order(observed) if disclosure == SUMMARY else list(range(len(observed)))
    cosines = [_cosines(basis, place) for place in order]
    plain = _verdict(verdict, basis, order, disclosure)
    scores = _scores(basis, [observed[place] for place in order], order)
    scores["paper_deciles"] = [_coarse(curve).inside.tolist() for curve in cosines]
    commitment, opened = open_parts(basis.key, OPENED[disclosure])
    transcript = [dict(exchange.to_dict()) for exchange in basis.answers.exchanges]
    ranking = [asdict(trace) for trace in traces]
    files = {
        VERDICT: plain_json(plain),
        SCORES: _scores_json(scores),
        COMMITMENT: plain_json(commitment),
        TRANSCRIPT: plain_lines(transcript),
        **({TRACES: plain_json(ranking)} if ranking else {}),
        **opened,
    }
    probe_map = None if disclosure == SUMMARY else _probe_map(basis.examination)
    if probe_map is not None:
        files |= _expert_files(verdict, basis, probe_map)
    if disclosure == COURT and basis.probes is not None:
        asked = basis.examination.questions.probes
        files[OWN_PROBES] = _parquet(Answers("clean", asked.texts, asked.embeddings))
    curves = [_coarse(curve) for curve in cosines] if disclosure == SUMMARY else cosines
    return Disclosure(disclosure, plain, scores, commitment, transcript, ranking, curves, probe_map, files)


def _basis_of(verdict: Verdict) -> Basis:
    if verdict.basis is None:
        raise InputError("this verdict came without its key and answers: save evidence where it was judged")
    if verdict.basis.key.test:
        raise InputError(
            "this is a TEST key (made with a fixed seed): anyone can make it again, so it gives no evidence"
        )
    return verdict.basis


def _observed(verdict: Verdict, basis: Basis) -> list[int | None]:
    """Return the scores of the targets; None where the suspect did not answer one, which makes p = 1."""
    z = verdict.scores
    found = z[np.arange(len(z)), list(basis.targets)]  # (R,)
    return [None if np.isnan(score) else int(in_steps(np.array([score]))[0]) for score in found]


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


def _scores(basis: Basis, observed: list[int | None], order: list[int]) -> dict[str, Any]:
    """Return the scores in whole steps: sorted lists, the targets' own, the table of sums where p is exact."""
    test = basis.test
    table = test.null_counts()
    return {
        "step": STEP,
        "pool": test.pool_size,
        "unanswered": len(basis.key.pool) - test.pool_size,
        "regions": test.regions,
        "lists": np.sort(test.steps[order], axis=1)[:, ::-1].tolist(),
        "observed": observed,
        "null": None if table is None else {"lowest": table[0], "counts": table[1]},
    }


def _scores_json(scores: dict[str, Any]) -> bytes:
    """Return scores as JSON with one list per line: thousands of lines of one number help nobody."""
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(scores[name], sort_keys=True)}" for name in sorted(scores))
    return f"{{\n{lines}\n}}\n".encode()


def _cosines(basis: Basis, place: int) -> Curve:
    examination, target = basis.examination, basis.targets[place]
    goal = examination.pool_answers[target].astype(np.float64)
    if not np.isfinite(goal).all():
        goal = basis.key.pool.embeddings[target].astype(np.float64)
    goal = goal / np.linalg.norm(goal)
    inside, outside = examination.inside(examination.regions[place]), examination.outside()
    return Curve(np.sort(inside @ goal), np.sort(outside @ goal))


def _coarse(curve: Curve) -> Curve:
    """Return a curve in deciles of the outside cosines, two digits: enough to see the paper's effect, and no more.

    Exact cosines would name the target and every probe of the region to a suspect who looks them up in its own answers.
    """
    edges = np.quantile(curve.outside, DECILES) if curve.outside is not None else DECILES
    edges[0], edges[-1] = -np.inf, np.inf
    below = np.searchsorted(curve.inside, edges, side="left") / max(len(curve.inside), 1)
    return Curve(np.round(below, 2), None)


def _probe_map(examination: Examination) -> ProbeMap:
    """Return the probes in the two coordinates in which the trigger regions fall into the most different quadrants."""
    questions, regions = examination.questions, examination.regions
    pairs = list(combinations(range(questions.coordinates.shape[1]), 2))
    groups = np.zeros(len(questions.regions), dtype=np.int64)
    for number, region in enumerate(regions, start=1):
        groups[questions.regions == region] = number
    if not pairs:  # one hyperplane only
        flat = np.column_stack([questions.coordinates[:, 0], np.zeros(len(groups))])
        return ProbeMap(flat, groups)
    first, second = max(pairs, key=lambda pair: len({(r >> pair[0] & 1, r >> pair[1] & 1) for r in regions}))
    return ProbeMap(np.round(questions.coordinates[:, [first, second]], 4), groups)


def _expert_files(verdict: Verdict, basis: Basis, probe_map: ProbeMap) -> dict[str, bytes]:
    questions, z = basis.examination.questions, verdict.scores
    target_of = {place: region for region, place in enumerate(basis.targets, start=1)}
    pool = [
        {
            "place": place,
            "text": text,
            "z": None if np.isnan(z[0, place]) else z[:, place].tolist(),
            "target_of": target_of.get(place),
        }
        for place, text in enumerate(questions.pool.texts)
    ]
    probes = [
        {"text": text, "region": int(group), "plane": point.tolist()}
        for text, group, point in zip(questions.probes.texts, probe_map.groups, probe_map.coordinates, strict=True)
    ]
    return {POOL: plain_lines(pool), PROBES: plain_lines(probes), ANSWERS: _parquet(basis.answers)}


def _parquet(answers: Answers) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ANSWERS
        answers.to_parquet(path)
        return path.read_bytes()
