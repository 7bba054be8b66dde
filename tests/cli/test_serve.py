"""``regionmarker serve``: what it refuses to start with; how it runs is in tests/gateway/test_server.py."""

from __future__ import annotations

import socket

import pytest

from regionmarker.cli import main


@pytest.fixture
def key(real_marker, tmp_path):
    real_marker.save(tmp_path / "k.rmkey")
    return tmp_path / "k.rmkey"


def leave(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(map(str, arguments)))
    return left.value.code


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "--database"),
        (["--upstream", "https://127.0.0.1/v1"], "MODEL"),
        (["--upstream", "word2vec"], "unknown encoder"),
        (["--capacity", "5"], "capacity"),
        (["--port", "99999"], "port"),
        (["--log-level", "loud"], "--log-level"),
        (["--timeout", "0"], "above 0"),
    ],
)
def test_bad_options_are_one_sentence(key, capsys, options, message):
    assert leave("serve", "--key", key, *options) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.splitlines()) == 1


def test_a_test_key_is_refused(marker, tmp_path, capsys):
    marker.save(tmp_path / "t.rmkey")
    assert leave("serve", "--key", tmp_path / "t.rmkey") == 2
    assert "TEST" in capsys.readouterr().err


def test_a_port_that_is_taken_is_the_outside_worlds_fault(key, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert leave("serve", "--key", key, "--port", taken.getsockname()[1]) == 3
    assert "cannot listen" in capsys.readouterr().err
