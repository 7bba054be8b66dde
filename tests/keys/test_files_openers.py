"""A reference names a key and what opens it, travels freely, and holds nothing."""

from __future__ import annotations

import pickle

import pytest

from regionmarker.errors import InputError, KeyFileError
from regionmarker.keys import files
from regionmarker.keys.files import KeyReference, load_opener

SECRET = bytes(range(32))


@pytest.fixture
def saved(tmp_path, marker):
    secret = tmp_path / "lock.secret"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    marker.save(tmp_path / "k.rmkey", secret_file=secret)
    return tmp_path / "k.rmkey", secret


def test_every_way_of_opening(saved, marker, monkeypatch):
    path, secret = saved
    monkeypatch.setenv("LOCK", SECRET.hex())
    monkeypatch.setitem(files.OPENERS.built_in, "service", "tests.keys.test_files_openers:service")
    for reference in (
        KeyReference(str(path), secret_file=str(secret)),
        KeyReference(str(path), opener=f"file:{secret}"),
        KeyReference(str(path), opener="environment:LOCK"),
        KeyReference(str(path), opener="service:vault/lock"),
    ):
        assert reference.open().primary.id == marker.key_.id
        carried = pickle.dumps(reference)
        assert SECRET not in carried
        assert pickle.loads(carried) == reference


def service(rest: str) -> bytes:
    """What another package would bring: it asks a key service."""
    assert rest == "vault/lock"
    return SECRET


def test_mistakes_are_one_sentence(saved, monkeypatch):
    path, secret = saved
    monkeypatch.setenv("SHORT", "00ff")
    monkeypatch.setenv("WORDS", "open sesame")
    for spec, message in (
        ("environment:ABSENT", "the environment variable ABSENT is not set here"),
        ("environment:WORDS", "WORDS does not hold hexadecimal digits"),
        ("keyring:x", "unknown opener 'keyring': give file:PATH, environment:NAME"),
    ):
        with pytest.raises(InputError, match=message):
            load_opener(spec)
    with pytest.raises(KeyFileError, match="must hold exactly 32 bytes"):
        load_opener("environment:SHORT")
    with pytest.raises(InputError, match="give a secret file or an opener, not both"):
        KeyReference(str(path), secret_file=str(secret), opener="environment:LOCK")
