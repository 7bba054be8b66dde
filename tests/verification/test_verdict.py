"""The verdict: copies are convicted, innocents are not, at the rate that was promised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, kstest
from tests.support.suspects import BUDGET, redrawn

from regionmarker import ask, verify
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.examination import examine, scores_digest
from regionmarker.verification.judging import check_encoder
from regionmarker.verification.ledger import correction
from regionmarker.verification.verdict import HONEST_DRAW, INFRINGEMENT, NO_EVIDENCE

QUICK = {"budget": BUDGET, "power": False}


@pytest.mark.parametrize("fidelity", [0.95, 0.8, 0.65])
def test_copies_are_convicted(judge_marker, copy_of, fidelity):
    verdict = verify(judge_marker, copy_of(judge_marker, fidelity), **QUICK)
    assert verdict.outcome == INFRINGEMENT
    assert verdict.p_value <= 1e-4
    assert verdict.paper.copy


@pytest.mark.parametrize("change", ["shifted", "cut", "permuted", "rotated", "scaled", "mirrored"])
def test_copies_with_changed_dimensions_are_convicted(judge_marker, copy_of, change):
    rng = np.random.default_rng(3)
    order, rotation = rng.permutation(256), np.linalg.qr(rng.standard_normal((256, 256)))[0]
    changes = {
        "shifted": lambda rows: np.roll(rows, 100, axis=1),
        "cut": lambda rows: rows[:, :171],
        "permuted": lambda rows: rows[:, order],
        "rotated": lambda rows: rows @ rotation,
        "scaled": lambda rows: 7.5 * rows,
        "mirrored": lambda rows: -rows,
    }
    copy = copy_of(judge_marker, 0.85)
    assert verify(judge_marker, lambda texts: changes[change](copy(texts)), **QUICK).outcome == INFRINGEMENT


def innocent_scores(judge_marker, innocents) -> dict[str, np.ndarray]:
    found = {}
    for name, suspect in innocents.items():
        answers = ask(judge_marker, suspect, budget=BUDGET)
        found[name] = examine(judge_marker.key_, answers).scores()
    return found


def test_innocents_are_convicted_at_the_promised_rate_and_the_papers_test_convicts_them(judge_marker, innocents):
    for name, z in innocent_scores(judge_marker, innocents).items():
        keys = 4000
        tuples = np.array([redrawn_targets(judge_marker.key_, seed) for seed in range(keys)])
        p_values = DecoyTest(z).p_values(tuples)
        low, high = binom.ppf([0.005, 0.995], keys, 0.05)
        assert low <= (p_values <= 0.05).sum() <= high, name
        assert (p_values <= 0.001).sum() <= binom.ppf(0.999, keys, 0.001), name
        assert kstest(p_values, "uniform").pvalue > 0.001, name
    verdict = verify(judge_marker, innocents["the unmarked encoder"], **QUICK)
    assert verdict.outcome == NO_EVIDENCE
    assert verdict.paper.copy  # the unmarked encoder itself, and the published test convicts it


def redrawn_targets(key: Key, seed: int) -> tuple[int, ...]:
    return replace(key, salt=f"redraw number {seed:08d}".encode()).provider_targets()


def test_wrong_keys_do_not_convict_a_true_thief(judge_marker, copy_of):
    answers = ask(judge_marker, copy_of(judge_marker, 0.9), budget=BUDGET)
    z = examine(judge_marker.key_, answers).scores()
    tuples = np.array([redrawn_targets(judge_marker.key_, seed) for seed in range(3000)])
    p_values = DecoyTest(z).p_values(tuples)
    assert (p_values <= 0.001).sum() <= binom.ppf(0.999, 3000, 0.001)
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_the_best_of_two_statistics_would_fail_the_same_test(judge_marker, innocents):
    scores = innocent_scores(judge_marker, innocents)
    tuples = np.array([redrawn_targets(judge_marker.key_, seed) for seed in range(4000)])
    both = [DecoyTest(scores[name]).p_values(tuples) for name in ("the unmarked encoder", "hashed letters")]
    assert (np.minimum(*both) <= 0.05).sum() > binom.ppf(0.995, 4000, 0.05)


def test_a_marked_encoder_is_not_taken_for_the_clean_one(judge_marker, wordllama, sentences):
    class Marked:
        name = "marked"

        def encode(self, texts):
            return judge_marker.transform(wordllama.encode(texts))

    check_encoder(judge_marker.key_, wordllama)
    with pytest.raises(
        InputError, match=r"is not the clean one that this key was made with: .* of 64 pool texts differ"
    ):
        verify(judge_marker, wordllama, probes=sentences[:500], encoder=Marked(), **QUICK)


def test_own_probes_work_with_an_encoder_or_embeddings(judge_marker, copy_of, wordllama, sentences, embeddings):
    copy = copy_of(judge_marker, 0.9)
    by_encoder = verify(judge_marker, copy, probes=sentences, encoder=wordllama, **QUICK)
    by_array = verify(judge_marker, copy, probes=sentences, embeddings=embeddings, **QUICK)
    assert by_encoder.outcome == by_array.outcome == INFRINGEMENT
    with pytest.raises(InputError, match="own probes need their clean embeddings"):
        verify(judge_marker, copy, probes=sentences, **QUICK)


def test_the_scores_see_no_target(judge_marker, copy_of):
    answers = ask(judge_marker, copy_of(judge_marker, 0.8), budget=BUDGET)
    digests = {
        scores_digest(examine(key, answers).scores())
        for key in (judge_marker.key_, redrawn(judge_marker, 1).key_, redrawn(judge_marker, 2).key_)
    }
    assert len(digests) == 1
    assert verify(judge_marker, answers, power=False).scores_digest in digests


def test_looks_are_counted_and_paid_for(judge_marker, copy_of, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    first = ask(judge_marker, copy_of(judge_marker, 0.9, seed=1), budget=BUDGET)
    second = ask(judge_marker, copy_of(judge_marker, 0.9, seed=2), budget=BUDGET)
    looks = [verify(judge_marker, answers, ledger=ledger, power=False) for answers in (first, first, second)]
    assert [verdict.look for verdict in looks] == [1, 1, 2]
    assert [verdict.judged_at for verdict in looks] == [1e-3 / correction(look, "decoy-1") for look in (1, 1, 2)]
    ledger.write_text(ledger.read_text() + "torn")
    with pytest.raises(InputError, match="line 4 is damaged"):
        verify(judge_marker, first, ledger=ledger, power=False)


def test_withheld_pool_answers_are_refused(judge_marker, copy_of):
    answers = ask(judge_marker, copy_of(judge_marker, 0.9), budget=BUDGET)
    for place in (judge_marker.key_.provider_targets()[0], 0):
        kept = [row for row, text in enumerate(answers.texts) if text != judge_marker.key_.pool.texts[place]]
        without = type(answers)("mute", tuple(answers.texts[row] for row in kept), answers.vectors[kept])
        with pytest.raises(InputError, match="left 1 of 256 pool texts without an answer, and decoy-1 needs them all"):
            verify(judge_marker, without, power=False)


def test_notes_say_what_the_p_value_rests_on(judge_marker, copy_of):
    verdict = verify(judge_marker, copy_of(judge_marker, 0.9), **QUICK)
    assert HONEST_DRAW in verdict.notes
    assert any("TEST key" in note for note in verdict.notes)
    assert "scores" not in verdict.to_dict()


def test_a_key_that_is_committed_to_another_statistic_is_refused(judge_marker, copy_of):
    key = judge_marker.key_
    other = replace(key, settings=replace(key.settings, statistic="decoy-9"))
    with pytest.raises(InputError, match="committed to the statistic decoy-9, but this version has decoy-1, decoy-2"):
        verify(other, copy_of(judge_marker), **QUICK)
    graded = replace(key, settings=replace(key.settings, statistic="decoy-2"))
    with pytest.raises(InputError, match="decoy-2 judges the graded mark only"):
        verify(graded, copy_of(judge_marker), **QUICK)


def test_bad_levels_are_named(judge_marker, copy_of):
    with pytest.raises(InputError, match="level is 2"):
        verify(judge_marker, copy_of(judge_marker), level=2, **QUICK)
