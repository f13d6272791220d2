"""Where the program starts and ends: every way out becomes an exit code, none a traceback but that of a bug."""

from __future__ import annotations

import sys
from collections.abc import Sequence

BUG = 1
USAGE = 2
INTERRUPTED = 130


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code (`operations.md`)."""
    try:
        code = _run(list(sys.argv[1:] if args is None else args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # What was left to be written found no reader any more, which is no failure.
        from extcli.output import silence

        silence(sys.stdout)
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(args: list[str]) -> int:
    from typer import Abort, TyperException

    from extcli.app import run
    from extcli.output import complain

    try:
        return run(args) or 0
    except TyperException as error:
        error.show()  # type: ignore[attr-defined]
        return error.exit_code
    except Abort:
        return INTERRUPTED
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception:
        import traceback

        complain(["extcli: this is a bug in extcli; please report it with the lines below", traceback.format_exc()])
        return BUG
