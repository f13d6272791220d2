"""The root command. Nouns are imported when they are used, so that every command starts fast."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from extcli import __version__
from extcli.cli.shared_options import Command, Group, remembers_shared_options

NOUNS = {
    "serve": "Start the service on this machine.",
    "extension": "Registered extensions: their file, their secrets.",
    "vote": "Polls: vote, count, log, clear and define.",
    "rank": "Rankings: submit answers, see the most frequent.",
    "accumulate": "Buffers: collect small JSON blobs and read them.",
    "broadcast": "Messages to all who listen now.",
    "listen": "Print events as they arrive.",
    "codes": "Reward codes: upload, mark winners, redeem.",
    "state": "State stores: read, replace and patch.",
    "store-config": "Config stores: read, replace and patch.",
    "token": "Tokens: sign, explain, ask a sandbox, refresh.",
    "pin": "PINs: link a game to a channel, step by step.",
    "socket": "The WebSocket: send a request, or talk by hand.",
    "user": "Users: who a token is, who shared their identity.",
    "clock": "The emulator's clock: read, advance, set, freeze.",
    "reset": "Empty the emulator: data, clock, everything.",
    "connect": "Print what points a client at the service.",
    "profile": "Profiles: several deployments by name.",
    "config": "Settings: what is in force, and why.",
    "wait": "Wait until the service is ready.",
    "api": "Call any endpoint, with credentials.",
}


class Nouns(Group):
    """Knows the nouns by name and summary, and imports one when it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in NOUNS.items():
            self.add_command(TyperGroup(name=name, help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, _imported(name) if name in NOUNS else command, rest


def _imported(name: str) -> Any:
    """The `app` of the noun's module; of a noun without verbs, its one function."""
    attribute = name.replace("-", "_")
    module = import_module(f"extcli.commands.{attribute}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        app.command(name, cls=Command)(getattr(module, attribute))
    command: Any = typer.main.get_command(app)
    command.name = name
    return command


def _print_version(asked: bool) -> None:
    if asked:
        from platform import platform, python_version

        typer.echo(f"extcli {__version__}, Python {python_version()}, {platform(terse=True)}")
        raise typer.Exit


app = typer.Typer(
    cls=Nouns,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
@remembers_shared_options
def extcli(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Run the streaming-extension backend on this machine, and drive it or a real one.

    \b
    extcli serve &                        start a service
    extcli vote cast --value 3            vote
    extcli vote get                       count
    extcli clock advance 8d               see the poll end after a week
    """


def run(args: list[str] | None) -> int | None:
    """Parse and run; returns an exit code, or `None` for success. Raises what Typer and Python raise."""
    code: int | None = app(args, prog_name="extcli", standalone_mode=False)
    return code
