"""``regionmarker embed``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from regionmarker import RegionMarker


@pytest.fixture
def texts(tmp_path, sentences):
    (tmp_path / "texts.txt").write_text("\n".join(sentences[:300]))
    return tmp_path / "texts.txt"


def test_texts_become_the_vectors_that_the_tenant_would_be_served(run, key, texts, embeddings):
    options = ("texts.txt", "vectors.npy", "--encoder", "wordllama", "--key", key, "--tenant", "acme")
    found = json.loads(run("embed", *options, "--json").stdout)
    marker = RegionMarker.load(key)
    assert (found["texts"], found["width"], found["marked_by"]) == (300, 256, marker.key_.id)
    assert np.array_equal(np.load(texts.with_name("vectors.npy")), marker.transform(embeddings[:300], tenant="acme"))
    assert "exists already" in run("embed", *options, code=2).stderr
    told = run("mark", "vectors.npy", "again.parquet", "--key", key, code=2).stderr
    assert "carries the mark of key" in told


def test_with_the_database_the_mark_is_the_gateways(run, key, texts, embeddings):
    run("key", "export-serving", key, "--out", "serving.rmkey", "--places", 1)
    run("tenants", "add", "acme", "--database", "t.db", "--key", "serving.rmkey")
    options = ("--encoder", "wordllama", "--key", "serving.rmkey", "--database", "t.db")
    run("embed", "texts.txt", "vectors.npy", *options, "--tenant", "acme")
    expected = RegionMarker.load(key).transform(embeddings[:300], tenant="place-0001")
    assert np.array_equal(np.load(texts.with_name("vectors.npy")), expected)
    unknown = run("embed", "texts.txt", "o.npy", *options, "--tenant", "globex", code=2).stderr
    assert "tenant globex is not in the tenants database" in unknown


def test_without_a_key_it_says_that_nothing_is_marked(run, texts):
    done = run("embed", "texts.txt", "vectors.parquet", "--encoder", "wordllama")
    assert "carry no mark" in " ".join(done.stderr.split())
    assert "wordllama" in done.stdout


def test_a_stopped_run_goes_on_from_its_cache(run, texts):
    run("embed", "texts.txt", "one.npy", "--encoder", "wordllama", "--cache", "cache.sqlite")
    options = ("--encoder", "wordllama", "--cache", "cache.sqlite", "--dry-run", "--json")
    found = json.loads(run("embed", "texts.txt", "two.npy", *options).stdout)
    assert (found["queries"], found["kept"], found["sent"], found["tokens"]) == (300, 300, 0, 0)


MISTAKES = [
    (("vectors.csv", "--encoder", "wordllama"), "must end in .parquet, .npy, .jsonl"),
    (("nowhere/vectors.npy", "--encoder", "wordllama"), "the folder nowhere does not exist"),
    (("vectors.npy", "--encoder", "wordllama", "--tenant", "acme"), "go with --key"),
    (("vectors.npy", "--encoder", "wordllama", "--database", "t.db"), "go with --key"),
    (("vectors.npy", "--encoder", "word2vec"), "unknown encoder"),
    (("vectors.npy", "--encoder", "wordllama", "--price-per-million", 1), "goes with --dry-run"),
]


def test_mistakes_are_found_before_anything_is_embedded(run, texts):
    for options, message in MISTAKES:
        assert message in " ".join(run("embed", "texts.txt", *options, code=2).stderr.split()), options
