"""What is asked: the whole pool, every populated region alike, and nothing that tells which regions count."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.corpus import TextSet
from regionmarker.errors import InputError, SecretLeakError
from regionmarker.keys.key import Key, key_from_key
from regionmarker.marks.regions import POPULATED_SHARE
from regionmarker.verification.questions import (
    ENOUGH_PROBES,
    Cost,
    Questions,
    key_of,
    least_budget,
    plan_questions,
    regroup,
    share_out,
)


@pytest.fixture(scope="module")
def key(sentences, embeddings) -> Key:
    return RegionMarker(seed=5, pool=128, reservoir=4000).fit(sentences, embeddings=embeddings).key_


def test_the_whole_pool_is_asked_and_everything_once(key):
    questions = plan_questions(key, 1500)
    assert len(questions) == len(set(questions.texts)) == 1500
    assert set(key.pool.texts) < set(questions.texts)
    assert set(questions.texts) == set(key.pool.texts) | set(questions.probes.texts)
    assert set(key.pool.texts).isdisjoint(questions.probes.texts)
    assert questions.pool is key.pool


def test_every_populated_region_is_asked_alike(key):
    questions = plan_questions(key, 1500)
    populated = np.flatnonzero(key.mark.shares >= POPULATED_SHARE).tolist()
    held = Counter(key.mark.region_of(key.reservoir.embeddings).tolist())
    assert list(questions.counts) == list(questions.populated) == populated
    most = max(questions.counts.values())
    for region, count in questions.counts.items():
        assert count == held[region] or most - 1 <= count <= most
    assert sum(questions.counts.values()) == 1500 - 128


def test_cells_and_coordinates_are_those_of_the_key(key):
    questions = plan_questions(key, 1000)
    assert np.array_equal(questions.regions, key.mark.region_of(questions.probes.embeddings))
    assert np.allclose(questions.coordinates, key.mark.signed_distances(questions.probes.embeddings), atol=1e-12)
    row_of = {text: row for row, text in enumerate(key.reservoir.texts)}
    rows = [row_of[text] for text in questions.probes.texts]
    assert np.array_equal(questions.probes.embeddings, key.reservoir.embeddings[rows])


def test_inside_a_region_the_probes_farthest_from_the_hyperplanes_are_asked(key):
    questions = plan_questions(key, 700)
    regions = key.mark.region_of(key.reservoir.embeddings)
    margins = np.abs(key.mark.signed_distances(key.reservoir.embeddings)).min(axis=1)
    for region in questions.populated:
        asked = np.abs(questions.coordinates[questions.regions == region]).min(axis=1)
        assert np.all(np.diff(asked) <= 0)
        assert np.allclose(asked, np.sort(margins[regions == region])[::-1][: len(asked)])


def test_a_larger_budget_only_adds(key):
    before: set[str] = set()
    for budget in (least_budget(key), 500, 501, 777, 1500, 3000, 100_000):
        texts = set(plan_questions(key, budget).texts)
        assert len(texts) <= budget
        assert before <= texts
        before = texts


def test_the_order_is_drawn_anew_and_the_rest_is_not(key):
    one, two = plan_questions(key, 600), plan_questions(key, 600)
    assert one.texts != two.texts
    assert set(one.texts) == set(two.texts)
    assert one.probes.texts == two.probes.texts
    assert plan_questions(key, 600, seed=3).texts == plan_questions(key, 600, seed=3).texts


def test_neither_targets_nor_trigger_regions_have_an_influence(key):
    expected = plan_questions(key, 800)
    salted = key.with_salt(b"a beacon's value of today")
    assert salted.provider_targets() != key.provider_targets()
    elsewhere = replace(key, mark=replace(key.mark, regions=key.mark.tenant_regions, tenant_regions=key.mark.regions))
    for other in (salted, elsewhere):
        questions = plan_questions(other, 800)
        assert questions.probes.texts == expected.probes.texts
        assert set(questions.texts) == set(expected.texts)


def test_a_budget_that_is_too_small_is_refused(key):
    least = 128 + 30 * (len(key.mark.regions) + 1)
    assert least_budget(key) == least
    assert len(plan_questions(key, least)) == least
    with pytest.raises(InputError, match=f"a budget of {least - 1} queries is too small.* at least {least}"):
        plan_questions(key, least - 1)


def thin(questions: Questions) -> set[int]:
    """Return the populated regions with too few probes."""
    return {region for region, count in questions.counts.items() if count < ENOUGH_PROBES}


def test_regions_with_few_probes_are_shown_and_an_empty_trigger_region_is_an_error(key):
    assert thin(plan_questions(key, 128 + 30 * 16)) == set()
    assert thin(plan_questions(key, least_budget(key))) == set(plan_questions(key).populated)
    regions = key.mark.region_of(key.reservoir.embeddings)
    kept = np.flatnonzero(regions != key.mark.regions[0])
    without = TextSet(tuple(key.reservoir.texts[row] for row in kept), key.reservoir.embeddings[kept])
    with pytest.raises(InputError, match="a trigger region of this key has no probe at all"):
        plan_questions(replace(key, reservoir=without), 800)
    untouched = np.flatnonzero(~np.isin(np.arange(16), (*key.mark.regions, *key.mark.tenant_regions)))[0]
    kept = np.flatnonzero(regions != untouched)
    without = TextSet(tuple(key.reservoir.texts[row] for row in kept), key.reservoir.embeddings[kept])
    assert int(untouched) in thin(plan_questions(key, 800, probes=without))


def test_own_probes_are_asked_instead_of_the_reservoir(key, sentences, embeddings):
    known = {*key.pool.texts, *key.reservoir.texts}
    rows = [row for row, text in enumerate(sentences) if text not in known]
    rows += rows[:40]  # a second time
    rows += [row for row, text in enumerate(sentences) if text in set(key.pool.texts)]
    own = TextSet(tuple(sentences[row] for row in rows), embeddings[rows])
    questions = plan_questions(key, 1200, probes=own)
    assert len(questions.texts) == len(set(questions.texts))
    assert set(questions.probes.texts) <= set(own.texts) - set(key.pool.texts)
    shuffled = np.random.default_rng(0).permutation(len(own))
    again = TextSet(tuple(own.texts[row] for row in shuffled), own.embeddings[shuffled])
    assert plan_questions(key, 1200, probes=again).probes.texts == questions.probes.texts


@pytest.mark.parametrize(
    ("texts", "rows", "message"),
    [
        (("a", ""), np.eye(2, 256), "text 1 is empty"),
        (("a", "b"), np.eye(2, 255), "has width 255, but the key was made for width 256"),
        (("a", "b"), np.eye(3, 256), "2 probes but 3 embeddings"),
        (("a", "b"), np.eye(2, 256) * 3, "row 0 has length 3"),
        (("a", "b"), np.full((2, 256), np.nan), "row 0 holds NaN"),
    ],
)
def test_own_probes_that_cannot_be_used_are_refused(key, texts, rows, message):
    with pytest.raises(InputError, match=message):
        plan_questions(key, probes=TextSet(texts, rows.astype(np.float32)))


def test_regroup_finds_what_texts_were_asked_for(key):
    asked = plan_questions(key, 900)
    again = regroup(key, asked.texts)
    assert again.probes.texts == asked.probes.texts
    assert np.array_equal(again.regions, asked.regions)
    fewer = regroup(key, [*asked.probes.texts[::2], "a text that the key does not know"])
    assert set(fewer.probes.texts) == set(asked.probes.texts[::2])
    assert fewer.pool is key.pool


def test_questions_are_sealed(key):
    questions = plan_questions(key, 800)
    assert repr(questions) == str(questions) == f"{questions}" == "<RegionQuestions: sealed>"
    for leak in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(SecretLeakError):
            leak(questions)


def test_cost_counts_queries_characters_and_tokens(key):
    cost = plan_questions(key, 800).cost()
    assert cost.queries == 800
    assert cost.characters / 4 <= cost.tokens <= cost.characters
    assert Cost.of(["東京は今日も雨です"]).tokens == 7
    assert Cost.of([]) == Cost(0, 0, 0)


def test_shares_are_even_and_whole():
    rng = np.random.default_rng(1)
    for _ in range(300):
        holdings = rng.integers(0, 40, size=rng.integers(1, 20)).tolist()
        budget = int(rng.integers(0, 500))
        shares = share_out(budget, holdings)
        assert sum(shares) == min(budget, sum(holdings))
        open_ones = [share for share, held in zip(shares, holdings, strict=True) if share < held]
        assert all(share <= held for share, held in zip(shares, holdings, strict=True))
        assert not open_ones or max(shares) - min(open_ones) <= 1


def test_the_key_comes_from_a_marker_or_is_one(key, marker):
    assert key_of(key) is key
    assert key_of(marker) is marker.key_
    with pytest.raises(InputError, match="a serving key has no pool"):
        key_of(RegionMarker.from_serving(key.serving()))
    for wrong in (RegionMarker(), "provider.rmkey", None):
        with pytest.raises(InputError, match="give a fitted RegionMarker or its key"):
            key_of(wrong)


# ---- what a suspect could learn


def test_the_same_texts_go_out_in_the_same_order_whichever_regions_are_triggers(key):
    """The proof that a transcript tells nothing about trigger regions or targets: it is no function of them."""
    expected = plan_questions(key, 800, seed=1).texts
    rng = np.random.default_rng(0)
    for _ in range(10):
        drawn = tuple(int(region) for region in rng.permutation(plan_questions(key, 800).populated)[:6])
        other = replace(key, mark=replace(key.mark, regions=drawn[:3], tenant_regions=drawn[3:]), salt=rng.bytes(16))
        assert plan_questions(other, 800, seed=1).texts == expected


def in_order(key: Key, order: list[str], asked) -> tuple[np.ndarray, np.ndarray]:
    """What the order shows of each probe: its place, its place in a batch, its neighbours; is it a trigger's?

    Its own length is left out: texts of one region are alike in length because they are alike in meaning, so that a
    classifier sees regions by it, and three trigger regions a key are too few to average that out in a short test.
    (Measured once, with length, words, margin and region size: AUC 0.499 +- 0.009 over 400 keys.)
    """
    region_of = dict(zip(asked.probes.texts, asked.regions.tolist(), strict=True))
    features, labels = [], []
    for place, text in enumerate(order):
        if text in region_of:
            near = [order[(place + step) % len(order)] for step in (-2, -1, 1, 2)]
            features.append([place / len(order), place % 64, *map(len, near), *(one in region_of for one in near)])
            labels.append(region_of[text] in key.mark.regions)
    return np.array(features, dtype=float), np.array(labels)


def test_a_classifier_learns_nothing_from_the_order(key):
    forest = pytest.importorskip("sklearn.ensemble").RandomForestClassifier
    auc = pytest.importorskip("sklearn.metrics").roc_auc_score
    keys = [key_from_key(key, seed=seed) for seed in range(8)]
    plans = [plan_questions(one, 1000, seed=seed) for seed, one in enumerate(keys)]

    def told_apart(orders: list[list[str]]) -> float:
        views = [in_order(*view) for view in zip(keys, orders, plans, strict=True)]
        learn, test = ([np.concatenate(part) for part in zip(*half, strict=True)] for half in (views[:4], views[4:]))
        model = forest(40, max_depth=6, random_state=0).fit(*learn)
        return float(auc(test[1], model.predict_proba(test[0])[:, 1]))

    # 3,488 probes, a fifth of them a trigger's: the standard deviation of an AUC by chance is 0.012.
    assert abs(told_apart([list(plan.texts) for plan in plans]) - 0.5) < 0.05

    def grouped(one: Key, plan) -> list[str]:
        trigger = {
            text for text, region in zip(plan.probes.texts, plan.regions, strict=True) if region in one.mark.regions
        }
        return sorted(plan.texts, key=lambda text: text in trigger)

    # The same classifier finds an order that does tell.
    assert told_apart([grouped(*pair) for pair in zip(keys, plans, strict=True)]) > 0.95
