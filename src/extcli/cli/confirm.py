"""Asks for confirmation before a command destroys data, and names the production service it would destroy it on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

from extcli.cli.options import declare, flag, parameters_of
from extcli.config import settings
from extcli.errors import CliError, ExitCode, UsageError
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible

if TYPE_CHECKING:
    from extcli.config.profiles import Profile
    from extcli.config.resolver import Resolver
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


def guard(session: Session, loss: str, *, yes: bool, over_socket: bool = False, is_control: bool = False) -> None:
    """Ask for confirmation if the command goes to production. Raises `NotConfirmed` or `UsageError`.

    The profiles decide, or the service's own statement of its environment. For calls of the control API, which
    production lacks, only the profiles count.
    """
    if yes or session.dry_run:
        return
    if in_production(session) if is_control else session.is_production(over_socket=over_socket):
        ask(session, [visible(loss)], "Continue?", over_socket=over_socket)


def with_confirmation(loses: str, *, is_control: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the option --yes. Without it, the command asks before it destroys production data.

    `loses` says what would be lost. `{poll}` in it stands for that argument.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(session: Session, *, yes: bool, **values: Any) -> None:
            guard(session, loses.format_map(values), yes=yes, is_control=is_control)
            function(session, **values)

        asked = Parameter("yes", Parameter.KEYWORD_ONLY, default=False, annotation=Yes)
        return declare(run, [*parameters_of(function), asked])

    return decorate


def ask(session: Session, losses: Sequence[str], question: str, *, over_socket: bool = False) -> None:
    """Show what data would be lost on which service, and ask.

    Raises `NotConfirmed`, or `UsageError` without a terminal.
    """
    if session.dry_run:
        return
    if profile := session.resolver.production():
        losses = [*_lines_about_target(session.resolver, profile, over_socket=over_socket), *losses]
    elif claim := _why_production(session, over_socket=over_socket):
        losses = [claim, *losses]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "confirmation needed, but there is no terminal to ask on",
            why="; ".join(losses),
            fix="pass --yes to confirm",
        )
    write_stderr(losses)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.buffer.readline(200).decode(errors="replace")
    if not answer.endswith("\n"):
        write_stderr([""])  # after Ctrl-D the cursor is still on the line of the question
    if answer.strip().lower() not in ("y", "yes"):
        raise NotConfirmed("nothing was changed")


def _why_production(session: Session, *, over_socket: bool) -> str:
    """Return why a service that no profile names counts as production; empty if it is a sandbox."""
    address = session.resolver.ws_url() if over_socket else session.resolver.url()
    environment = session.environment(over_socket=over_socket)
    if environment == "sandbox":
        return ""
    return (
        f"{address} is {environment}"
        if environment
        else f"{address} does not say whether it is production, so it may be"
    )


def _lines_about_target(resolver: Resolver, profile: Profile, *, over_socket: bool) -> list[str]:
    """Return the production service as text, and which option or variable chose its address."""
    address = resolver.ws_url() if over_socket else resolver.url()
    production = f"profile {profile.name} is production"
    if profile.is_of(address):
        return [f"{production}: {address}"]
    found = (resolver.configured_ws_url() if over_socket else None) or resolver.find(settings.URL)
    origin = found.origin if found else "the default"
    own = visible(profile.texts["url"])
    return [
        f"the address {address} ({origin}) differs from the address of profile {profile.name}, {own}",
        f"{production}, and this may be another name for it",
    ]
