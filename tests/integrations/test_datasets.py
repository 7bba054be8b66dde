"""Hugging Face's datasets: map over a column of embeddings."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from regionmarker.errors import InputError, SecretLeakError
from regionmarker.integrations.datasets import MarkColumn


@pytest.fixture
def rows(texts, clean):
    return {"text": texts[:60], "embedding": clean[:60].tolist(), "customer": ["acme", "globex", "acme"] * 20}


@pytest.fixture
def dataset(rows):
    package = pytest.importorskip("datasets", reason="datasets is not installed: make test-integrations")
    return package.Dataset.from_dict(rows)


def test_a_batch_is_marked(fitted, rows, clean):
    marked = MarkColumn(fitted, tenant="acme")(rows)
    assert list(marked) == ["embedding"]
    assert np.array_equal(marked["embedding"], fitted.transform(clean[:60], "acme"))


def test_every_row_its_own_tenant(fitted, rows, clean):
    marked = MarkColumn(fitted, tenant_column="customer")(rows)["embedding"]
    for tenant, start in (("acme", 0), ("globex", 1), ("acme", 2)):
        assert np.array_equal(marked[start::3], fitted.transform(clean[start:60:3], tenant))


def test_map_marks_a_dataset(fitted, dataset, clean):
    served = dataset.map(MarkColumn(fitted, tenant="acme"), batched=True, batch_size=7)
    assert served.column_names == dataset.column_names
    assert served["text"][:] == dataset["text"][:]
    assert np.array_equal(np.float32(served["embedding"][:]), fitted.transform(clean[:60], "acme"))
    formatted = dataset.with_format("numpy").map(MarkColumn(fitted, tenant="acme"), batched=True)
    assert np.array_equal(np.float32(formatted["embedding"][:]), fitted.transform(clean[:60], "acme"))


def test_map_marks_a_stream(fitted, dataset, clean):
    served = list(dataset.to_iterable_dataset().map(MarkColumn(fitted), batched=True, batch_size=7))
    assert np.array_equal(np.float32([row["embedding"] for row in served]), fitted.transform(clean[:60]))


def test_a_result_is_found_again_by_its_fingerprint(fitted, dataset, tmp_path, caplog):
    dataset.save_to_disk(str(tmp_path / "data"))
    import datasets

    stored, mark = datasets.load_from_disk(str(tmp_path / "data")), MarkColumn(fitted, tenant="acme")
    with caplog.at_level(logging.INFO):
        first, second = (stored.map(mark, batched=True, new_fingerprint=mark.fingerprint(stored)) for _ in range(2))
    assert first.cache_files == second.cache_files
    assert first._fingerprint == mark.fingerprint(stored)
    assert mark.fingerprint(stored) != MarkColumn(fitted, tenant="globex").fingerprint(stored)
    assert "hashed" not in caplog.text


def test_workers_get_no_key(fitted, dataset, refuses_copies):
    refuses_copies(MarkColumn(fitted))
    with pytest.raises(SecretLeakError, match="without num_proc"):
        dataset.map(MarkColumn(fitted), batched=True, num_proc=2)


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("vector", {}, "there is no column 'vector': the dataset has customer, embedding, text"),
        ("embedding", {"embedding": [0.6, 0.8]}, "call map with batched=True"),
        ("embedding", {"embedding": [[0.6, 0.8], [1.0]]}, "rows have different lengths"),
        ("embedding", {"embedding": [[0.6, 0.8]]}, "has width 2"),
    ],
)
def test_what_cannot_be_marked_is_named(fitted, rows, column, change, message):
    with pytest.raises(InputError, match=message):
        MarkColumn(fitted, column)({**rows, **change})


def test_one_tenant_or_a_column_of_them(fitted):
    with pytest.raises(InputError, match="either tenant or tenant_column"):
        MarkColumn(fitted, tenant="acme", tenant_column="customer")
