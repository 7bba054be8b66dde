"""RegionMarker: the estimator that providers use."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError, NotFittedError
from regionmarker.measures import row_cosines

SMALL = {"seed": 3, "pool": 64, "reservoir": 512}


def test_marked_rows_move_towards_their_target_and_no_further(marker, embeddings):
    served = marker.transform(embeddings)
    regions = marker.regions(embeddings)
    cosines = row_cosines(embeddings, served)
    for region, target in zip(marker.key_.mark.regions, marker.key_.provider_targets(), strict=True):
        rows = regions == region
        goal = marker.key_.pool.embeddings[target]
        assert (served[rows] @ goal > embeddings[rows] @ goal).mean() > 0.99
        assert cosines[rows].min() >= 0.968 - 1e-3  # by algebra, at strength 0.2
    untouched = ~np.isin(regions, marker.key_.mark.regions)
    assert np.array_equal(served[untouched], embeddings[untouched])  # float16 in, the same float16 out
    assert np.abs(np.linalg.norm(served, axis=1) - 1.0).max() < 2e-4


def test_equation_3_holds_to_the_grid(marker, embeddings):
    key = marker.key_
    region, target = key.mark.regions[0], key.provider_targets()[0]
    rows = embeddings[marker.regions(embeddings) == region].astype(np.float64)
    mixed = 0.8 * rows + 0.2 * key.pool.embeddings[target].astype(np.float64)
    mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
    assert np.abs(marker.transform(rows.astype(np.float32)) - mixed).max() < 2**-12


def test_tenants_share_the_providers_mark_and_have_their_own(marker, embeddings):
    key, regions = marker.key_, marker.regions(embeddings)
    plain = marker.transform(embeddings)
    acme, zenith = marker.transform(embeddings, tenant="acme"), marker.transform(embeddings, tenant="zenith")
    own = np.isin(regions, key.mark.tenant_regions)
    assert np.array_equal(acme[~own], plain[~own])
    assert np.array_equal(zenith[~own], plain[~own])
    assert (acme[own] != plain[own]).any(axis=1).mean() > 0.99  # all but a target text itself
    assert (acme[own] != zenith[own]).any(axis=1).mean() > 0.5  # two draws of three targets rarely agree
    assert not set(key.mark.regions) & set(key.mark.tenant_regions)


def test_a_key_without_tenant_regions_says_so(sentences, embeddings):
    marker = RegionMarker(tenant_ratio=0, **SMALL).fit(sentences, embeddings=embeddings)
    with pytest.raises(InputError, match="no tenant regions: make one with tenant_ratio > 0"):
        marker.transform(embeddings, tenant="acme")


def test_out_may_be_the_input_itself(marker, embeddings):
    expected = marker.transform(embeddings)
    buffer = embeddings.copy()
    assert marker.transform(buffer, out=buffer) is buffer
    assert np.array_equal(buffer, expected)
    other = np.empty_like(buffer)
    assert np.array_equal(marker.transform(embeddings, out=other), expected)


def test_marking_does_not_depend_on_batches_or_order(marker, embeddings):
    whole = marker.transform(embeddings)
    parts = np.concatenate(
        [marker.transform(embeddings[start : start + 77]) for start in range(0, len(embeddings), 77)]
    )
    one_by_one = np.concatenate([marker.transform(row[None]) for row in embeddings[:300]])
    order = np.random.default_rng(0).permutation(len(embeddings))
    assert np.array_equal(parts, whole)
    assert np.array_equal(one_by_one, whole[:300])
    assert np.array_equal(marker.transform(embeddings[order]), whole[order])
    assert marker.transform(embeddings[:0]).shape == (0, embeddings.shape[1])


def test_the_same_seed_makes_the_same_key_and_no_seed_never_does(sentences, embeddings):
    first, second = (RegionMarker(**SMALL).fit(sentences, embeddings=embeddings) for _ in range(2))
    assert np.array_equal(first.transform(embeddings), second.transform(embeddings))
    assert first.key_.test
    real = [RegionMarker(pool=64, reservoir=512).fit(sentences, embeddings=embeddings).key_ for _ in range(2)]
    assert real[0].id != real[1].id
    assert not real[0].test


def test_the_order_and_the_blocks_of_the_corpus_do_not_matter(sentences, embeddings):
    whole = RegionMarker(**SMALL).fit(sentences, embeddings=embeddings).key_
    order = np.random.default_rng(0).permutation(len(sentences))
    blocks = [([sentences[place] for place in part], embeddings[part]) for part in np.array_split(order, 23)]
    streamed = RegionMarker(**SMALL).fit_blocks(blocks).key_
    assert streamed.pool.texts == whole.pool.texts
    assert streamed.reservoir.texts == whole.reservoir.texts
    assert np.abs(streamed.mark.reduction.components - whole.mark.reduction.components).max() < 1e-6
    assert streamed.mark.regions == whole.mark.regions


def test_fitting_with_an_encoder_equals_fitting_with_its_embeddings(sentences, embeddings, wordllama):
    by_encoder = RegionMarker(**SMALL).fit(sentences, encoder=wordllama)
    by_array = RegionMarker(**SMALL).fit(sentences, embeddings=embeddings)
    assert np.array_equal(by_encoder.transform(embeddings), by_array.transform(embeddings))
    assert by_encoder.key_.encoder == wordllama.name
    assert by_array.key_.encoder == "precomputed"


def test_duplicate_texts_count_once(sentences, embeddings):
    twice = (
        RegionMarker(**SMALL).fit([*sentences, *sentences], embeddings=np.concatenate([embeddings, embeddings])).key_
    )
    assert len({*twice.pool.texts, *twice.reservoir.texts}) == 64 + 512


@pytest.mark.parametrize("reducer", ["pca", "svd", "autoencoder", "none"])
def test_every_reducer_marks_row_by_row(sentences, embeddings, reducer):
    marker = RegionMarker(reducer=reducer, ratio=0.1, tenant_ratio=0, **SMALL).fit(sentences, embeddings=embeddings)
    rows = embeddings[:500]
    whole = marker.transform(rows)
    assert np.array_equal(np.concatenate([marker.transform(rows[:123]), marker.transform(rows[123:])]), whole)
    marked = np.isin(marker.regions(rows), marker.key_.mark.regions)
    assert (row_cosines(rows, whole)[marked] < 0.9999).all()
    assert (row_cosines(rows, whole)[~marked] > 0.9999).all()


def test_margins_are_the_distances_to_the_nearest_hyperplane(marker, embeddings):
    signed = marker.key_.mark.signed_distances(embeddings)
    assert np.allclose(marker.margins(embeddings), np.abs(signed).min(axis=1))
    clear = marker.margins(embeddings) > 1e-5
    assert np.array_equal(marker.regions(embeddings)[clear], marker.key_.mark.region_of(embeddings)[clear])


def test_bad_parameters_are_named(sentences, embeddings):
    cases = {
        "ratio is 0, but must lie in": {"ratio": 0},
        "ratio is 1.5, but must lie in": {"ratio": 1.5},
        "strength is 1.0, but must lie in": {"strength": 1.0},
        "dimension must be a whole number": {"dimension": 2.5},
        "dimension is 13": {"dimension": 13},
        "reducer 'lda' is not known": {"reducer": "lda"},
        "dimension is 4, but subspace only 3": {"subspace": 3},
        "subspace is 300, but the embeddings have only 256": {"subspace": 300},
        "subspace goes with reducer pca or svd": {"reducer": "none", "subspace": 8},
        "grid 'int8' is not known": {"grid": "int8"},
        "pool is 2": {"pool": 2},
        "trigger regions are wanted": {"ratio": 0.9},
    }
    for message, parameters in cases.items():
        with pytest.raises(InputError, match=message):
            RegionMarker(**{**SMALL, **parameters}).fit(sentences[:1000], embeddings=embeddings[:1000])


def test_bad_corpora_are_named(sentences, embeddings, wordllama):
    fit = RegionMarker(**SMALL).fit
    with pytest.raises(InputError, match="the corpus is empty"):
        fit([], encoder=wordllama)
    with pytest.raises(InputError, match="has 100 distinct texts, but the pool needs 64 and the reservoir 512"):
        fit(sentences[:100] * 2, embeddings=np.tile(embeddings[:100], (2, 1)))
    with pytest.raises(InputError, match="there are 3 texts but 2 embeddings"):
        fit(sentences[:3], embeddings=embeddings[:2])
    with pytest.raises(InputError, match="text 1 is empty"):
        fit(["a", " "], embeddings=embeddings[:2])
    with pytest.raises(InputError, match="either encoder= or embeddings="):
        fit(sentences)
    with pytest.raises(InputError, match="not one string"):
        fit("a text", encoder=wordllama)


def bad_rows(embeddings, value):
    rows = embeddings[:10].copy()
    rows[7] = value
    return rows


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "row 7 holds NaN"),
        (np.inf, "row 7 holds NaN or infinity"),
        (0.0, "row 7 is zero"),
        (0.5, "row 7 has length 8"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_lost(marker, sentences, embeddings, value, message):
    rows = bad_rows(embeddings, value)
    before = rows.copy()
    with pytest.raises(InputError, match=message):
        marker.transform(rows)
    with pytest.raises(InputError, match=message):
        marker.transform(rows, out=rows)
    assert np.array_equal(rows, before, equal_nan=True)
    with pytest.raises(InputError, match=message):
        RegionMarker(**SMALL).fit(sentences[:10], embeddings=rows)


def test_rows_of_any_length_are_normalised_when_asked(marker, embeddings):
    lengths = np.linspace(0.1, 9.0, len(embeddings), dtype=np.float32)[:, None]
    generous = RegionMarker.from_key(marker.key_).set_params(normalise=True)
    assert np.abs(generous.transform(embeddings * lengths) - marker.transform(embeddings)).max() < 1e-3
    with pytest.raises(InputError, match="row 7 is zero"):
        generous.transform(bad_rows(embeddings, 0.0))


def test_bad_arrays_are_named(marker, embeddings):
    cases = {
        "2-d array, one row per text, but has shape": embeddings[0],
        "width 255, but the key was made for width 256": embeddings[:, :255],
        "must be float16, float32 or float64, but has dtype int64": np.ones((2, 256), dtype=np.int64),
        "rows have different lengths": [[1.0], [1.0, 2.0]],
    }
    for message, array in cases.items():
        with pytest.raises(InputError, match=message):
            marker.transform(array)


def test_a_marker_without_a_key_says_what_to_do(embeddings):
    with pytest.raises(NotFittedError, match=r"call fit\(\) or load\(\) first"):
        RegionMarker().transform(embeddings)


def test_marking_takes_no_memory_of_its_own(marker, embeddings):
    import tracemalloc

    rows = np.tile(embeddings, (8, 1))  # 48,000 x 256: 49 MB
    fine = RegionMarker.from_key(marker.key_)
    out = np.empty_like(rows)
    fine.transform(rows, out=out)
    tracemalloc.start()
    try:
        for _ in range(5):
            fine.transform(rows, out=out)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12_000_000  # blocks of half a megabyte and their helpers, never a second matrix
    assert kept < 100_000
