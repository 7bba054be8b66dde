"""The log: only what is listed is written."""

from __future__ import annotations

import io
import json
import logging

import numpy as np
import pytest

from regionmarker.gateway.logs import Forwarding, RecentErrors, log_stream, make_logger, redact

API_KEY = "sk-canary-client-0f1e2d3c4b5a"

TEXT = "canary text that nobody may see 8c7b6a59"


def test_the_redactor_writes_only_what_is_listed():
    event = {"event": "e", "api_key": API_KEY, "input": TEXT, "status": 200, "model": np.ones(3), "headers": {"a": 1}}
    assert redact(None, "", event) == {
        "event": "e", "api_key": "[redacted]", "input": "[redacted]", "status": 200, "model": "[ndarray]",
        "headers": "[redacted]",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["Bearer abcdef", "bearer sk-1", API_KEY, "key_0123456789", "rm-abcdefgh"])
def test_what_looks_like_a_key_is_blanked_anywhere(text):
    assert redact(None, "", {"event": f"sent {text} away"})["event"] == "sent [redacted] away"


def test_other_libraries_are_heard_without_what_they_fill_in(log):
    logger = logging.getLogger("aiohttp.canary")
    handler = Forwarding(make_logger("debug", log))
    logger.addHandler(handler)
    try:
        logger.error("cannot reach %s", TEXT)
        try:
            raise ValueError(TEXT)
        except ValueError:
            logger.exception("failed\nwith %s", API_KEY)
    finally:
        logger.removeHandler(handler)
    assert "canary t" not in log.getvalue()
    assert API_KEY not in log.getvalue()
    assert "cannot reach %s" in log.getvalue()
    assert "ValueError at " in log.getvalue()


def test_a_terminal_gets_plain_words_and_a_file_gets_json():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen, file = Terminal(), io.StringIO()
    for stream in (screen, file):
        make_logger(stream=RecentErrors(log_stream(stream))).warning(
            "a\x1b[2J request", status=429, api_key="rm-1234567890"
        )
    assert "warning a\\x1b[2J request status=429 api_key=[redacted]" in screen.getvalue()
    assert json.loads(file.getvalue())["status"] == 429


def test_the_page_of_errors_is_the_same_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    recent = RecentErrors(log_stream(Terminal()))
    make_logger(stream=recent).error("it broke")
    assert [entry["event"] for entry in recent.latest()] == ["it broke"]


def test_many_warnings_push_no_error_out():
    recent = RecentErrors(io.StringIO(), keep=3)
    logger = make_logger(stream=recent)
    logger.error("it broke")
    for number in range(9):
        logger.warning(f"mild {number}")
    assert [entry["event"] for entry in recent.latest()] == ["it broke"]
    assert [entry["event"] for entry in recent.latest("warnings")] == ["mild 8", "mild 7", "mild 6"]
