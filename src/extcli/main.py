"""Where the program starts and ends: every way out becomes an exit code, none a traceback but that of a bug."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

BUG = 1
USAGE = 2
INTERRUPTED = 130


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code (`operations.md`)."""
    _stand_in_for_closed_streams()
    try:
        return _run(list(sys.argv[1:] if args is None else args))
    except KeyboardInterrupt:
        return INTERRUPTED


def _stand_in_for_closed_streams() -> None:
    """Python has `None` for a stream whose descriptor was closed (`<&-`, `>&-`), which nothing after this expects.

    In this order each takes its own number again, so that no connection comes to be standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (open as long as the process)


def _run(args: list[str]) -> int:
    from typer import Abort, TyperException

    from extcli.app import run
    from extcli.errors import CliError
    from extcli.output.printer import flush, silence, write_stderr

    try:
        if not _is_text(args):
            write_stderr(["extcli: an argument is not UTF-8 text"])
            return USAGE
        code = run(args) or 0
        flush()
        return code
    except TyperException as error:
        error.show()  # type: ignore[attr-defined]
        return error.exit_code
    except CliError as error:
        write_stderr(error.lines())
        return error.exit_code
    except Abort:
        return INTERRUPTED
    except BrokenPipeError:
        # What was left to be written found no reader any more, which is no failure.
        silence(sys.stdout)
        return 0
    except Exception:
        import traceback

        write_stderr(["extcli: this is a bug in extcli; please report it with the lines below", traceback.format_exc()])
        return BUG


def _is_text(args: list[str]) -> bool:
    try:
        "".join(args).encode()
    except UnicodeEncodeError:
        return False
    return True
