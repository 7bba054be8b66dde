"""What can be checked with the opened key: everything, again from the committed bytes and the suspect's answers.

Other processors and libraries round differently, so the scores are compared within a tolerance; the p-value is that of
the stored scores, whose digest was fixed before a target was looked up, and the one from scratch is printed beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.evidence.bundle import COURT, Bundle, need
from regionmarker.evidence.check_expert import stored_answers, stored_scores
from regionmarker.evidence.check_summary import CheckRow
from regionmarker.evidence.disclosure import OPENED, coarse, cosines, probe_map
from regionmarker.evidence.fields import OWN_PROBES, PROBES
from regionmarker.evidence.score_forms import POOL, SCORES, VERDICT
from regionmarker.evidence.traces import TRACES, check_assignments, stored_traces
from regionmarker.keys.commitment import COMMITMENT, OpenedParts, blinding, commit
from regionmarker.keys.key import Key
from regionmarker.marks.graded import carriers_planes
from regionmarker.marks.regions import RegionMark, draw_regions
from regionmarker.verification.answers import Answers
from regionmarker.verification.examination import Examination, laid_out
from regionmarker.verification.graded_examination import GradedExamination
from regionmarker.verification.judging import check_own_probes, inputs_digest, unasked_of
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.questions import DEFAULT_BUDGET, plan_questions, regroup
from regionmarker.verification.tracing import trace
from regionmarker.verification.verdict import outcome_of

TOLERANCE = 0.01
"""How far scores may differ between processors, in standard deviations over the pool; measured: 1e-5."""
_MOST_SUMMED = 8  # a total adds up a few scores, each rounded to a step


def _opened_key(bundle: Bundle) -> Key:
    """Make the key again from the opened commitment."""
    document = bundle.json(COMMITMENT)
    opened = OpenedParts.read(document, bundle.files, OPENED[COURT])
    key = opened.key(bytes.fromhex(document["salt"]))
    for part, blind in opened.blindings.items():
        need(
            blind == blinding(key, part), f"{COMMITMENT}: the blinding of {part!r} does not come from the master secret"
        )
    return key


def _key(bundle: Bundle) -> str:
    key, named = _opened_key(bundle), bundle.json(VERDICT)["key_id"]
    need(
        commit(key) == bundle.json(COMMITMENT)["commitment"], f"{COMMITMENT}: the opened parts make another commitment"
    )
    need(key.id == named, f"{COMMITMENT}: the master secret is not that of key {named}")
    return f"the opened parts make key {key.id} and its commitment"


def _draw(bundle: Bundle) -> str:
    """Regions, carriers and targets are what the master secret draws: nobody picked them."""
    key = _opened_key(bundle)
    mark = key.mark
    if isinstance(mark, RegionMark):
        drawn = draw_regions(key.master, mark.shares, len(mark.regions), len(mark.tenant_regions))
        right = drawn == (mark.regions, mark.tenant_regions)
    else:
        right = np.array_equal(mark.planes_of, carriers_planes(key.master, mark.settings))
    need(right, f"{COMMITMENT}: the regions or carriers are not those that the master draws")
    targets = stored_scores(bundle)[1]
    need(key.provider_targets() == targets, f"{POOL}: the targets are not those that the master and the salt draw")
    rows = bundle.lines(POOL)
    need([row["text"] for row in rows] == list(key.pool.texts[: len(rows)]), f"{POOL} does not hold the committed pool")
    return "all choices are drawn from the master secret" + (" and the salt" if key.salt else "; no salt")


def _from_scratch(bundle: Bundle) -> str:
    key, answers, own = _opened_key(bundle), stored_answers(bundle), _own_probes(bundle)
    # Not refused where pool answers are missing, as 0.1.0 allowed: the p-value's check says what that is worth.
    if own is not None:
        check_own_probes((key,), own)
    examination = laid_out(key, regroup(key, answers.texts, own), answers.lookup)
    _check_groups(examination, bundle.lines(PROBES))
    z, again = stored_scores(bundle)[0], examination.scores()
    need(z.shape == again.shape, f"{POOL}: there are other scores than the answers give")
    need(bool((np.isnan(z) == np.isnan(again)).all()), f"{POOL}: other answers are missing than the scores say")
    apart = float(np.nanmax(np.abs(z - again)))
    need(apart <= TOLERANCE, f"{POOL}: the scores differ by {apart:.2g} from those that the answers give")
    test = examination.test(again)
    if isinstance(test, ListTest):
        same = np.allclose(bundle.json(SCORES)["weights"], test.weights)
        need(bool(same), f"{SCORES}: the weights are not the mark's")
    p_value = test.p_value(key.provider_targets())
    verdict = bundle.json(VERDICT)
    enough = verdict["power"] is None or verdict["power"]["enough"]
    again_outcome = outcome_of(p_value, verdict["judged_at"], enough=enough)
    need(
        again_outcome == verdict["outcome"],
        f"{VERDICT}: from scratch p is {p_value:g}, and the outcome {again_outcome!r}",
    )
    _check_facts(key, examination, answers, bundle)
    unasked = unasked_of(key, answers, own)
    right = bundle.is_first_format or verdict["unasked"] == unasked  # which had no such field
    need(right, f"{VERDICT}: {unasked} of the usual texts were not asked, not {verdict.get('unasked')}")
    end = _end_of_asking(key, answers, own, len(examination.questions))
    return f"scores agree within {apart:.1g}; p from scratch is {p_value:g}{end}"


def _check_facts(key: Key, examination: Examination, answers: Answers, bundle: Bundle) -> None:
    """See that axes, digest of the inputs, the paper's statistics and the picture's points are those of the answers."""
    verdict, scores, targets = bundle.json(VERDICT), bundle.json(SCORES), key.provider_targets()
    if not bundle.is_first_format:
        need(examination.axes == verdict["axes"], f"{VERDICT}: the axes are {examination.axes}")
        inputs = inputs_digest(key, examination.questions.asked, answers)
        right = inputs == verdict["inputs_digest"] or verdict["probes"] == "own"  # whose vectors were scaled since
        need(right, f"{VERDICT}: inputs_digest is not that of what was judged")
    found, stated = examination.paper(targets), verdict["paper"]
    need(found.target == stated["target"], f"{VERDICT}: the paper's targets are {found.target}, not {stated['target']}")
    rows = [[row[name] for name in ("delta_cos", "delta_l2", "p_value", "probes")] for row in stated["regions"]]
    again = [[one.delta_cos, one.delta_l2, one.p_value, one.probes] for one in found.regions]
    need(
        np.allclose(rows, again, rtol=1e-3, atol=1e-6),
        f"{VERDICT}: the paper's statistics are not what the answers give",
    )
    deciles = [coarse(curve).inside for curve in cosines(examination, targets, range(len(targets)))]
    need(
        np.allclose(scores["paper_deciles"], deciles, atol=0.015),
        f"{SCORES}: paper_deciles are not what the answers give",
    )
    observed = [score if score is not None else -(1 << 30) for score in scores["observed"]]
    points = probe_map(examination, observed)
    need(points.shown == scores.get("shown"), f"{SCORES}: another carrier is shown than the one that scored highest")
    plane = [row["plane"] for row in bundle.lines(PROBES)]
    need(np.allclose(plane, points.coordinates, atol=1e-3), f"{PROBES}: a probe lies elsewhere between the hyperplanes")


def _check_groups(examination: Examination, rows: list[dict[str, Any]]) -> None:
    """See that every probe lies where the bundle says."""
    texts = examination.questions.probes.texts
    if isinstance(examination, GradedExamination):
        found = dict(zip(texts, examination.fifths().tolist(), strict=True))
        stated = {row["text"]: row["fifths"] for row in rows}
    else:
        number_of = {region: number for number, region in enumerate(examination.regions, start=1)}
        found = {
            text: number_of.get(int(region), 0)
            for text, region in zip(texts, examination.questions.regions, strict=True)
        }
        stated = {row["text"]: row["region"] for row in rows}
    need(found == stated, f"{PROBES}: the groups are not those of the committed hyperplanes")


def _end_of_asking(key: Key, answers: Answers, own: TextSet | None, asked: int) -> str:
    """More than the usual number of texts are asked only where the answers to the usual ones call for it."""
    if isinstance(key.mark, RegionMark) or asked <= DEFAULT_BUDGET:
        return ""
    axes = laid_out(key, plan_questions(key, DEFAULT_BUDGET, own, seed=0), answers.lookup).axes
    need(
        axes == "unknown", f"{PROBES}: {asked} texts were asked, but after {DEFAULT_BUDGET} there was no cause for more"
    )
    return f"; {asked} texts were asked because the axes did not match in the first {DEFAULT_BUDGET}"


def _own_probes(bundle: Bundle) -> TextSet | None:
    if bundle.json(VERDICT)["probes"] != "own":
        return None
    clean = stored_answers(bundle, OWN_PROBES)
    return TextSet(clean.texts, clean.vectors)


def _traces(bundle: Bundle) -> str:
    document = stored_traces(bundle, float(bundle.json(VERDICT)["level"]))
    stated = document["tenants"]
    labels = {row["tenant"]: row["label"] for row in stated}
    ranking = trace(_opened_key(bundle), stored_answers(bundle), labels, probes=_own_probes(bundle))
    found = {row.tenant: row for row in ranking}
    for row in stated:
        again = found[row["tenant"]]
        # Rounding moves scores across steps, so tenants' p-values agree in size, not in every digit.
        same = np.isclose(np.log(row["p_value"]), np.log(again.p_value), atol=0.1)
        need(
            bool(same), f"{TRACES}: {row['tenant']} has p = {row['p_value']:g}, but the answers give {again.p_value:g}"
        )
        total = np.nan if row["total"] is None else row["total"]
        near = np.isclose(total, again.total, atol=TOLERANCE * 2 * _MOST_SUMMED, equal_nan=True)
        need(bool(near), f"{TRACES}: {row['tenant']} has U = {total:g}, but the answers give {again.total:g}")
        need(row["accused"] == again.accused, f"{TRACES}: from scratch {row['tenant']} is not accused as it says")
    return f"{len(stated)} tenants' p-values follow from the answers{check_assignments(document)}"


CHECKS = (
    CheckRow("opened key", COMMITMENT, _key, needed=True),
    CheckRow("draw", COMMITMENT, _draw),
    CheckRow("from scratch", POOL, _from_scratch),
    CheckRow("traces", TRACES, _traces, optional=True),
)
"""What a court checks besides what an expert can."""
