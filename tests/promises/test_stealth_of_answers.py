"""Marked and unmarked answers differ in nothing but the vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp
from tests.support.gateways import rows_of, vectors_of

from regionmarker.marks.number_format import NumberFormat, in_format

VOLATILE = {"x-request-id", "date", "content-length"}


@pytest.fixture(scope="module")
def answers(module_serving, key_marker, sentences):
    """Single-text answers, and which of them are marked."""
    serving, _ = module_serving()
    texts = sentences[:240]
    marked = np.isin(key_marker.regions(vectors_of(texts)), key_marker.key_.mark.regions)
    assert 20 < marked.sum() < 220
    found = {
        encoding: [serving.post(text, encoding_format=encoding) for text in texts] for encoding in ("float", "base64")
    }
    return found, marked


def test_headers_are_the_same(answers):
    found, marked = answers
    for responses in found.values():
        kinds = [
            {tuple(sorted((k, v) for k, v in one.headers.items() if k not in VOLATILE)) for one, is_marked in
             zip(responses, marked, strict=True) if is_marked is np.bool_(side)}
            for side in (True, False)
        ]  # fmt: skip
        assert kinds[0] == kinds[1]
        assert len(kinds[0]) == 1


def test_base64_answers_have_one_length(answers):
    found, _ = answers
    sizes = {len(one.json()["data"][0]["embedding"]) for one in found["base64"]}
    assert len(sizes) == 1


def test_float_answers_have_lengths_of_one_distribution(answers):
    found, marked = answers
    sizes = np.array([len(one.content) - len(str(one.json()["usage"])) for one in found["float"]])
    assert ks_2samp(sizes[marked], sizes[~marked]).pvalue > 0.01


def test_all_numbers_are_on_the_upstreams_grid_and_both_formats_agree(answers):
    found, _ = answers
    rows = {name: np.concatenate([rows_of(one) for one in responses]) for name, responses in found.items()}
    np.testing.assert_array_equal(rows["float"], rows["base64"])
    assert in_format(rows["float"], NumberFormat.float16).all()
