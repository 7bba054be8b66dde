"""What can be checked with the texts and the answers: scores and groups beside answers and verdict."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from regionmarker.encoders.cache import text_digest
from regionmarker.evidence.bundle import Bundle, need
from regionmarker.evidence.check_summary import CheckRow
from regionmarker.evidence.fields import ANSWERS, PROBES, TRANSCRIPT
from regionmarker.evidence.score_forms import POOL, SCORES, VERDICT, form_of
from regionmarker.vectors import Doubles
from regionmarker.verification.answers import Answers
from regionmarker.verification.examination import scores_digest
from regionmarker.verification.paper_statistics import paper_statistics
from regionmarker.verification.questions import Cost


def stored_answers(bundle: Bundle, name: str = ANSWERS) -> Answers:
    """Read the answers in a bundle."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(bundle.read(name))
        return Answers.from_file(path)


def _answers(bundle: Bundle) -> str:
    verdict, answers = bundle.json(VERDICT), stored_answers(bundle)
    need(
        answers.digest == verdict["answers_digest"], f"{ANSWERS} does not hold the answers whose digest {VERDICT} names"
    )
    need(answers.missing == verdict["missing"], f"{VERDICT}: {verdict['missing']} missing answers are not the file's")
    holders = (POOL, PROBES) if form_of(verdict).asks_candidates else (PROBES,)
    asked = {row["text"] for name in holders for row in bundle.lines(name)}
    named = " and ".join(holders)
    need(asked <= set(answers.texts), f"{ANSWERS} lacks texts of {named}")
    rows = sum(len(bundle.lines(name)) for name in holders)
    need(rows == len(asked), f"{named} hold a text twice")
    need(vars(Cost.of(sorted(asked))) == verdict["asked"], f"{VERDICT}: other texts were asked than {named} hold")
    need(answers.suspect == verdict["suspect"], f"{ANSWERS} holds the answers of another suspect than {VERDICT} names")
    return f"{len(answers)} answers have the digest of the verdict"


def _transcript(bundle: Bundle) -> str:
    exchanges = stored_answers(bundle).exchanges
    need(
        bundle.lines(TRANSCRIPT) == [exchange.to_dict() for exchange in exchanges],
        f"{TRANSCRIPT} is not the transcript of {ANSWERS}",
    )
    texts = {text_digest(text).hex() for text in stored_answers(bundle).texts}
    asked = {digest for exchange in exchanges for digest in exchange.asked}
    # A file of answers, or a request that was made for other keys as well, may hold more than this verdict needs. What
    # is left out of the usual questions is counted by the verdict, and a court counts it again.
    besides = len(asked - texts)
    judged = f"; {besides} other texts were asked in them and not judged" if besides else ""
    return f"{len(exchanges)} exchanges are those of the answers{judged}"


def _scores(bundle: Bundle) -> str:
    verdict = bundle.json(VERDICT)
    z, targets = stored_scores(bundle)
    need(
        scores_digest(z) == verdict["scores_digest"], f"{POOL} does not hold the scores whose digest the verdict names"
    )
    total, p_value = form_of(verdict).check_rows(z, targets, bundle.json(SCORES))
    stated_total = np.nan if verdict["total"] is None else float(verdict["total"])
    same = np.array_equal(total, stated_total, equal_nan=True)
    need(same, f"{VERDICT}: U is {stated_total:g}, but the targets in {POOL} give {total:g}")
    need(p_value == verdict["p_value"], f"{VERDICT}: p is {verdict['p_value']:g}, but {POOL} gives {p_value:g}")
    return f"U and p = {p_value:g} follow from the scores of {len(bundle.lines(POOL))} pool texts and the targets"


def stored_scores(bundle: Bundle) -> tuple[Doubles, tuple[int, ...]]:
    """Return z and the places of the targets as a bundle states them."""
    return form_of(bundle.json(VERDICT)).read_rows(bundle.lines(POOL), bundle.json(SCORES))


def _paper(bundle: Bundle) -> str:
    stated, answers = bundle.json(VERDICT)["paper"], stored_answers(bundle)
    if stated["target"] == "predicted":
        return "not recomputed: that needs clean vectors, which a court sees"
    if stated["target"] != "suspect":
        return "not recomputed: the suspect did not answer every target, so stored vectors were used"
    rows, pool = bundle.lines(PROBES), bundle.lines(POOL)
    vectors = answers.lookup([row["text"] for row in rows])
    there = np.isfinite(vectors).all(axis=1)
    group = np.array([row["region"] for row in rows])
    targets = answers.lookup([pool[place]["text"] for place in stored_scores(bundle)[1]])
    inside = [vectors[there & (group == region)] for region in range(1, len(targets) + 1)]
    outside = vectors[there & (group == 0)]
    need(all(map(len, [outside, *inside])), f"{PROBES}: a region has no probe, or there is none outside")
    found = paper_statistics(inside, outside, targets)
    for name in ("delta_cos", "delta_l2", "p_value"):
        same = np.isclose(getattr(found, name), stated[name], rtol=1e-6, atol=1e-12)
        need(
            bool(same),
            f"{VERDICT}: the paper's {name} is {stated[name]:g}, but the answers give {getattr(found, name):g}",
        )
    for number, (one, other) in enumerate(zip(found.regions, stated["regions"], strict=True), start=1):
        ours, theirs = ([float(row[name]) for name in sorted(row)] for row in (vars(one), other))
        same = np.allclose(ours, theirs, rtol=1e-6, atol=1e-12)
        need(bool(same), f"{VERDICT}: the paper's statistics of region {number} are not what the answers give")
    need(found.copy == stated["copy"], f"{VERDICT}: the paper's decision is not what its statistics give")
    return f"recomputed from {len(rows)} probes in {len(targets)} regions and outside"


CHECKS = (
    CheckRow("answers", ANSWERS, _answers),
    CheckRow("transcript", TRANSCRIPT, _transcript),
    CheckRow("scores", POOL, _scores),
    CheckRow("the paper's statistics", PROBES, _paper),
)
"""What an expert checks besides what a summary shows."""
