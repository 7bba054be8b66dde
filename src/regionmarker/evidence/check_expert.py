"""The checks that need texts (*expert*) or the opened key (*court*).

At *court* everything is computed again from the committed bytes and the suspect's answers. Other processors and
libraries round differently, so the scores are compared within a tolerance; the p-value is that of the stored scores,
whose digest was fixed before a target was looked up, and the one from scratch is printed beside it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.evidence.bundle import COURT, Bundle
from regionmarker.evidence.disclosure import ANSWERS, OWN_PROBES, POOL, PROBES, SCORES, TRACES, TRANSCRIPT, VERDICT
from regionmarker.evidence.integrity import Check, attempt, need
from regionmarker.evidence.openings import COMMITMENT, Opened, check_commitment, key_from_parts
from regionmarker.keys.commitment import blinding, commit
from regionmarker.keys.key import Key
from regionmarker.marks.regions import draw_regions
from regionmarker.vectors import Doubles
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.examination import Examination, scores_digest
from regionmarker.verification.paper_statistics import paper_statistics
from regionmarker.verification.tracing import trace

TOLERANCE = 0.01
"""How far scores may differ between processors, in standard deviations over the pool; measured: 1e-5."""


def stored_answers(bundle: Bundle, name: str = ANSWERS) -> Answers:
    """Read the answers in a bundle."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(bundle.read(name))
        return Answers.from_file(path)


def expert_checks(bundle: Bundle) -> list[Check]:
    """Check scores, groups and answers against each other and against the verdict."""
    verdict = bundle.json(VERDICT)
    return [
        attempt("answers", ANSWERS, lambda: _answers(bundle, verdict)),
        attempt("transcript", TRANSCRIPT, lambda: _transcript(bundle)),
        attempt("scores", POOL, lambda: _scores(bundle, verdict)),
        attempt("the paper's statistics", PROBES, lambda: _paper(bundle, verdict)),
    ]


def _answers(bundle: Bundle, verdict: dict[str, Any]) -> str:
    answers = stored_answers(bundle)
    need(
        answers.digest == verdict["answers_digest"], f"{ANSWERS} does not hold the answers whose digest {VERDICT} names"
    )
    need(answers.missing == verdict["missing"], f"{VERDICT}: {verdict['missing']} missing answers are not the file's")
    asked = {row["text"] for name in (POOL, PROBES) for row in bundle.lines(name)}
    need(asked <= set(answers.texts), f"{ANSWERS} lacks texts of {POOL} or {PROBES}")
    need(len(asked) == verdict["asked"]["queries"], f"{VERDICT}: other texts were asked than {POOL} and {PROBES} hold")
    return f"{len(answers)} answers have the digest of the verdict"


def _transcript(bundle: Bundle) -> str:
    exchanges = stored_answers(bundle).exchanges
    need(
        bundle.lines(TRANSCRIPT) == [exchange.to_dict() for exchange in exchanges],
        f"{TRANSCRIPT} is not the transcript of {ANSWERS}",
    )
    return f"{len(exchanges)} exchanges are those of the answers"


def _scores(bundle: Bundle, verdict: dict[str, Any]) -> str:
    z, targets = stored_scores(bundle)
    need(
        scores_digest(z) == verdict["scores_digest"], f"{POOL} does not hold the scores whose digest the verdict names"
    )
    stated, test = bundle.json(SCORES), DecoyTest(z)
    lists = np.sort(test.steps, axis=1)[:, ::-1].tolist()
    need(lists == stated["lists"], f"{SCORES}: the lists are not the scores of {POOL}")
    if stated["null"] is not None:
        table = (stated["null"]["lowest"], stated["null"]["counts"])
        need(table == test.null_counts(), f"{SCORES}: the table is not that of {POOL}")
    total, p_value = float(test.totals(np.array([targets]))[0]), test.p_value(targets)
    stated_total = np.nan if verdict["total"] is None else float(verdict["total"])
    same = np.array_equal(total, stated_total, equal_nan=True)
    need(same, f"{VERDICT}: U is {stated_total:g}, but the targets in {POOL} give {total:g}")
    need(p_value == verdict["p_value"], f"{VERDICT}: p is {verdict['p_value']:g}, but {POOL} gives {p_value:g}")
    return f"U and p = {p_value:g} follow from the scores of {z.shape[1]} pool texts and the targets"


def stored_scores(bundle: Bundle) -> tuple[Doubles, tuple[int, ...]]:
    """Return z (R, M) and the places of the targets as a bundle states them."""
    rows = bundle.lines(POOL)
    regions = int(bundle.json(SCORES)["regions"])
    nothing = [np.nan] * regions
    z = np.array([nothing if row["z"] is None else row["z"] for row in rows], dtype=np.float64).T
    need([row["place"] for row in rows] == list(range(len(rows))), f"{POOL} is not in the order of the pool")
    named = sorted((row["target_of"], row["place"]) for row in rows if row["target_of"] is not None)
    need([region for region, _ in named] == list(range(1, regions + 1)), f"{POOL} does not name one target a region")
    return np.ascontiguousarray(z), tuple(place for _, place in named)


