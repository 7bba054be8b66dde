"""Asking again: the same model confirms, another does not, and a summary cannot be replayed."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from regionmarker.cli.evidence import app
from regionmarker.errors import InputError
from regionmarker.evidence import Signer, replay_evidence


@pytest.fixture(scope="module")
def suspect(verdict):
    answers = verdict.basis.answers
    return lambda texts: 3.0 * answers.lookup(texts)  # of another length, as servers may answer


def test_the_same_model_confirms(saved, suspect):
    asked = []

    def listen(texts):
        asked.extend(texts)
        return suspect(texts)

    for level in ("expert", "court"):
        asked.clear()
        outcome = replay_evidence(saved[level], listen, sample=40)
        assert outcome.confirmed
        assert (outcome.sample, outcome.answered, outcome.same, len(set(asked))) == (40, 40, 40, 40)
        assert outcome.lowest > 0.999


def test_a_fresh_sample_is_drawn_each_time(saved, suspect):
    samples = []
    for _ in range(2):
        replay_evidence(saved["expert"], lambda texts: samples.append(tuple(texts)) or suspect(texts), sample=20)
    assert set(samples[0]) != set(samples[1])


def test_a_whole_bundle_may_be_asked(saved, suspect):
    assert replay_evidence(saved["expert"], suspect, sample=10_000).sample == 500


def test_another_model_does_not(saved, suspect):
    def other(texts):
        rows = suspect(texts)
        return rows + 3.0 * np.random.default_rng(0).standard_normal(rows.shape) / np.sqrt(rows.shape[1])

    outcome = replay_evidence(saved["expert"], other, sample=30)
    assert not outcome.confirmed
    assert outcome.same == 0
    with pytest.raises(InputError, match="width 100, the bundle's have width 256"):
        replay_evidence(saved["expert"], lambda texts: suspect(texts)[:, :100])


def test_a_summary_does_not_show_the_texts(saved, suspect):
    with pytest.raises(InputError, match="summary, which does not show the texts"):
        replay_evidence(saved["summary"], suspect)
    with pytest.raises(InputError, match="at least 1"):
        replay_evidence(saved["expert"], suspect, sample=0)


def test_a_changed_bundle_is_not_replayed(own_copy, suspect):
    bundle = own_copy("expert")
    (bundle / "report.html").write_text("other")
    with pytest.raises(InputError, match=r"not as it was written: report\.html was changed"):
        replay_evidence(bundle, suspect)


# ---- the command line


def run(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments])


def test_check_for_people_and_programs(saved, own_copy, signer, tmp_path):
    shown = run("check", saved["court"])
    assert shown.exit_code == 0
    assert "All that this court bundle allows was recomputed, and holds" in shown.stdout
    pem = tmp_path / "published.pem"
    pem.write_bytes(signer.public_pem)
    document = json.loads(run("check", saved["summary"], "--signer", pem, "--json").stdout)
    assert document["ok"]
    assert document["failure"] is None
    pem.write_bytes(Signer.generate().public_pem)
    assert run("check", saved["summary"], "--signer", pem).exit_code == 2
    bundle = own_copy("summary")
    (bundle / "report.html").write_text("other")
    broken = run("check", bundle)
    assert broken.exit_code == 2
    assert "report.html was changed" in broken.output
    assert json.loads(run("check", bundle, "--json").stdout)["failure"].startswith("report.html was changed")


def test_replay_against_a_file(saved, verdict, tmp_path):
    answers = verdict.basis.answers
    verdict.basis.answers.to_parquet(tmp_path / "answers.parquet")
    done = run("replay", saved["expert"], "--suspect", f"file:{tmp_path / 'answers.parquet'}", "--sample", 25, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["same"] == 25
    rows = pa.array(list(np.roll(answers.vectors, 1, axis=1)), pa.list_(pa.float32()))
    pq.write_table(pa.table({"text": list(answers.texts), "embedding": rows}), tmp_path / "other.parquet")
    other = run("replay", saved["expert"], "--suspect", f"file:{tmp_path / 'other.parquet'}")
    assert other.exit_code == 2
    assert "answers only 0 of 100 texts" in " ".join(other.output.split())


def test_stamp_writes_a_request(own_copy):
    bundle = own_copy("summary")
    assert json.loads(run("stamp", bundle, "--json").stdout)["request"].endswith("timestamp.tsq")
    assert isinstance(run("stamp", bundle, "--response", bundle / "verdict.json").exception, InputError)
