"""Stored providers: one, two side by side, crowded; and the encoders that stand for them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.benchmark.corpora import ProviderEncoder, StoredProvider, check_corpus, load_corpus
from regionmarker.benchmark.corpora.providers import mean_cosine
from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.inputs import GridInputs
from regionmarker.benchmark.grid.parts import CellParts
from regionmarker.errors import InputError

WIDE = "stored:one+two,crowded=0.75"


@pytest.fixture
def folder(tmp_path, sentences, embeddings):
    """Sixty texts, two providers of different width, the second without the first row; one paraphrase."""
    pq.write_table(
        pa.table({"split": ["train"] * 60, "text": sentences[:60], "label": [0, 1] * 30}), tmp_path / "mind.parquet"
    )
    np.savez(tmp_path / "provider_one_mind.npz", rows=np.arange(60), embeddings=embeddings[:60])
    np.savez(tmp_path / "provider_two_mind.npz", rows=np.arange(59, 0, -1), embeddings=embeddings[59:0:-1, :100])
    pq.write_table(pa.table({"row": [3], "text": ["said differently"]}), tmp_path / "paraphrases_mind.parquet")
    np.savez(tmp_path / "paraphrases_one_mind.npz", embeddings=embeddings[70:71])
    np.savez(tmp_path / "paraphrases_two_mind.npz", embeddings=embeddings[70:71, :100])
    return tmp_path


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_two_providers_stand_side_by_side_for_the_rows_that_both_have(folder, sentences, embeddings):
    corpus = load_corpus("mind", "stored:one+two", folder=folder)
    assert corpus.texts == tuple(sentences[1:60])
    wanted = unit(np.concatenate([unit(embeddings[1:60]), unit(embeddings[1:60, :100])], axis=1))
    assert np.allclose(corpus.clean, wanted, atol=1e-6)
    assert corpus.provider == "stored:one+two"


def test_a_crowded_provider_has_the_mean_cosine_that_was_asked_for(folder):
    plain, crowded = (load_corpus("mind", spec, folder=folder) for spec in ("stored:one+two", WIDE))
    assert mean_cosine(plain.clean) < 0.6
    cosines = crowded.clean @ crowded.clean.T
    assert np.isclose(cosines[~np.eye(len(cosines), dtype=bool)].mean(), 0.75, atol=1e-4)
    assert np.allclose(np.linalg.norm(crowded.clean, axis=1), 1, atol=1e-6)
    # A constant was added, and nothing else: differences of rows, scaled back, lie in what was there before.
    added = crowded.clean * np.linalg.norm(plain.clean + crowded.stored.push * _direction(356), axis=1)[:, None]
    assert np.allclose(added[1:] - added[0], plain.clean[1:] - plain.clean[0], atol=1e-5)
    assert load_corpus("mind", WIDE, folder=folder).digest == crowded.digest


def _direction(width):
    drawn = np.random.default_rng(1536).standard_normal(width)
    return drawn / np.linalg.norm(drawn)


def test_a_limit_changes_no_vector(folder):
    whole, some = load_corpus("mind", WIDE, folder=folder), load_corpus("mind", WIDE, folder=folder, limit=20)
    place = {text: row for row, text in enumerate(whole.texts)}
    assert (some.clean == whole.clean[[place[text] for text in some.texts]]).all()


def test_stored_paraphrases_are_put_together_as_the_texts_are(folder, sentences, embeddings):
    corpus = load_corpus("mind", WIDE, folder=folder)
    assert corpus.paraphrases == {sentences[3]: ("said differently",)}
    wanted = corpus.stored.vectors([unit(embeddings[70:71, :width]).astype(np.float32) for width in (256, 100)])
    assert np.allclose(corpus.all_clean[-1], wanted, atol=1e-6)
    (folder / "paraphrases_two_mind.npz").unlink()
    assert load_corpus("mind", WIDE, folder=folder).paraphrases == {}


def test_texts_that_nobody_stored_are_embedded_by_the_encoders_of_the_parts(folder, wordllama):
    spec = "stored:one+one,crowded=0.75"
    corpus = load_corpus("mind", spec, folder=folder)
    cell = Cell("mind", spec, "none", (), "tokens", "provider", queries=10, seed=0)
    parts = CellParts(GridInputs({cell.corpus_id: corpus}, {"one": "wordllama"}))
    found = parts.clean(cell).encode([corpus.texts[0], "a text of nobody"])
    assert (found[0] == corpus.clean[0]).all()
    assert (found[1] == ProviderEncoder(corpus.stored, [wordllama] * 2).encode(["a text of nobody"])).all()
    unnamed = CellParts(GridInputs({cell.corpus_id: corpus}, {}))
    with pytest.raises(InputError, match="are stored, but not that of 'a text of nobody'"):
        unnamed.clean(cell).encode(["a text of nobody"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("stored:one+", "is not stored:NAME"),
        ("stored:one,crowded=1", r"a mean cosine in \[0, 1\), not 1"),
        ("stored:one,wide=3", "has no option wide: give crowded=COSINE"),
        ("stored:one+three", "provider_three_mind.npz is not in"),
    ],
)
def test_what_is_wrong_with_a_provider_is_told_before_anything_is_read(folder, spec, message):
    with pytest.raises(InputError, match=message):
        check_corpus("mind", spec, folder)


def test_a_provider_cannot_be_crowded_less_than_it_is(folder):
    with pytest.raises(InputError, match="by itself: ask more"):
        load_corpus("mind", "stored:one,crowded=0.001", folder=folder)


def test_providers_without_a_row_in_common_are_refused(folder, embeddings):
    np.savez(folder / "provider_two_mind.npz", rows=np.array([], dtype=np.int64), embeddings=embeddings[:0, :100])
    with pytest.raises(InputError, match="have no row in common"):
        load_corpus("mind", "stored:one+two", folder=folder)


def test_the_shape_of_ada_002_from_real_providers(data_dir):
    corpus = load_corpus("sst2", "stored:mpnet768+nomic768,crowded=0.75", folder=data_dir)
    assert corpus.clean.shape == (8872, 1536)
    assert abs(mean_cosine(corpus.clean) - 0.75) < 1e-3


def test_the_name_loads_it_again():
    for spec in ("stored:a", "stored:a+b", "stored:a+b,crowded=0.75"):
        assert StoredProvider.parse(spec).name == spec
