"""The one progress bar."""

import sys
from collections.abc import Iterator
from subprocess import run

import pytest

from regionmarker.progress import bar, stderr_console


def test_a_bar_counts_and_notes_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with bar("asking [bold]them[/bold]", 3) as drawn:
        drawn.advance()
        drawn.advance(2)
        drawn.note("about 12 tokens")
    out, err = capfd.readouterr()
    assert out == ""
    assert "asking [bold]them[/bold]" in err  # a suspect's name is no markup
    assert "3/3" in err
    assert "about 12 tokens" in err


def test_a_total_may_be_learnt_late_and_bytes_are_shown_as_such(capfd: pytest.CaptureFixture[str]) -> None:
    with bar("marking", in_bytes=True) as drawn:
        drawn.update(2_000_000, 4_000_000)
    assert "2.0/4.0 MB" in capfd.readouterr().err


def test_parts_of_a_job_take_turns_on_one_bar(capfd: pytest.CaptureFixture[str]) -> None:
    with bar("reading") as drawn:
        texts, cells = drawn.part("texts"), drawn.part("cells")
        texts(2048, 2500)
        texts(2500, 2500)
        first = drawn._bars.tasks[0].description, drawn._bars.tasks[0].completed
        cells(3, 18)
    assert first == ("texts", 2500)
    err = capfd.readouterr().err
    assert "cells" in err
    assert "3/18" in err
    assert "2500" not in err.splitlines()[-1]


def test_a_bar_that_is_not_shown_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with bar("reading", 2, shown=False) as drawn:
        drawn.advance()
        drawn.update(2, 2)
        drawn.note("done")
        drawn.part("texts")(1, 2)
    assert capfd.readouterr() == ("", "")


def test_bars_and_lines_share_one_console_that_prints_what_it_is_given(capfd: pytest.CaptureFixture[str]) -> None:
    assert stderr_console() is stderr_console()
    stderr_console().print("a key in keys[old]/k.rmkey")
    assert capfd.readouterr() == ("", "a key in keys[old]/k.rmkey\n")


def test_rich_is_loaded_by_a_drawn_bar_only() -> None:
    silent = "with bar('x', 1, shown=False): pass"
    program = f"import sys\nfrom regionmarker.progress import bar\n{silent}\nprint('rich' in sys.modules)"
    found = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.fixture
def new_console() -> Iterator[None]:
    """Make the test's console anew: one takes its width from the screen on which it was made."""
    stderr_console.cache_clear()
    yield
    stderr_console.cache_clear()


@pytest.mark.usefixtures("new_console")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_screen_shortens_the_bar_and_nothing_else(
    width: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")  # rich takes a dumb one for 80 wide
    monkeypatch.setenv("COLUMNS", str(width))
    with bar("asking", 3000) as drawn:
        drawn.update(1234, 3000)
        drawn.note("about 123,456 tokens")
    line = capfd.readouterr().err.strip().splitlines()[-1]
    assert "asking" in line
    assert "1234/3000" in line
    assert "about 123,456 tokens" in line
    assert len(line) <= width
    assert "…" not in line
