"""A commitment fixes every part of a key and shows nothing of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.keys.commitment import PARTS, SCHEMES, blinding, commit, commitment_of, content, leaf
from regionmarker.marks.reduction import LinearReduction


@pytest.fixture
def key(real_marker):
    return real_marker.key_


def test_it_is_stable_and_survives_a_key_file(key, real_marker, tmp_path):
    from regionmarker import RegionMarker

    real_marker.save(tmp_path / "k.rmkey")
    assert commit(key) == commit(key) == commit(RegionMarker.load(tmp_path / "k.rmkey").key_)
    assert len(commit(key)) == 64


def test_it_changes_with_every_part(key):
    def other_mark(**changes):
        return replace(key, mark=replace(key.mark, **changes))

    nudged = key.mark.reduction.mean.copy()
    nudged[0] = np.nextafter(nudged[0], 1.0)
    changed = [
        replace(key, master=Secret(bytes(32))),
        other_mark(normals=-key.mark.normals),
        other_mark(reduction=LinearReduction("pca", nudged, key.mark.reduction.components)),
        other_mark(regions=key.mark.regions[::-1]),
        other_mark(tenant_regions=key.mark.tenant_regions[:-1]),
        replace(key, pool=TextSet(key.pool.texts[::-1], key.pool.embeddings)),
        replace(key, reservoir=TextSet(key.reservoir.texts, -key.reservoir.embeddings)),
        replace(key, encoder="other"),
        replace(key, settings=replace(key.settings, statistic="other")),
        replace(key, settings=replace(key.settings, level=0.05)),
        other_mark(settings=replace(key.mark.settings, strength=0.3)),
    ]
    assert len({commit(key), *(commit(other) for other in changed)}) == len(changed) + 1


def test_the_public_salt_comes_later_and_changes_the_targets_only(key):
    salted = key.with_salt(b"randomness issued after the commitment")
    assert commit(salted) == commit(key)
    assert salted.provider_targets() != key.provider_targets()
    assert salted.tenant_targets("acme") != key.tenant_targets("acme")
    with pytest.raises(InputError, match="already has a public salt"):
        salted.with_salt(b"another public randomness")
    with pytest.raises(InputError, match="at least 16 bytes"):
        key.with_salt(b"short")
    with pytest.raises(InputError, match="the same as none"):  # HKDF pads its salt with zeros
        key.with_salt(bytes(32))


def test_a_part_can_be_opened_while_the_others_stay_closed(key):
    scheme = SCHEMES[key.mark.kind]
    parts = PARTS[scheme]
    leaves = {part: leaf(blinding(key, part), content(key, part)) for part in parts}
    assert commitment_of(scheme, leaves) == commit(key)
    shown_blinding, shown_pool = blinding(key, "pool"), content(key, "pool")
    assert leaf(shown_blinding, shown_pool) == leaves["pool"]
    assert len({blinding(key, part) for part in parts}) == len(parts)


def test_a_test_key_is_refused(marker):
    with pytest.raises(InputError, match="TEST key"):
        commit(marker.key_)
