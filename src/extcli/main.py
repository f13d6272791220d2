"""The entry point: turns every outcome into an exit code. Only a bug prints a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from extcli.errors import CliError, ExitCode, UsageError


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    args = list(sys.argv[1:] if args is None else args)
    try:
        if "_EXTCLI_COMPLETE" in os.environ:
            from extcli.completion import complete

            _write_utf8()
            return complete(os.environ)
        _replace_closed_streams(may_lack_output=bool({"serve", "exec"} & {*args}) and not {"-h", "--help"} & {*args})
        _write_utf8()
        code = _run(args)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    return _flush_output(code, args)


def _replace_closed_streams(*, may_lack_output: bool) -> None:
    """Open the null device for each standard stream that the shell closed (`<&-`, `>&-`), which Python sets to `None`.

    In this order each gets its own descriptor number again, so that no socket becomes standard output. A command whose
    output is not its result `may_lack_output`.
    """
    from extcli.output.format import check_output_writes

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if name == "stdout" and not (sys.stdout is None and may_lack_output):
            check_output_writes()
        elif getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (open as long as the process)


def _flush_output(code: int, args: list[str]) -> int:
    """Write the rest of the output, and return the exit code: of an error before, or that it cannot be written."""
    from extcli.output.format import discard_rest, flush

    try:
        sys.stderr.flush()
    except OSError:  # the terminal is closed; some versions of Python would exit with 120
        discard_rest(sys.stderr)
    try:
        flush()
    except BrokenPipeError:
        discard_rest(sys.stdout)
    except CliError as error:
        discard_rest(sys.stdout)
        if code == ExitCode.DONE:
            _print_error(error, args)
            return error.exit_code
    return code


def _write_utf8() -> None:
    """Let files and pipes receive UTF-8, which Windows does not do by itself. A console takes any text."""
    if sys.platform == "win32":
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper) and not stream.isatty():
                stream.reconfigure(encoding="utf-8", errors="backslashreplace" if stream is sys.stderr else "strict")


def _run(args: list[str]) -> int:
    from typer import Abort, TyperException

    from extcli.app import run
    from extcli.output.format import discard_rest

    try:
        if any("\ud800" <= char <= "\udfff" for char in "".join(args)):  # how Python passes on bytes of other encodings
            raise UsageError("an argument is not UTF-8 text")
        return run(args) or ExitCode.DONE
    except TyperException as error:
        from extcli.cli.parsing import is_noun_without_verb, usage_error

        if is_noun_without_verb(error) and not _wants_json(args):
            error.show()  # type: ignore[attr-defined]
        else:
            _print_error(usage_error(error), args)
        return error.exit_code
    except CliError as error:
        _print_error(error, args)
        return error.exit_code
    except Abort:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output, such as `head`, is done. That is not a failure.
        discard_rest(sys.stdout)
        return ExitCode.DONE
    except Exception:
        import traceback

        from extcli.output.printer import write_stderr

        write_stderr(["extcli: this is a bug in extcli; please report it with these lines:", traceback.format_exc()])
        return ExitCode.BUG


def _print_error(error: CliError, args: list[str]) -> None:
    from extcli.output.printer import print_error

    print_error(error, as_json=_wants_json(args))


def _wants_json(args: list[str]) -> bool:
    """Return whether errors are printed as JSON, where the arguments could not be parsed."""
    args = args[: args.index("--")] if "--" in args else args
    chosen = [os.environ.get("EXTCLI_OUTPUT", "")]
    for before, word in zip(["", *args], args, strict=False):
        if before in ("-o", "--output"):
            chosen.append(word)
        elif word.startswith(("-o", "--output=")):
            chosen.append(word.removeprefix("--output=").removeprefix("-o"))
    return chosen[-1] in ("json", "jsonl")
