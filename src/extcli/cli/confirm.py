"""Asks before something is lost that cannot be brought back, and names the production service that it is lost from."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from extcli.config import settings
from extcli.errors import CliError, UsageError
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible

if TYPE_CHECKING:
    from extcli.config.profiles import Profile
    from extcli.config.resolver import Resolver
    from extcli.session import Session


Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
"""For commands that may ask before something is lost."""


class NotConfirmed(CliError):
    """Somebody was asked, and said no: as where nobody can be asked, the command came without the yes it needs."""

    exit_code = UsageError.exit_code


def in_production(session: Session) -> bool:
    """Whether what is lost would be lost from production."""
    return session.resolver.production() is not None


def guard(session: Session, loss: str, *, yes: bool, over_socket: bool = False) -> None:
    """Ask before production loses something; anything else loses it without a word. Raises unless it may be lost."""
    if not yes and in_production(session):
        ask(session, [visible(loss)], "Go on?", over_socket=over_socket)


def guarded(loses: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a function --yes, without which it asks before production loses what the text says.

    In the text `{poll}` stands for that argument.
    """

    def careful(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(session: Session, *, yes: bool, **values: Any) -> None:
            guard(session, loses.format_map(values), yes=yes)
            function(session, **values)

        own = inspect.signature(function, eval_str=True).parameters.values()
        asked = inspect.Parameter("yes", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Yes)
        run.__signature__ = inspect.Signature([*own, asked])  # type: ignore[attr-defined]
        return run

    return careful


def ask(session: Session, losses: Sequence[str], question: str, *, over_socket: bool = False) -> None:
    """Show what would be lost and where, and ask; raises unless the answer is yes.

    Without a terminal nobody can answer, which is `UsageError`.
    """
    if profile := session.resolver.production():
        losses = [*_where(session.resolver, profile, over_socket=over_socket), *losses]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "this needs a yes, and there is no terminal to ask at",
            why="; ".join(losses),
            fix="use --yes if that is what you want",
        )
    write_stderr(losses)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.buffer.readline(200).decode(errors="replace")
    if not answer.endswith("\n"):
        write_stderr([""])  # Ctrl-D leaves the cursor behind the question
    if answer.strip().lower() not in ("y", "yes"):
        raise NotConfirmed("nothing was changed")


def _where(resolver: Resolver, profile: Profile, *, over_socket: bool) -> list[str]:
    """Which service it is, and if the profile does not say this address itself, what leads there."""
    address = resolver.ws_url() if over_socket else resolver.url()
    production = f"profile {profile.name} is production"
    if profile.is_of(address):
        return [f"{production}: {address}"]
    led = (resolver.told_socket() if over_socket else None) or resolver.find(settings.URL)
    by = led.origin if led else "the default"
    own = visible(profile.texts["url"])
    return [
        f"this goes to {address} ({by}), which is not an address of profile {profile.name}, {own}",
        f"{production}, and this may be another name of it",
    ]
