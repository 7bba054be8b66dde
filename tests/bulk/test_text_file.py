"""Texts in, a file of their vectors out."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from regionmarker.bulk.manifest import marked_by
from regionmarker.bulk.text_file import embed_file, manifest_of
from regionmarker.corpus import TextSet, read_embedded
from regionmarker.errors import InputError, OutsideError


@pytest.fixture
def texts(tmp_path, sentences):
    """More texts than one block holds."""
    (tmp_path / "texts.txt").write_text("\n".join(sentences[:700]))
    return tmp_path / "texts.txt"


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".jsonl"])
def test_vectors_are_the_marked_ones_in_the_order_of_the_texts(texts, suffix, wordllama, judge_marker, embeddings):
    target, seen = texts.with_name(f"vectors{suffix}"), []
    assert embed_file(texts, target, wordllama, judge_marker, tenant="acme", progress=lambda *at: seen.append(at)) == (
        700,
        256,
    )
    assert seen == [(512, 700), (700, 700)]
    expected = judge_marker.transform(embeddings[:700], tenant="acme")
    if suffix == ".npy":
        assert np.array_equal(np.load(target), expected)
        return
    found = TextSet.of_blocks(read_embedded(target))
    assert list(found.texts) == texts.read_text().split("\n")
    assert np.array_equal(found.embeddings, expected)


def test_a_manifest_beside_the_file_says_what_marks_it_and_the_file_does_not(texts, wordllama, judge_marker):
    target = texts.with_name("vectors.parquet")
    embed_file(texts, target, wordllama, judge_marker)
    assert marked_by(str(target)) == judge_marker.key_.id
    assert judge_marker.key_.id.encode() not in target.read_bytes()
    assert pq.read_schema(target).metadata is None
    assert json.loads(manifest_of(target).read_text())["shards"][0]["rows"] == 700
    embed_file(texts, target, wordllama)  # the same name, without a mark
    assert not manifest_of(target).exists()
    assert marked_by(str(target)) is None


def test_what_fails_leaves_nothing_behind(texts, wordllama):
    class Failing:
        name = "failing"
        asked = 0

        def encode(self, some):
            self.asked += 1
            if self.asked == 2:
                raise OutsideError("gone")
            return wordllama.encode(some)

    for suffix in (".parquet", ".npy", ".jsonl"):
        with pytest.raises(OutsideError, match="gone"):
            embed_file(texts, texts.with_name(f"vectors{suffix}"), Failing())
    assert [file.name for file in texts.parent.iterdir()] == ["texts.txt"]


def test_another_kind_of_file_is_refused_before_anything_is_embedded(texts):
    with pytest.raises(InputError, match=r"must end in \.parquet, \.npy, \.jsonl"):
        embed_file(texts, texts.with_name("vectors.csv"), None)
