"""``regionmarker serve``: what it refuses to start with; how it runs is in tests/gateway/test_server.py."""

from __future__ import annotations

import os
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


def served_with(monkeypatch, *arguments):
    """Return the settings that a command line gives to the gateway."""
    from regionmarker.cli import main

    seen = []
    monkeypatch.setattr("regionmarker.gateway.gateway.open_gateway", lambda settings: seen.append(settings))
    monkeypatch.setattr("regionmarker.gateway.server.run", lambda _gateway: None)
    with pytest.raises(SystemExit) as left:
        main(["serve", *map(str, arguments)])
    return left.value.code or 0, seen


def test_a_toml_file_sets_options_and_the_command_line_goes_before_it(tmp_path, monkeypatch):
    config = tmp_path / "serve.toml"
    config.write_text(
        'key = "serving.rmkey"\nport = 9001\nmodel = ["small", "tiny"]\nheader-count = 50\nnormalise = true\n'
    )
    code, (settings,) = served_with(monkeypatch, "--config", config, "--port", 9002)
    assert code == 0
    assert (str(settings.key), settings.port, settings.header_count) == ("serving.rmkey", 9002, 50)
    assert (settings.model, settings.aliases, settings.normalise) == ("small", ("tiny",), True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("prot = 1", "serve has no option prot: it has"), ("port = [", "is not TOML"),
        ("[port]\na = 1", "port is a table"), ('port = "many"', "serve.toml: port is 'many': "),
    ],
)  # fmt: skip
def test_a_bad_toml_file_is_one_sentence(tmp_path, monkeypatch, capsys, content, message):
    config = tmp_path / "serve.toml"
    config.write_text(f'key = "k.rmkey"\n{content}\n' if not content.startswith("[") else content)
    assert served_with(monkeypatch, "--config", config) == (2, [])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", ["a = " + "[" * 50_000, "a = " + "9" * 5000, "#" * (1 << 19), "a" + ".a" * 3000 + "=1"]
)
def test_a_toml_bomb_is_one_sentence(tmp_path, monkeypatch, capsys, content):
    config = tmp_path / "serve.toml"
    config.write_text(content)
    assert served_with(monkeypatch, "--config", config) == (2, [])
    assert "serve.toml" in capsys.readouterr().err


def test_a_pipe_as_toml_file_keeps_nobody_waiting(tmp_path, monkeypatch, capsys):
    os.mkfifo(tmp_path / "serve.toml")
    assert served_with(monkeypatch, "--config", tmp_path / "serve.toml") == (2, [])
    assert "is not a file of options" in capsys.readouterr().err


def test_a_missing_toml_file_is_named(tmp_path, monkeypatch, capsys):
    assert served_with(monkeypatch, "--config", tmp_path / "no.toml") == (2, [])
    assert "no.toml: No such file" in capsys.readouterr().err
