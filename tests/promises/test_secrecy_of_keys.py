"""A canary in the secret turns up nowhere: not in text, copies, tracebacks, logs or command output."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys
import traceback
from dataclasses import replace

import pytest

from regionmarker import KeyRing, RegionMarker
from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Secret
from regionmarker.errors import KeyFileError, SecretLeakError

CANARY = b"canary-canary-canary-canary-1234"
PASSPHRASE = "canary-passphrase-canary"
POOL_CANARY = "a canary text that is in the pool"


def forms(material: bytes) -> set[str]:
    return {material.decode(), material.hex(), repr(material), str(list(material))[1:-1], material[:12].decode()}


FORBIDDEN = forms(CANARY) | {PASSPHRASE, POOL_CANARY}


@pytest.fixture
def canary(real_marker) -> RegionMarker:
    key = real_marker.key_
    pool = TextSet((POOL_CANARY, *key.pool.texts[1:]), key.pool.embeddings)
    return RegionMarker.from_key(replace(key, master=Secret(CANARY), pool=pool))


def holders(marker: RegionMarker) -> list[object]:
    key = marker.key_
    serving = key.serving(["acme"])
    return [marker, key, key.master, key.pool, KeyRing((key,)), serving, serving.plan("acme")]


def assert_silent(text: str) -> None:
    assert not [word for word in FORBIDDEN if word in text]


def test_text_forms_are_silent(canary):
    for holder in holders(canary):
        assert_silent(f"{holder!r} {holder!s} {holder}")
        assert_silent(str(vars(type(holder))))


def test_copies_and_pickles_are_refused(canary):
    for holder in holders(canary):
        if isinstance(holder, TextSet):
            continue  # texts and clean embeddings: no secret once they have been asked
        # A shallow copy of a marker shares the key and copies nothing of it.
        attempts = (pickle.dumps, copy.deepcopy) if holder is canary else (pickle.dumps, copy.copy, copy.deepcopy)
        for attempt in attempts:
            with pytest.raises(SecretLeakError):
                attempt(holder)


def test_an_unfitted_marker_is_free_to_travel():
    assert pickle.loads(pickle.dumps(RegionMarker(ratio=0.1))).ratio == 0.1


def test_tracebacks_with_local_variables_are_silent(canary, tmp_path):
    canary.save(tmp_path / "k.rmkey", passphrase=PASSPHRASE)
    damaged = bytearray((tmp_path / "k.rmkey").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "k.rmkey").write_bytes(damaged)
    try:
        RegionMarker.load(tmp_path / "k.rmkey", secret_file=_secret(tmp_path))
    except KeyFileError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        assert_silent("".join(shown.format()))
    else:
        pytest.fail("a damaged key was opened")


def _secret(folder):
    path = folder / "canary.secret"
    path.write_bytes(CANARY)
    path.chmod(0o600)
    return path


def test_a_full_disk_shows_no_secret_in_local_variables(canary, tmp_path, monkeypatch):
    from pathlib import Path

    from regionmarker.errors import OutsideError

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    try:
        canary.save(tmp_path / "k.rmkey")
    except OutsideError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        assert_silent("".join(shown.format()))
    else:
        pytest.fail("a full disk went unnoticed")


def test_the_file_and_the_logs_are_silent(canary, tmp_path, caplog, embeddings):
    with caplog.at_level(logging.DEBUG):
        canary.save(tmp_path / "k.rmkey")
        RegionMarker.load(tmp_path / "k.rmkey").transform(embeddings[:10])
    assert_silent(caplog.text)
    content = (tmp_path / "k.rmkey").read_bytes()
    assert CANARY not in content
    assert POOL_CANARY.encode() not in content


@pytest.mark.parametrize(
    "command",
    [
        ["key", "info"],
        ["key", "info", "--json"],
        ["key", "commit"],
        ["key", "salt", "00112233445566778899aabbccddeeff"],
        ["key", "rotate"],
        ["key", "export-serving", "--out", "serving.rmkey", "--tenant", "acme"],
    ],
)
def test_command_output_is_silent(canary, tmp_path, command):
    path = tmp_path / "k.rmkey"
    canary.save(path)
    verb, action, *rest = command
    done = subprocess.run(
        [sys.executable, "-m", "regionmarker", verb, action, path, *rest],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert_silent(done.stdout + done.stderr)