def _paper(bundle: Bundle, verdict: dict[str, Any]) -> str:
    stated, answers = verdict["paper"], stored_answers(bundle)
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
    need(found.copy == stated["copy"], f"{VERDICT}: the paper's decision is not what its statistics give")
    return f"recomputed from {len(rows)} probes in {len(targets)} regions and outside"


def court_checks(bundle: Bundle) -> list[Check]:
    """Make the key again from the opened commitment, and everything from it."""
    document, verdict = bundle.json(COMMITMENT), bundle.json(VERDICT)
    made: list[Key] = []

    def key() -> str:
        opened = check_commitment(bundle, document, COURT)
        made.append(_key(opened, bytes.fromhex(document["salt"])))
        need(commit(made[0]) == document["commitment"], f"{COMMITMENT}: the opened parts make another commitment")
        need(made[0].id == verdict["key_id"], f"{COMMITMENT}: the master secret is not that of key {verdict['key_id']}")
        return f"the opened parts make key {made[0].id} and its commitment"

    first = attempt("opened key", COMMITMENT, key)
    if not first.ok:
        return [first]
    return [
        first,
        attempt("draw", COMMITMENT, lambda: _draw(bundle, made[0])),
        attempt("from scratch", POOL, lambda: _from_scratch(bundle, made[0], verdict)),
        *([attempt("traces", TRACES, lambda: _traces(bundle, made[0], verdict))] if TRACES in bundle.files else []),
    ]


def _key(opened: Opened, salt: bytes) -> Key:
    key = key_from_parts(opened.contents, salt)
    for part, blind in opened.blindings.items():
        need(
            blind == blinding(key, part), f"{COMMITMENT}: the blinding of {part!r} does not come from the master secret"
        )
    return key


def _draw(bundle: Bundle, key: Key) -> str:
    """Regions and targets are what the master secret draws: nobody picked them."""
    drawn = draw_regions(key.master, key.mark.shares, len(key.mark.regions), len(key.mark.tenant_regions))
    need(
        drawn == (key.mark.regions, key.mark.tenant_regions),
        f"{COMMITMENT}: the regions are not those that the master draws",
    )
    targets = stored_scores(bundle)[1]
    need(key.provider_targets() == targets, f"{POOL}: the targets are not those that the master and the salt draw")
    texts = [row["text"] for row in bundle.lines(POOL)]
    need(texts == list(key.pool.texts), f"{POOL} does not hold the committed pool")
    return "regions and targets are drawn from the master secret" + (" and the salt" if key.salt else "; no salt")


def _from_scratch(bundle: Bundle, key: Key, verdict: dict[str, Any]) -> str:
    examination = Examination.of(key, stored_answers(bundle), _own_probes(bundle, verdict))
    questions = examination.questions
    groups = {region: number for number, region in enumerate(key.mark.regions, start=1)}
    found = {
        text: groups.get(int(cell), 0) for text, cell in zip(questions.probes.texts, questions.regions, strict=True)
    }
    stated = {row["text"]: row["region"] for row in bundle.lines(PROBES)}
    need(found == stated, f"{PROBES}: the groups are not those of the committed hyperplanes")
    z, again = stored_scores(bundle)[0], examination.scores()
    need(bool((np.isnan(z) == np.isnan(again)).all()), f"{POOL}: other answers are missing than the scores say")
    apart = float(np.nanmax(np.abs(z - again)))
    need(apart <= TOLERANCE, f"{POOL}: the scores differ by {apart:.2g} from those that the answers give")
    p_value = DecoyTest(again).p_value(key.provider_targets())
    return f"scores agree within {apart:.1g}; p from scratch is {p_value:g}"


def _own_probes(bundle: Bundle, verdict: dict[str, Any]) -> TextSet | None:
    if verdict["probes"] != "own":
        return None
    clean = stored_answers(bundle, OWN_PROBES)
    return TextSet(clean.texts, clean.vectors)


def _traces(bundle: Bundle, key: Key, verdict: dict[str, Any]) -> str:
    stated = bundle.json(TRACES)
    names = [row["tenant"] for row in stated]
    probes = _own_probes(bundle, verdict)
    found = {row.tenant: row.p_value for row in trace(key, stored_answers(bundle), names, probes=probes)}
    for row in stated:
        # Rounding moves scores across the grid's steps, so tenants' p-values agree in size, not in every digit.
        same = np.isclose(np.log(row["p_value"]), np.log(found[row["tenant"]]), atol=0.1)
        need(
            bool(same),
            f"{TRACES}: {row['tenant']} has p = {row['p_value']:g}, but the answers give {found[row['tenant']]:g}",
        )
    return f"{len(stated)} tenants' p-values follow from the answers"
