"""Asks for confirmation before a command destroys data, and names the production service it would destroy it on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from extcli.cli.options import flag
from extcli.errors import CliError, ExitCode, UsageError
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible

if TYPE_CHECKING:
    from extcli.session import Session

Yes = Annotated[bool, flag("--yes", "Do not ask for confirmation.")]
"""For commands that may ask for confirmation."""


class NotConfirmed(CliError):
    """The user was asked, and did not answer yes."""

    exit_code = ExitCode.USAGE


def in_production(session: Session) -> bool:
    """Return whether the command would change a service whose profile says production. Sends nothing."""
    return session.resolver.production() is not None


def in_sandbox(session: Session) -> bool:
    """Return whether the service says that it is a sandbox, and no production profile names it.

    False in case of doubt.
    """
    if in_production(session):
        return False
    with suppress(CliError):
        return session.environment() == "sandbox"
    return False


def ask_in_production(
    session: Session, loss: str, *, yes: bool, over_socket: bool = False, is_control: bool = False
) -> None:
    """Ask for confirmation if the command goes to production. Raises `NotConfirmed` or `UsageError`.

    The profiles decide, or the service's own statement of its environment. For calls of the control API, which
    production lacks, only the profiles count.
    """
    if yes or session.dry_run:
        return
    if in_production(session) if is_control else session.why_production(over_socket=over_socket):
        ask_about_loss(session, [visible(loss)], "Continue?", over_socket=over_socket)


def ask_about_loss(session: Session, losses: Sequence[str], question: str, *, over_socket: bool = False) -> None:
    """Show what data would be lost on which service, and ask.

    Raises `NotConfirmed`, or `UsageError` without a terminal.
    """
    if session.dry_run:
        return
    if target := session.why_production(over_socket=over_socket):
        losses = [target, *losses]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("confirmation needed, but no terminal", why="; ".join(losses), fix="pass --yes to confirm")
    write_stderr(losses)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.buffer.readline(200).decode(errors="replace")
    if not answer.endswith("\n"):
        write_stderr([""])  # after Ctrl-D the cursor is still on the line of the question
    if answer.strip().lower() not in ("y", "yes"):
        raise NotConfirmed("nothing was changed")
