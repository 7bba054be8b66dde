"""Corpora: embedded, in a folder, from the hub, from files; and one sentence where there is none."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.benchmark.corpora import NAMES, Labelled, check_corpus, data_folder, load_corpus, texts_for_sale
from regionmarker.benchmark.corpora import sources as hub
from regionmarker.benchmark.corpora.sources import read_labelled
from regionmarker.errors import InputError, OutsideError


@pytest.fixture
def folder(tmp_path, sentences, embeddings):
    """The layout of the data folder with forty sentences, two of them equal, and two paraphrases."""
    texts = [*sentences[:39], sentences[0]]
    splits = ["train"] * 30 + ["test"] * 10
    pq.write_table(
        pa.table({"split": splits, "text": texts, "label": [n % 3 for n in range(40)]}), tmp_path / "mind.parquet"
    )
    rows = np.array([0, 3, 5, 31, 39])
    np.savez(tmp_path / "provider_small_mind.npz", rows=rows, embeddings=embeddings[rows].astype(np.float16))
    said = pa.table({"row": [3, 7], "backend": ["a", "a"], "text": ["another wording", "of no stored text"]})
    pq.write_table(said, tmp_path / "paraphrases_mind.parquet")
    np.savez(tmp_path / "paraphrases_small_mind.npz", embeddings=embeddings[40:42].astype(np.float16))
    return tmp_path


def test_stored_vectors_belong_to_their_texts(folder, sentences, embeddings):
    corpus = load_corpus("mind", "stored:small", folder=folder)
    assert corpus.texts == (sentences[0], sentences[3], sentences[5], sentences[31])  # the last is the first again
    assert np.allclose(corpus.clean, embeddings[[0, 3, 5, 31]], atol=1e-3)
    assert np.allclose(np.linalg.norm(corpus.clean, axis=1), 1, atol=1e-6)
    assert corpus.data.test.tolist() == [False, False, False, True]
    assert corpus.data.labels.tolist() == [0, 0, 2, 1]
    assert corpus.paraphrases == {sentences[3]: ("another wording",)}
    assert corpus.all_texts[-1] == "another wording"
    assert np.allclose(corpus.all_clean[-1], embeddings[40], atol=1e-3)


def test_an_encoder_may_make_the_vectors_of_a_stored_corpus(folder, wordllama):
    corpus = load_corpus("mind", "wordllama", folder=folder, limit=20)
    assert corpus.clean.shape == (20, 256)
    assert (corpus.clean == wordllama.encode(list(corpus.texts))).all()


def test_the_digest_follows_the_content(folder, embeddings):
    before = load_corpus("mind", "stored:small", folder=folder).digest
    assert load_corpus("mind", "stored:small", folder=folder).digest == before
    rows = np.array([0, 3, 5, 31, 39])
    np.savez(folder / "provider_small_mind.npz", rows=rows, embeddings=embeddings[rows + 1].astype(np.float16))
    assert load_corpus("mind", "stored:small", folder=folder).digest != before


def test_vectors_that_do_not_fit_the_texts_are_refused(folder, embeddings):
    np.savez(folder / "provider_small_mind.npz", rows=np.array([99]), embeddings=embeddings[:1])
    with pytest.raises(InputError, match=r"does not fit mind.parquet"):
        load_corpus("mind", "stored:small", folder=folder)


def test_the_real_corpora(data_dir):
    corpus = load_corpus("sst2", "stored:mpnet768", folder=data_dir)
    assert corpus.clean.shape == (8872, 768)
    assert int(corpus.data.test.sum()) == 872
    assert len(corpus.paraphrases) > 2000


def test_texts_for_sale_are_in_the_order_of_grids(folder, sentences, tmp_path):
    assert texts_for_sale("mind", "stored:small", folder) == [sentences[3], sentences[0], sentences[5]]
    whole = texts_for_sale("mind", None, folder)
    assert whole == sentences[:30]  # no text for testing
    (tmp_path / "mine.txt").write_text("b\na\nb\n")
    assert texts_for_sale(str(tmp_path / "mine.txt")) == ["b", "a"]


def test_python_itself_is_a_corpus():
    corpus = load_corpus("python", "wordllama", limit=300)
    assert len(corpus.texts) == len(set(corpus.texts)) == 300
    assert len(set(corpus.data.labels.tolist())) > 3
    assert 0 < corpus.data.test.sum() < 150


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_any_file_with_labels(tmp_path, suffix):
    path = tmp_path / f"mails{suffix}"
    rows = {"text": ["b", "a", "c"], "label": ["spam", "ham", "spam"], "split": ["train", "test", "validation"]}
    if suffix == ".parquet":
        pq.write_table(pa.table(rows), path)
    elif suffix == ".csv":
        lines = [",".join(rows), *(",".join(row) for row in zip(*rows.values(), strict=True))]
        path.write_text("\n".join(lines))
    else:
        path.write_text(
            "\n".join(json.dumps(dict(zip(rows, row, strict=True))) for row in zip(*rows.values(), strict=True))
        )
    corpus = read_labelled(path)
    assert corpus.texts == ("b", "a", "c")
    assert corpus.labels.tolist() == [1, 0, 1]
    assert corpus.test.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\n,x\n", "row 0: the text is missing or empty"),
        ("text,label\na,\n", "row 0: the label is missing"),
        ("text,label\n", "holds no texts"),
    ],
)
def test_bad_files_are_told_by_row(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_labelled(path)


def test_some_are_the_same_every_time():
    data = Labelled.of([str(n) for n in range(100)], [0] * 100, [n > 80 for n in range(100)])
    assert data.some(10).texts == data.some(10).texts
    assert len(data.some(10)) == 10
    assert data.some(None) is data


def test_mind_is_not_loaded_by_name():
    with pytest.raises(InputError, match=r"licence .* give --data-dir with mind.parquet"):
        hub.hub_corpus("mind")


def test_the_hub_is_asked_for_a_fixed_revision(monkeypatch):
    datasets = pytest.importorskip("datasets", reason="needs the package datasets")
    asked = []

    def load_dataset(path, *, revision, split):
        asked.append((path, revision, split))
        return [{"sentence": f"a sentence of {split}", "label": 1}, {"sentence": " ", "label": 0}]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    corpus = hub.hub_corpus("sst2")
    assert corpus.texts == ("a sentence of train", "a sentence of validation")
    assert corpus.test.tolist() == [False, True]
    assert {revision for _, revision, _ in asked} == {"8d51e7e4887a4caaa95b3fbebbf53c0490b58bbb"}

    def broken(*_, **__):
        raise ConnectionError("no network\nat all")

    monkeypatch.setattr(datasets, "load_dataset", broken)
    with pytest.raises(OutsideError, match=r"cannot load stanfordnlp/sst2 from the Hugging Face hub \(no network\)"):
        hub.hub_corpus("sst2")


def test_what_is_missing_is_told_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.delenv("REGIONMARKER_DATA", raising=False)
    with pytest.raises(InputError, match="unknown corpus 'brown': give python, sst2"):
        check_corpus("brown", "wordllama", None)
    with pytest.raises(InputError, match=r"brown.csv does not exist"):
        check_corpus("brown.csv", "wordllama", None)
    with pytest.raises(InputError, match=r"mind.parquet is not in"):
        check_corpus("mind", "stored:small", tmp_path)
    with pytest.raises(InputError, match=r"the data folder .* does not exist"):
        data_folder(tmp_path / "nowhere")
    assert data_folder(None) is None
    assert set(hub.SOURCES) | {"python", "mind"} == set(NAMES)
