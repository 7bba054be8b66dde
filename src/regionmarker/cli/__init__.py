"""The command line: one thin file a verb."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code: 0 done, 2 bad input or usage, 3 the outside world failed."""
    from regionmarker.cli.app import app
    from regionmarker.errors import RegionMarkerError

    try:
        code = app(arguments, standalone_mode=False, prog_name="regionmarker")
    except RegionMarkerError as error:
        sys.stderr.write(f"regionmarker: {error}\n")
        code = error.exit_code
    except (KeyboardInterrupt, EOFError):
        sys.stderr.write("regionmarker: stopped; nothing half-written was left behind\n")
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # keeps the interpreter from complaining about the closed pipe as well
        code = 0
    except Exception as error:  # noqa: BLE001 - typer's own complaints about usage
        code = _usage(error)
    sys.exit(code or 0)


def _usage(error: Exception) -> int:
    """Show a complaint of the command-line parser in its own words; anything else is a bug and keeps its traceback."""
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        error.show()
        return int(error.exit_code)
    if type(error).__name__ == "Abort":
        sys.stderr.write("regionmarker: stopped\n")
        return INTERRUPTED
    raise error
