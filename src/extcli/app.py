"""The root command. Imports a noun only when it is used, so that every command starts fast."""

from __future__ import annotations

from importlib import import_module
from textwrap import wrap
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from extcli import __version__
from extcli.cli.shared_options import Command, Group

SECTIONS = {
    "The emulator": {
        "serve": "Start the service on this machine.",
        "exec": "Start a service, run a command with it, and stop it.",
        "status": "List the services on this machine.",
        "stop": "Stop a service on this machine.",
        "open": "Open the dashboard of the emulator in the browser.",
        "demo": "Play a demo stream in the browser.",
        "rig": "Print the URL of a page that shows an extension's pages.",
        "ns": "Namespaces of the emulator: list, create, fork, delete.",
        "seed": "Seeds: files with the data a test begins with.",
        "snapshot": "Snapshots: save, load and compare all data.",
        "data": "The data file: back up, verify, restore.",
        "contents": "List the emulator's data: polls, stores, codes…",
        "clock": "The emulator's clock: read, advance, set, freeze.",
        "fault": "Faults: make requests and sockets fail on purpose.",
        "reset": "Delete all data of the emulator, reset its clock.",
    },
    "Data of an extension": {
        "vote": "Polls: define, vote, count, log, delete.",
        "rank": "Rankings: submit answers, list the most frequent.",
        "accumulate": "Buffers: collect small JSON documents.",
        "codes": "Reward codes: upload, mark winners, redeem.",
        "state": "State stores: read, replace and patch.",
        "store-config": "Config stores: read, replace and patch.",
        "json-store": "JSON stores: small objects by id.",
        "trivia": "Trivia: questions, votes, teams, leaderboard.",
        "bits": "Purchases: post receipts, list, validate, refund.",
        "broadcast": "Broadcasts: send a message to all listeners.",
        "datastream": "Send events from a page to the channel's games.",
    },
    "Tokens and connections": {
        "token": "Tokens: sign, request, explain.",
        "link": "Links of games to channels: list, use, end.",
        "pin": "PINs: link a game to a channel.",
        "user": "Users: the caller, and users who shared their id.",
        "socket": "The WebSocket: send requests, or open a session.",
        "listen": "Print events when they arrive.",
        "connect": "Print the code that connects a client to the service.",
        "new": "Make a small extension, with pages and tests.",
        "api": "Call any endpoint, with credentials.",
    },
    "Tests and diagnosis": {
        "wait": "Wait until the service is ready, or a condition is met.",
        "expect": "Check a condition: votes, stores, sockets and more.",
        "explain": "Explain a refused request, or a rule.",
        "logs": "The journal: requests, responses and reasons; follow, export, repeat.",
        "simulate": "Simulate crowds of viewers, and check exact results.",
        "doctor": "Find problems of the setup, and say how to fix them.",
        "conform": "Check that a service follows the specification.",
    },
    "This program": {
        "profile": "Profiles: named sets of settings, one per deployment.",
        "config": "Settings: the effective values and their origin.",
        "extension": "Registered extensions and their secrets.",
        "completion": "Print the completion script of a shell.",
        "help": "List all commands, or explain exit codes, variables, seeds.",
    },
}
"""The nouns with their summaries, by the title of their section in the help."""
NOUNS = {noun: summary for nouns in SECTIONS.values() for noun, summary in nouns.items()}


_SHARED_FILES = {
    "broadcast": ["datastream"],
    "config": ["profile"],
    "conform": ["doctor"],
    "contents": ["clock", "reset"],
    "help": ["completion"],
    "open": ["demo", "rig"],
    "rank": ["accumulate"],
    "serve": ["exec"],
    "snapshot": ["seed"],
    "socket": ["listen"],
    "status": ["stop"],
    "stores": ["state", "store-config", "json-store"],
    "token": ["link", "user"],
    "wait": ["expect"],
}
"""The nouns of each file that has nouns besides its own."""
_FILE_OF_NOUN = {noun: file for file, nouns in _SHARED_FILES.items() for noun in nouns}


FIRST_COMMANDS = (
    ("extcli serve", "start the service on http://127.0.0.1:8282"),
    ("extcli vote cast lunch 3", "vote for option 3 of the poll lunch"),
    ("extcli vote get lunch", "print the result"),
    ("extcli open", "open the dashboard in the browser"),
)
"""The first commands to try, with what they do."""


class NounGroup(Group):
    """The group of all nouns (such as `vote`): lists them without importing, and imports the noun that is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name in NOUNS:
            self.add_command(TyperGroup(name=name))  # a stand-in, for suggestions

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return load_noun(cmd_name) if cmd_name in NOUNS else super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] == "version":
            _print_version(True)
        return super().resolve_command(ctx, ["user", "info", *args[1:]] if args[0] == "whoami" else args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, NOUNS))
        for title, nouns in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(noun.ljust(width), summary) for noun, summary in nouns.items()])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write one screen: what extcli is, the first commands, and the names of all nouns."""
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("A local emulator of the Muxy extension backend, with commands for any deployment.")
        with formatter.section("The first minute"):
            formatter.write_dl(FIRST_COMMANDS)
        with formatter.section("Commands"):
            for title, nouns in SECTIONS.items():
                lines = wrap(" ".join(nouns), formatter.width - 26, break_on_hyphens=False)
                for start, line in zip([title, *[""] * len(lines)], lines, strict=False):
                    formatter.write(f"  {start:22}  {line}\n")
        formatter.write_paragraph()
        formatter.write_text(
            "`extcli COMMAND --help` explains a command; `extcli help all` lists all, with shared options."
        )


def module_of(noun: str) -> str:
    """Return the name of the module of a noun."""
    return f"extcli.commands.{_FILE_OF_NOUN.get(noun, noun)}"


def load_noun(name: str) -> Any:
    """Import the module of a noun and return its command: its app, or its function."""
    attribute = name.replace("-", "_")
    module = import_module(module_of(name))
    app = getattr(module, f"{attribute}_app", None if name in _FILE_OF_NOUN else getattr(module, "app", None))
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
    cls=NounGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 200},
)


@app.callback()
def extcli(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Run an extension backend on this machine, and control it or a deployed one.

    \b
    extcli serve &                        start a service
    extcli vote cast --value 3            vote
    extcli vote get                       print the result
    extcli clock advance 8d               polls expire after a week
    """


def full_help() -> str:
    """Return the list of all nouns with their summaries, and the shared options."""
    root: Any = typer.main.get_command(app)
    with root.make_context("extcli", [], resilient_parsing=True) as context:
        formatter = context.make_formatter()
        Group.format_help(root, context, formatter)
        return str(formatter.getvalue())


def run(args: list[str]) -> int | None:
    """Run these arguments and return the exit code, or `None` for success. Raises errors of Typer and of Python."""
    code: int | None = app(with_dry_run_value(args), prog_name="extcli", standalone_mode=False)
    return code


def with_dry_run_value(args: list[str]) -> list[str]:
    """Replace `--dry-run` with its form with a value, because Typer has no options with optional values."""
    end = args.index("--") if "--" in args else len(args)
    return [f"{each}=request" if each == "--dry-run" and at < end else each for at, each in enumerate(args)]
