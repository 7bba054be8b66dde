"""A passphrase that could be guessed is refused where it is made."""

from __future__ import annotations

import pytest

from regionmarker.crypto.passphrase import check_new_passphrase
from regionmarker.errors import InputError


@pytest.mark.parametrize("weak", ["", "a", "elevenchars", "aaaaaaaaaaaaaaaa", "abababababababab"])
def test_weak_ones(weak):
    with pytest.raises(InputError, match=f"the new passphrase has {len(weak)} letters and needs 12") as refused:
        check_new_passphrase(weak)
    assert not weak or repr(weak) not in str(refused.value)


@pytest.mark.parametrize("strong", ["correct horse", "患者アンは胸の痛みを訴え", "x7Kq-92mP-aa"])
def test_strong_ones(strong):
    check_new_passphrase(strong)
