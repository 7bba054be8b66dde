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
from regionmarker.keys.files import (
    LARGEST_VARIABLE,
    PASSPHRASE_VARIABLE,
    SECRET_FILE_VARIABLE,
    open_serving,
    save_serving,
    secret_path,
)

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


def test_a_sparse_file_of_3_gb_is_refused_before_it_is_read(saved, monkeypatch):
    """Read, it would take 6 GB; here 60 MB of address space are enough to refuse it."""
    os.truncate(saved, 3 << 30)
    script = (
        "import resource, sys\n"
        "from regionmarker.keys.files import open_key\n"
        "from regionmarker.errors import KeyFileError\n"
        "import numpy, safetensors.numpy\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000,) * 2)\n"
        "try:\n    open_key(sys.argv[1])\nexcept KeyFileError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, saved], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"{saved} has 3221225472 bytes, but may have 1073741824: it is no key file, or set {LARGEST_VARIABLE} "
        "to the bytes that one may have\n"
    )
    monkeypatch.setenv(LARGEST_VARIABLE, "much")
    with pytest.raises(InputError, match=f"{LARGEST_VARIABLE} is 'much', but must be a number of bytes"):
        RegionMarker.load(saved)


def test_the_largest_size_holds_for_writing_as_for_reading(saved, marker, monkeypatch):
    size = saved.stat().st_size
    monkeypatch.setenv(LARGEST_VARIABLE, str(size - 1))
    with pytest.raises(KeyFileError, match=f"has {size} bytes, but may have {size - 1}"):
        RegionMarker.load(saved)
    with pytest.raises(InputError, match="more than is ever opened"):
        marker.save(saved.with_name("other.rmkey"))
    assert sorted(path.name for path in saved.parent.iterdir()) == [KEY, KEY + ".secret"]
    monkeypatch.setenv(LARGEST_VARIABLE, str(size))
    assert RegionMarker.load(saved).key_.id == marker.key_.id


def test_a_secret_that_is_large_is_refused(saved):
    os.truncate(secret_path(saved), 3 << 30)
    with pytest.raises(KeyFileError, match="has 3221225472 bytes, but may have 1048576: give another file"):
        RegionMarker.load(saved)


@pytest.mark.parametrize("which", ["key", "secret"])
def test_a_named_pipe_is_refused_and_not_waited_for(saved, which):
    path = saved if which == "key" else secret_path(saved)
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(KeyFileError, match="is not a file"):
        RegionMarker.load(saved)


@pytest.mark.parametrize(
    ("head", "looks"),
    [(b"PAR1....", "a Parquet file"), (b"\x93NUMPY..", "a NumPy file"), (b"PK\x03\x04", "a zip file"), (b"words", "")],
)
def test_another_file_is_no_key_whatever_its_mode(tmp_path, head, looks):
    path = tmp_path / "vectors.parquet"
    path.write_bytes(head + bytes(100))
    path.chmod(0o644)
    with pytest.raises(KeyFileError, match="is not a key file") as refused:
        KeyRing.load(path)
    assert looks in str(refused.value)
    assert "chmod" not in str(refused.value)


def test_a_serving_key_is_no_key_and_a_key_is_no_secret(saved, tmp_path, marker):
    serving = tmp_path / "serving.rmkey"
    save_serving(serving, marker.key_.serving(), None)
    with pytest.raises(KeyFileError, match="is a serving key, which can only mark: give the key file"):
        KeyRing.load(serving)
    with pytest.raises(KeyFileError, match="is a whole key, and not a serving key"):
        open_serving(saved, None)
    with pytest.raises(KeyFileError, match="is a key file, and not the secret that opens one"):
        KeyRing.load(saved, secret_file=saved)


@pytest.mark.parametrize("first", [b"{", b"[", b"PAR1", b"PK\x03\x04", b"%PDF"])
def test_a_secret_may_begin_like_anything(marker, tmp_path, first):
    """Random bytes do, once in a hundred keys or so."""
    path, secret = tmp_path / "k.rmkey", tmp_path / "k.secret"
    secret.write_bytes(first.ljust(32, b"\x07"))
    secret.chmod(0o600)
    KeyRing([marker.key_]).save(path, secret_file=secret)
    assert KeyRing.load(path, secret_file=secret).primary.id == marker.key_.id
    secret.write_bytes(first.ljust(33, b"\x07"))
    with pytest.raises(KeyFileError):
        KeyRing.load(path, secret_file=secret)
