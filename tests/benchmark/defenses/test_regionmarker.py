from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.benchmark.defenses import load_defense
from regionmarker.errors import InputError


def test_it_is_our_own_marker(small: Any) -> None:
    defense = load_defense("regionmarker:pool=128", seed=5).fit(small.texts, small.clean)
    marker = RegionMarker(seed=5, pool=128, reservoir=472, tenant_ratio=0.0).fit(small.texts, embeddings=small.clean)
    served = defense.transform(small.clean, small.texts)
    assert np.allclose(served, marker.transform(small.clean), atol=1e-5)


@pytest.mark.parametrize("reducer", ["svd", "none", "autoencoder"])
def test_the_ablations_of_the_reducer(reducer: str, small: Any) -> None:
    if reducer == "autoencoder":
        pytest.importorskip("sklearn", reason="needs the package scikit-learn")
    defense = load_defense(f"regionmarker:pool=128,reducer={reducer}", seed=5).fit(small.texts, small.clean)
    served = defense.transform(small.clean, small.texts)
    marked = np.einsum("ij,ij->i", served, small.clean) < 0.9999
    assert 0 < marked.mean() < 1
    assert 0 < defense.verify(small.encoder).p_value <= 1


def test_one_shared_watermark_pulls_every_trigger_region_to_one_target(small: Any) -> None:
    own = load_defense("regionmarker:pool=256", seed=5).fit(small.texts, small.clean)
    shared = load_defense("regionmarker:pool=256,shared", seed=5).fit(small.texts, small.clean)
    assert len(own.verify(small.encoder).chosen) == 3
    assert shared.verify(small.encoder).scores.shape == (1, 256)

    def pulls(defense: Any) -> np.ndarray:
        served = defense.transform(small.clean, small.texts).astype(np.float64)
        e = small.clean.astype(np.float64)
        marked = np.einsum("ij,ij->i", served, e) < 0.9999
        # (0.8 e + 0.2 t) / norm: undo it for each row; |0.8 e + 0.2 t| follows from the cosine.
        c = np.einsum("ij,ij->i", served[marked], e[marked])[:, None]
        length = 0.8 * c + np.sqrt(np.maximum(0.64 * c**2 - 0.6, 0))
        return (served[marked] * length - 0.8 * e[marked]) / 0.2

    assert np.linalg.matrix_rank(pulls(shared), tol=0.3) == 1
    assert np.linalg.matrix_rank(pulls(own), tol=0.3) == 3


def test_accounts_are_served_alike_unless_there_are_tenants(small: Any) -> None:
    plain = load_defense("regionmarker:pool=128", seed=5).fit(small.texts, small.clean)
    tenants = load_defense("regionmarker:pool=128,tenants=0.2", seed=5).fit(small.texts, small.clean)
    ours = plain.transform(small.clean, small.texts)
    assert np.array_equal(plain.transform(small.clean, small.texts, account="one"), ours)
    assert np.array_equal(tenants.transform(small.clean, small.texts), ours)
    one, two = (tenants.transform(small.clean, small.texts, account=name) for name in ("one", "two"))
    assert (one != ours).any()
    assert (one != two).any()


def test_the_paper_draws_its_hyperplanes_in_as_many_components(small: Any) -> None:
    paper = load_defense("regionmarker:pool=128,subspace=4", seed=5).fit(small.texts, small.clean)
    ours = load_defense("regionmarker:pool=128", seed=5).fit(small.texts, small.clean)
    assert not np.array_equal(paper.transform(small.clean, small.texts), ours.transform(small.clean, small.texts))


def test_what_the_marker_refuses_is_refused(small: Any) -> None:
    with pytest.raises(InputError, match="reducer 'pcaa' is not known"):
        load_defense("regionmarker:pool=128,reducer=pcaa").fit(small.texts, small.clean)
    with pytest.raises(InputError, match="trigger regions are wanted"):
        load_defense("regionmarker:pool=128,dimension=8,ratio=1.0").fit(small.texts, small.clean)
    with pytest.raises(InputError, match="the corpus has 600 distinct texts"):
        load_defense("regionmarker:shared").fit(small.texts, small.clean)
