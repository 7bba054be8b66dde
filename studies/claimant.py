"""A dishonest claimant edits bundles of evidence and signs them again, and ``evidence check`` looks at every lie.

    python -m studies.claimant [--most N]

Every JSON field of every file is changed, dropped and added to, and every file is replaced, dropped and added, at each
level of disclosure, for both statistics; the page for people is rendered again to fit, and the result is signed with
the claimant's own key. The salt is a beacon's: the statement that says so is signed and put on a log again after every
edit of it. Each lie is refused, or stands where the output names it as the claimant's word. The checker
without our code looks at all of them, too, and must not contradict.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.fake_log import URL, FakeLog

from regionmarker import RegionMarker, load_encoder, python_sentences
from regionmarker.evidence import Signer, save_evidence
from regionmarker.evidence.beacon import BEACONS, randomness
from regionmarker.evidence.bundle import DISCLOSURES, Bundle, plain_json, read_bundle
from regionmarker.evidence.fields import ROUND, STATEMENT, STATEMENT_LOG, STATEMENT_SIGNATURE
from regionmarker.evidence.statement import statement_of
from regionmarker.evidence.transparency_log import put_on_log
from regionmarker.keys.key import Key
from regionmarker.verification.answers import Answers, Exchange, text_digest
from regionmarker.verification.judging import judge
from regionmarker.verification.questions import plan_questions
from regionmarker.verification.tracing import trace
from studies._forger import Edit, contradictions, edits, is_accepted_lie, sample, verdict_on_lie
from studies._study import Command, markdown

QUICKNET = BEACONS["drand-quicknet"]
ROUND_NUMBER = 657413
ROUND_SIGNATURE = bytes.fromhex(
    "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b"
)
LOG = FakeLog(time=QUICKNET.time_of(ROUND_NUMBER) - 3600, others=3)  # an hour before the round: the usual delay
PAGE = "docs/results/dishonest-claimants.md"
MARKS = {"decoy-1": {"pool": 128, "reservoir": 700}, "decoy-2": {}}


def main() -> None:
    command = Command(__doc__, PAGE, smoke={"most": 4, "texts": 1400})
    command.add_argument("--most", type=int, default=100_000, help="edits of one bundle at the most")
    command.add_argument("--statistic", choices=sorted(MARKS), help="only bundles of this one")
    command.add_argument("--texts", type=int, default=4000, help="texts that the keys are made from")
    given = command.read()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for statistic, settings in MARKS.items():
            if given.statistic not in (None, statistic):
                continue
            signer = Signer.generate()
            for level, place in bundles(statistic, settings, given.texts, signer, Path(folder)).items():
                rows.append(_attacked(statistic, level, read_bundle(place), signer, Path(folder) / "lie", given.most))
                print(rows[-1], flush=True)
    print(markdown(list(rows[0]), [[str(value) for value in row.values()] for row in rows]))


def bundles(statistic: str, settings: dict[str, int], texts: int, signer: Signer, folder: Path) -> dict[str, Path]:
    """Judge a copy of a tenant's vectors, and save the evidence at every level."""
    sentences = python_sentences(texts)
    clean = load_encoder("wordllama").encode(sentences)
    fitted = RegionMarker(seed=5, **settings).fit(sentences, embeddings=clean)
    unsalted = replace(fitted.key_, test=False)
    statement = stated(unsalted, signer)
    key = unsalted.with_salt(randomness(QUICKNET, ROUND_NUMBER, ROUND_SIGNATURE))
    row_of = {text: row for row, text in enumerate(sentences)}
    asked = plan_questions(key, 500 if "pool" in settings else 1000, seed=0).texts
    rows = RegionMarker.from_key(key).transform(clean[[row_of[text] for text in asked]], tenant="acme")
    rows = rows + 0.4 * np.random.default_rng(0).standard_normal(rows.shape) / np.sqrt(rows.shape[1])
    digests = tuple(text_digest(text).hex() for text in asked)
    exchange = Exchange(1, "2026-01-02T03:04:05+00:00", digests, "ab" * 32)
    answers = Answers("https://suspect.example/v1#m", asked, rows.astype(np.float32), (exchange,))
    verdict = judge(key, answers, ledger=folder / f"{statistic}.jsonl")
    traces = trace(key, answers, ["acme", "globex", "initech"])
    place = folder / statistic
    place.mkdir()
    given: dict[str, Any] = {"signer": signer, "traces": traces, "statement": statement}
    return {level: save_evidence(verdict, place / level, level=level, **given) for level in DISCLOSURES}


def stated(key: Key, signer: Signer) -> dict[str, bytes]:
    """Return a statement of a key, on a log, and the round of the beacon that it asks for."""
    content = statement_of(key, signer)
    served = plain_json({"round": ROUND_NUMBER, "signature": ROUND_SIGNATURE.hex()})
    return {
        STATEMENT: content,
        STATEMENT_SIGNATURE: signer.sign(content),
        STATEMENT_LOG: put_on_log(content, signer, URL, transport=LOG.transport),
        ROUND: served,
    }


def _attacked(statistic: str, level: str, bundle: Bundle, signer: Signer, place: Path, most: int) -> dict[str, object]:
    told: Counter[str] = Counter()
    for edit in chosen(bundle, most):
        report = verdict_on_lie(bundle, edit, signer, place, LOG)
        told["lies"] += 1
        told["refused"] += not report.ok
        told["named as the claimant's word"] += report.ok and not is_accepted_lie(report, edit)
        told["accepted"] += is_accepted_lie(report, edit)
        told["contradicted by the checker"] += bool(contradictions(place, report))
        if is_accepted_lie(report, edit) or contradictions(place, report):
            print(f"accepted or contradicted: {edit} {contradictions(place, report)}")
    names = ("lies", "refused", "named as the claimant's word", "accepted", "contradicted by the checker")
    return {"statistic": statistic, "disclosure": level, **{name: told[name] for name in names}}


def chosen(bundle: Bundle, most: int) -> list[Edit]:
    """Return all lies, or a sample of them from all files alike."""
    found = list(edits(bundle, most_per_list=4))
    return found if len(found) <= most else sample(found, most, seed=0)


if __name__ == "__main__":
    main()
