"""Key files: owner-only, atomic, never a symbolic link, never a half-written one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from regionmarker import KeyRing, RegionMarker
from regionmarker.errors import InputError, KeyFileError, OutsideError
from regionmarker.keys.files import PASSPHRASE_VARIABLE, SECRET_FILE_VARIABLE, secret_path

KEY = "provider.rmkey"


@pytest.fixture
def saved(tmp_path, marker):
    marker.save(tmp_path / KEY)
    return tmp_path / KEY


def test_a_saved_key_marks_as_before(saved, marker, embeddings):
    again = RegionMarker.load(saved)
    assert np.array_equal(again.transform(embeddings), marker.transform(embeddings))
    assert np.array_equal(again.transform(embeddings, tenant="acme"), marker.transform(embeddings, tenant="acme"))
    assert again.key_.id == marker.key_.id
    assert again.key_.pool.texts == marker.key_.pool.texts


def test_key_and_secret_are_for_their_owner_alone(saved):
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret_path(saved).stat().st_mode) == 0o600
    assert len(secret_path(saved).read_bytes()) == 32
    assert sorted(path.name for path in saved.parent.iterdir()) == [KEY, KEY + ".secret"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_file_that_others_can_read_is_refused(saved, mode):
    saved.chmod(mode)
    with pytest.raises(KeyFileError, match="can be read by others: run chmod 600"):
        RegionMarker.load(saved)
    saved.chmod(0o600)
    secret_path(saved).chmod(mode)
    with pytest.raises(KeyFileError, match="can be read by others: run chmod 600"):
        RegionMarker.load(saved)


def test_a_symbolic_link_is_refused(saved):
    link = saved.with_name("link.rmkey")
    link.symlink_to(saved)
    with pytest.raises(KeyFileError, match="is a symbolic link"):
        RegionMarker.load(link)


def test_folders_missing_files_and_missing_secrets_are_named(saved, tmp_path):
    with pytest.raises(KeyFileError, match="is not a file"):
        RegionMarker.load(tmp_path)
    with pytest.raises(InputError, match=r"cannot open .*nowhere.rmkey: No such file"):
        RegionMarker.load(tmp_path / "nowhere.rmkey")
    secret_path(saved).unlink()
    with pytest.raises(InputError, match=f"needs its secret file.*{SECRET_FILE_VARIABLE}"):
        RegionMarker.load(saved)


def test_damage_has_one_message(saved):
    whole = saved.read_bytes()
    messages = set()
    for damaged in (whole[:-1], whole[:30], b"", whole[:5000] + b"\0" + whole[5001:], whole[:8] + b"\2" + whole[9:]):
        saved.write_bytes(damaged)
        with pytest.raises(KeyFileError) as caught:
            RegionMarker.load(saved)
        messages.add(str(caught.value))
    assert len(messages) == 1
    secret_path(saved).write_bytes(b"x" * 31)
    with pytest.raises(KeyFileError, match="must hold exactly 32 bytes"):
        RegionMarker.load(saved)


def test_passphrases_from_the_caller_and_from_the_environment(tmp_path, marker, monkeypatch):
    path = tmp_path / KEY
    assert marker.save(path, passphrase="correct horse") is None
    assert not secret_path(path).exists()
    assert RegionMarker.load(path, passphrase="correct horse").key_.id == marker.key_.id
    with pytest.raises(KeyFileError, match="or the passphrase or secret file is wrong"):
        RegionMarker.load(path, passphrase="wrong horse")
    with pytest.raises(InputError, match=f"locked with a passphrase: set {PASSPHRASE_VARIABLE}"):
        RegionMarker.load(path)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "correct horse")
    assert RegionMarker.load(path).key_.id == marker.key_.id
    with pytest.raises(InputError, match="not both"):
        RegionMarker.load(path, passphrase="a", secret_file="b")
    with pytest.raises(InputError, match="the passphrase is empty"):
        RegionMarker.load(path, passphrase="")


def test_an_existing_key_is_not_overwritten_by_accident(saved, real_marker):
    before = saved.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        real_marker.save(saved)
    assert saved.read_bytes() == before
    with pytest.raises(InputError, match="does not exist"):
        real_marker.save(saved.parent / "missing" / KEY)


FILL_DISK = """
import resource, sys
from regionmarker import KeyRing
from regionmarker.errors import OutsideError
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)   # writing past the limit then fails with an error, as a full disk does
ring = KeyRing.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    ring.save(sys.argv[1], overwrite=True)
except OutsideError as error:
    print(error)
"""


def test_a_disk_that_fills_while_saving_leaves_the_old_key(saved, marker):
    before = saved.read_bytes()
    done = subprocess.run([sys.executable, "-c", FILL_DISK, saved], capture_output=True, text=True, check=True)
    assert "cannot write" in done.stdout
    assert "nothing was changed" in done.stdout
    assert saved.read_bytes() == before
    assert sorted(path.name for path in saved.parent.iterdir()) == [KEY, KEY + ".secret"]
    assert RegionMarker.load(saved).key_.id == marker.key_.id


def test_a_folder_that_cannot_be_written_is_named(tmp_path, marker, monkeypatch):
    def refuse(*_arguments, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OutsideError, match=r"cannot write .*: Permission denied; nothing was changed"):
        marker.save(tmp_path / KEY, passphrase="a")


def test_a_ring_keeps_old_keys_and_marks_with_the_newest(tmp_path, real_marker, embeddings):
    from regionmarker.keys.key import key_from_key

    ring = KeyRing((real_marker.key_,)).rotated(key_from_key(real_marker.key_))
    ring.save(tmp_path / KEY)
    again = KeyRing.load(tmp_path / KEY)
    assert [key.id for key in again] == [key.id for key in ring]
    assert len({key.id for key in ring}) == 2
    old, new = again.keys
    assert RegionMarker.load(tmp_path / KEY).key_.id == new.id
    assert RegionMarker.load(tmp_path / KEY, key_id=old.id).key_.id == old.id
    with pytest.raises(InputError, match=f"not in this ring: it holds {old.id}, {new.id}"):
        again.find("0" * 16)
    assert old.pool.texts == new.pool.texts
    assert old.provider_targets() != new.provider_targets()
    assert not np.allclose(old.mark.normals, new.mark.normals)
