"""The graded mark: carriers of unit variance, targets in a band, one target per list, marking by the formula."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.marking import engine
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.graded import GradedMark
from regionmarker.marks.graded_settings import GradedSettings
from regionmarker.marks.number_format import NumberFormat
from regionmarker.measures import neighbour_overlap

MASTER = Secret(bytes(range(32)))
POOL = 24 * 16
GROUPS = ("provider", "tenants")


@pytest.fixture(scope="module")
def samples(sentences, embeddings) -> tuple[TextSet, TextSet]:
    return TextSet(tuple(sentences[:POOL]), embeddings[:POOL]), TextSet(tuple(sentences[POOL:]), embeddings[POOL:])


@pytest.fixture(scope="module")
def mark(sentences, embeddings, samples) -> GradedMark:
    summary = CorpusSummary(Secret(bytes(32)), 10)
    summary.update(sentences, embeddings)
    return GradedMark.fit(summary, MASTER, GradedSettings.within(embeddings.shape[1], tenants=False), samples)


@pytest.fixture(scope="module")
def shared(sentences, embeddings, samples) -> GradedMark:
    """A mark with carriers of tenants."""
    summary = CorpusSummary(Secret(bytes(32)), 10)
    summary.update(sentences, embeddings)
    return GradedMark.fit(summary, MASTER, GradedSettings.within(embeddings.shape[1]), samples)


def test_carriers_have_unit_variance_and_pairs_no_mean(mark, embeddings):
    carriers = mark.carriers(embeddings)
    assert carriers.shape == (len(embeddings), 24)
    assert np.allclose(carriers.std(axis=0), 1.0)
    assert np.abs(carriers[:, 8:].mean(axis=0)).max() < 1e-9
    assert np.abs(carriers[:, :8].mean(axis=0)).max() < 0.1


def test_a_single_is_odd_and_a_pair_is_even(mark, embeddings):
    mirrored = 2 * mark.mean - embeddings  # every signed distance changes its sign
    before, after = mark.carriers(embeddings), mark.carriers(mirrored)
    assert np.allclose(after[:, :8], -before[:, :8])
    assert np.allclose(after[:, 8:], before[:, 8:])


def test_no_pair_of_hyperplanes_is_used_twice(mark, shared):
    for found in (mark, shared):
        singles = found.settings.all_singles
        pairs = {tuple(pair) for pair in found.planes_of[singles:].tolist()}
        assert len(pairs) == found.settings.all_pairs
        assert all(singles <= first < second < len(found.planes) for first, second in pairs)
        assert (found.planes_of[:singles, 1] == -1).all()


def test_the_provider_and_the_tenants_share_no_hyperplane(shared):
    planes = {group: set(shared.planes_of[shared.settings.places(group)].ravel()) - {-1} for group in GROUPS}
    assert not planes["provider"] & planes["tenants"]
    assert planes["provider"] | planes["tenants"] <= set(range(len(shared.planes)))


def test_the_groups_share_the_energy(shared, mark):
    for group in GROUPS:
        assert np.square(shared.weights[shared.settings.places(group)]).sum() == pytest.approx(1.0)
    assert np.square(mark.weights).sum() == pytest.approx(2.0)  # all of it is the provider's


def test_every_account_has_targets_of_its_own_and_none_is_without(shared, mark):
    drawn = {name: shared.tenant_targets(MASTER, b"", POOL, name) for name in ("", "acme", "globex")}
    assert len(set(drawn.values())) == 3
    assert all(len(targets) == 12 for targets in drawn.values())
    assert mark.tenant_targets(MASTER, b"", POOL, "") == ()
    with pytest.raises(InputError, match="this key has no marks for tenants"):
        mark.tenant_targets(MASTER, b"", POOL, "acme")


def test_what_is_served_is_the_formula_for_each_account(shared, embeddings, samples):
    pool, rows = samples[0].embeddings, embeddings[:40]
    provider = shared.provider_targets(MASTER, b"", POOL)
    tenants = {name: shared.tenant_targets(MASTER, b"", POOL, name) for name in ("", "acme")}
    served = shared.served(pool, provider, tenants)
    for name, own in tenants.items():
        targets = np.empty(len(shared.weights), dtype=np.int64)
        for group, places in zip(GROUPS, (provider, own), strict=True):
            targets[shared.settings.places(group)] = places
        marked = engine.mark(served.plan(name, NumberFormat.float32), rows)
        assert np.allclose(marked, shared.mark_rows(rows, pool[targets]), atol=2e-6)
    with pytest.raises(InputError, match="tenant 'globex' is not in this serving key"):
        served.plan("globex", NumberFormat.float32)


def test_targets_stay_in_their_band(mark, embeddings):
    coordinates = mark.directions(embeddings[:50]) @ mark.components.T
    assert np.abs(coordinates[:, : mark.settings.band_start]).max() < 1e-9
    assert np.allclose(np.linalg.norm(coordinates, axis=1), 1.0)


def test_every_target_comes_from_its_carriers_list_and_all_are_drawn_alike(mark):
    drawn = np.array([mark.provider_targets(Secret(bytes([n % 256, n // 256] * 16)), b"", POOL) for n in range(2000)])
    assert (drawn // 16 == np.arange(24)).all()
    counts = np.apply_along_axis(np.bincount, 0, drawn % 16, minlength=16)  # (16, 24)
    expected = 2000 / 16
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)  # 384 cells: beyond 5 sigma about once in 5,000 runs
    assert mark.provider_targets(MASTER, b"salt" * 4, POOL) != mark.provider_targets(MASTER, b"", POOL)


def test_marking_is_the_formula(mark, embeddings):
    rows, targets = embeddings[:20].astype(np.float64), embeddings[100:124]
    expected = rows.copy()
    for row in range(20):
        for j, direction in enumerate(mark.directions(targets)):
            count = 8 if j < 8 else 16
            expected[row] += mark.strength * mark.carriers(rows)[row, j] / np.sqrt(count) * direction
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(mark.mark_rows(rows, targets), expected)


def test_plans_of_tenants_share_what_is_not_theirs(shared, samples):
    """Ten thousand tenants would else lay out the same hyperplanes ten thousand times."""
    rows = samples[1].embeddings
    drawn = {name: shared.tenant_targets(MASTER, b"", len(samples[0]), name) for name in ("", "acme", "zenith")}
    provider = shared.provider_targets(MASTER, b"", len(samples[0]))
    served = shared.served(samples[0].embeddings, provider, drawn)
    plans = [served.plan(name, NumberFormat.float32) for name in ("acme", "zenith", "acme")]
    assert plans[0].tables.planes is plans[1].tables.planes
    assert not np.array_equal(plans[0].tables.directions, plans[1].tables.directions)
    for plan, name in zip(plans, ("acme", "zenith", "acme"), strict=True):
        alone = shared.served(samples[0].embeddings, provider, {name: drawn[name]}).plan(name, NumberFormat.float32)
        assert engine.mark(plan, rows).tobytes() == engine.mark(alone, rows).tobytes()
        assert plan.tables.planes.tobytes() == alone.tables.planes.tobytes()


def test_another_master_draws_other_hyperplanes_on_the_same_components(mark, samples):
    other = mark.redrawn(Secret(bytes(32)), samples)
    assert np.array_equal(other.components, mark.components)
    assert not np.allclose(other.planes, mark.planes)
    again = mark.redrawn(MASTER, samples)
    assert np.array_equal(again.planes, mark.planes)
    assert np.array_equal(again.planes_of, mark.planes_of)
    assert again.strength == mark.strength


@pytest.mark.parametrize("kept", [0.95, 0.85])
def test_the_strength_keeps_the_wanted_neighbours(mark, embeddings, kept):
    found = mark.at_strength_for(kept, embeddings, seed=1)
    targets = embeddings[np.random.default_rng(9).permutation(len(embeddings))[:24]]  # another draw than those it saw
    served = found.mark_rows(embeddings, targets).astype(np.float32)
    assert abs(float(neighbour_overlap(embeddings, served).mean()) - kept) < 0.02
    assert mark.at_strength_for(kept, embeddings, seed=1).strength == found.strength


def test_a_share_that_no_mark_keeps_is_refused(mark, embeddings):
    with pytest.raises(InputError, match=r"kept is 0\.99999, but the weakest mark moves more neighbours"):
        mark.at_strength_for(0.99999, embeddings, seed=1)


def test_nothing_of_it_is_shown(mark):
    assert repr(mark) == "<GradedMark: sealed>"
    assert not {"planes", "planes_of", "components"} & mark.describe().keys()


def test_what_is_too_narrow_or_too_few_is_refused(mark):
    with pytest.raises(InputError, match="too narrow: the graded mark needs 32"):
        GradedSettings.within(16)
    with pytest.raises(InputError, match="has no two candidates"):
        mark.provider_targets(MASTER, b"", 40)
