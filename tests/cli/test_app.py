"""What holds for every verb."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest
import typer

VERBS = [
    ["demo"],
    ["keygen"],
    ["mark"],
    ["doctor"],
    *(["key", verb] for verb in ("info", "commit", "salt", "rotate", "add", "export-serving")),
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_has_an_example(run, verb):
    wide = {**os.environ, "COLUMNS": "200"}
    assert f"Example: regionmarker {' '.join(verb)}" in run(*verb, "--help", env=wide).stdout


def test_wrong_usage_leaves_with_2(run):
    assert "No such command" in run("bogus", code=2).stderr
    assert "Missing option" in run("keygen", code=2).stderr


def test_ctrl_c_leaves_nothing_half_written(key, corpus, tmp_path):
    # A server that never answers keeps the command waiting in the middle of its work.
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(30)
    command = [
        sys.executable,
        "-m",
        "regionmarker",
        "keygen",
        "--corpus",
        str(corpus),
        "--encoder",
        f"openai:http://127.0.0.1:{server.getsockname()[1]}#m",
        "--out",
        "n.rmkey",
    ]
    # A suite that was started in the background ignores SIGINT, and its children would, too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with server, server.accept()[0]:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped; nothing half-written" in errors
    assert not list(tmp_path.glob("*n.rmkey*"))


def all_verbs() -> list[list[str]]:
    from regionmarker.cli.app import app

    found = []
    for name, command in typer.main.get_command(app).commands.items():
        found += [[name, inner] for inner in getattr(command, "commands", {})] or [[name]]
    return found


@pytest.mark.parametrize("verb", all_verbs(), ids=" ".join)
def test_help_on_80_columns_keeps_options_and_examples_whole(verb, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    from regionmarker.cli import main
    from regionmarker.cli.app import app

    command = typer.main.get_command(app)
    for name in verb:
        command = command.commands[name]
    with pytest.raises(SystemExit):
        main([*verb, "--help"])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    words = shown.split()
    for parameter in command.params:
        for option in (name for name in parameter.opts if name.startswith("--")):
            assert option in words, option
    example = shown.partition("Example: ")[2].partition("\n\n")[0]
    assert example.startswith(f"regionmarker {' '.join(verb)}")
    assert all(line.endswith("\\") for line in example.splitlines()[:-1])  # can be copied as it stands


def test_shells_complete_verbs(run):
    asked = {"_REGIONMARKER_COMPLETE": "complete_bash", "COMP_WORDS": "regionmarker ver", "COMP_CWORD": "1"}
    assert run(env={**os.environ, **asked}).stdout.split() == ["verify"]
