"""One small case, the same in every run, and its bundle at every level."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.evidence import Signer, check_evidence, save_evidence
from regionmarker.evidence.bundle import manifest_of, read_bundle
from regionmarker.evidence.fields import written
from regionmarker.keys.key import Key
from regionmarker.verification.answers import Answers, Exchange, text_digest
from regionmarker.verification.judging import judge
from regionmarker.verification.power import Power
from regionmarker.verification.questions import plan_questions
from regionmarker.verification.tracing import trace
from regionmarker.verification.verdict import Verdict
from tests.support.suspects import blurred

SUSPECT = "https://copy.example/v1#<script>alert(1)</script>"
POWER = Power(fidelities=(0.4, 0.6, 0.8), detected=(0.25, 1.0, 1.0), caught=0.6, shadows=4, texts=500)


@pytest.fixture(scope="session")
def case_key(sentences, embeddings) -> Key:
    """A key that is drawn alike in every run, but not stamped TEST."""
    marker = RegionMarker(seed=5, pool=128, reservoir=700).fit(sentences[:3000], embeddings=embeddings[:3000])
    return replace(marker.key_, test=False)


@pytest.fixture(scope="session")
def answer_as(case_key, sentences, embeddings):
    """Answer the questions of the case as a copy or as an innocent would."""
    row_of = {text: row for row, text in enumerate(sentences)}

    def answers(*, guilty: bool = True, budget: int = 500, silent: tuple[str, ...] = ()) -> Answers:
        texts = plan_questions(case_key, budget, seed=0).texts
        rows = blurred(embeddings[[row_of[text] for text in texts]], 0.9, seed=0)
        vectors = RegionMarker.from_key(case_key).transform(rows) if guilty else rows
        vectors = np.where(np.isin(texts, silent)[:, None], np.float32(np.nan), vectors)
        asked = tuple(text_digest(text).hex() for text in texts)
        return Answers(SUSPECT, texts, vectors, (Exchange(1, "2026-01-02T03:04:05.678+00:00", asked, "ab" * 32),))

    return answers


@pytest.fixture(scope="session")
def verdict_on(case_key):
    def verdict(answers: Answers, **options) -> Verdict:
        found = replace(judge(case_key, answers, power=False, **options), power=POWER)
        if found.ledger:  # what it wrote down has to stay
            return found
        fresh = tuple(note for note in found.notes if not note.startswith("the answers are"))
        return replace(found, created="2026-01-02T03:05:00+00:00", notes=fresh)  # the same in every run

    return verdict


@pytest.fixture(scope="session")
def verdict(verdict_on, answer_as) -> Verdict:
    """A copy, convicted."""
    found = verdict_on(answer_as())
    assert found.outcome == "infringement"
    return found


@pytest.fixture(scope="session")
def signer() -> Signer:
    return Signer.generate()


@pytest.fixture(scope="session")
def saved(verdict, case_key, signer, tmp_path_factory):
    """The bundles of the case by level, not to be changed."""
    folder = tmp_path_factory.mktemp("evidence")
    traces = trace(case_key, verdict.basis.answers, ["alice", "bob"])
    levels = {"summary": (), "expert": (), "court": traces}
    return {
        level: save_evidence(verdict, folder / level, level=level, signer=signer, traces=given, archive=True)
        for level, given in levels.items()
    }


@pytest.fixture
def own_copy(saved, tmp_path):
    """Copy a bundle, to be changed."""
    return lambda level: shutil.copytree(saved[level], tmp_path / "bundle")


@pytest.fixture
def quick_report(monkeypatch, saved):
    """Leave the page out where a test is about something else: it is not drawn, and not compared."""
    monkeypatch.setattr("regionmarker.evidence.report.render_report", lambda shown: f"<p>{shown.verdict['outcome']}")
    monkeypatch.setattr("regionmarker.evidence.check.check_report", lambda bundle: "left out")


def lie(bundle, name, change, *, signer=None) -> str | None:
    """Change a JSON file, make the manifest fit again as a forger would, and check."""
    lines = name.endswith(".jsonl")
    found = read_bundle(bundle)
    document = found.lines(name) if lines else found.json(name)
    change(document)
    (bundle / name).write_bytes(written(name, document))
    reseal(bundle)
    return check_evidence(bundle).failure


def reseal(bundle) -> None:
    for name in ("manifest.sig", "signer.pem"):
        (bundle / name).unlink(missing_ok=True)
    found = read_bundle(bundle)
    files = {name: content for name, content in found.files.items() if name != "manifest.json"}
    (bundle / "manifest.json").write_bytes(manifest_of(found.disclosure, files, found.written_by))
