"""A corpus seen in parts, here or elsewhere, gives the key that one pass in memory gives."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.bulk.conftest import vectors

from regionmarker import RegionMarker
from regionmarker.bulk.ray_fit import opener_of, survey_file, survey_group
from regionmarker.corpus import read_blocks
from regionmarker.crypto.envelope import Kind, open_envelope, seal
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.keys.files import make_secret
from regionmarker.keys.openers import KeyReference
from regionmarker.marks.corpus_summary import Survey

SETTINGS = {"seed": 3, "pool": 64, "reservoir": 512}
FILES, ROWS = 5, 300


@pytest.fixture
def corpus(tmp_path, sentences, embeddings):
    """A folder of Parquet files; the last repeats texts of the first."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(FILES):
        part = slice(number * ROWS, (number + 1) * ROWS) if number < FILES - 1 else slice(0, ROWS)
        table = pa.table({"text": sentences[part], "embedding": vectors(embeddings[part])})
        pq.write_table(table, folder / f"part-{number}.parquet")
    return folder


def in_memory(corpus):
    blocks = list(read_blocks(corpus))
    texts = [text for part, _ in blocks for text in part]
    return RegionMarker(**SETTINGS).fit(texts, embeddings=np.concatenate([rows for _, rows in blocks])).key_


def assert_same(one, other) -> None:
    assert one.id == other.id
    assert one.pool.texts == other.pool.texts
    assert one.reservoir.texts == other.reservoir.texts
    assert np.array_equal(one.pool.embeddings, other.pool.embeddings)
    assert (one.regions, one.tenant_regions, one.grid) == (other.regions, other.tenant_regions, other.grid)
    for name, array in one.reduction.arrays().items():
        assert np.abs(array - other.reduction.arrays()[name]).max() < 1e-6


def test_a_streaming_pass_over_files(corpus):
    assert_same(RegionMarker(**SETTINGS).fit_blocks(read_blocks(corpus)).key_, in_memory(corpus))


def test_parts_that_travel_sealed(corpus, tmp_path):
    make_secret(tmp_path / "k.rmkey")
    reference = KeyReference(str(tmp_path / "k.rmkey"))
    opener = opener_of(reference)
    files = [str(path) for path in sorted(corpus.iterdir())]

    def look(survey: Survey) -> None:
        sealed_key = seal(survey.sample_key, Kind.SURVEY, opener)
        for group in (files[:2], files[2:]):
            sealed, error = survey_group(group, sealed_key, survey.sample_size, reference, None, False)
            assert not error
            survey.merge(survey.read(open_envelope(sealed, Kind.SURVEY, opener).reveal()))

    assert_same(RegionMarker(**SETTINGS).fit_survey(look).key_, in_memory(corpus))


def test_an_empty_part_changes_nothing():
    whole = Survey(Secret(bytes(32)), 8)
    whole.merge(whole.read(whole.part().to_bytes()))
    assert whole.rows == 0
    whole.update(["one"], np.eye(1, 4, dtype=np.float32))
    whole.merge(whole.part())
    assert (whole.rows, whole.sample().texts) == (1, ("one",))


def test_mistakes_name_the_file(corpus, tmp_path):
    survey = Survey(Secret(bytes(32)), 64)
    bad = pq.read_table(corpus / "part-1.parquet").to_pylist()
    bad[7]["embedding"] = [0.0] * 256
    schema = pq.read_schema(corpus / "part-1.parquet")
    pq.write_table(pa.Table.from_pylist(bad, schema), corpus / "part-1.parquet")
    with pytest.raises(InputError, match=r"part-1.parquet: row 7 is zero"):
        survey_file(corpus / "part-1.parquet", survey, None, normalise=False)
    (tmp_path / "texts.jsonl").write_text(json.dumps({"text": "no vector"}))
    with pytest.raises(InputError, match=r"texts.jsonl has no embedding column: give --encoder"):
        survey_file(tmp_path / "texts.jsonl", survey, None, normalise=False)
    narrow = survey.part()
    narrow.update(["narrow"], np.eye(1, 4, dtype=np.float32))
    survey_file(corpus / "part-0.parquet", survey, None, normalise=False)
    with pytest.raises(InputError, match="width 4 in one file and 256 in another"):
        survey.merge(narrow)
