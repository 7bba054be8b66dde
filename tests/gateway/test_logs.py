"""The log: only what is listed is written."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from regionmarker.gateway.logs import Forwarding, make_logger, redact

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
