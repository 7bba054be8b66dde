"""The command line: one thin file per verb."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code: 0 done, 2 bad input or usage, 3 the outside world failed."""
    from stamina.instrumentation import set_on_retry_hooks

    from regionmarker.cli.app import app
    from regionmarker.errors import RegionMarkerError
    from regionmarker.terminal import plain

    set_on_retry_hooks([])  # with structlog, retries would be logged on stdout, in the midst of what --json promises
    try:
        code = app(arguments, standalone_mode=False, prog_name="regionmarker") or 0
    except RegionMarkerError as error:
        sys.stderr.write(f"regionmarker: {plain(str(error))}\n")
        code = error.exit_code
    except (KeyboardInterrupt, EOFError):
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # keeps the interpreter from complaining about the closed pipe as well
        code = 0
    except Exception as error:  # noqa: BLE001 - the parser's complaints about usage; all else is raised again
        code = _usage(error)
    if code == INTERRUPTED:
        sys.stderr.write("regionmarker: stopped; nothing half-written was left behind\n")
    sys.exit(code)


def _usage(error: Exception) -> int:
    """Show a complaint of the command-line parser in its own words; anything else is a bug and keeps its traceback."""
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        error.show()
        return int(error.exit_code)
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    raise error
