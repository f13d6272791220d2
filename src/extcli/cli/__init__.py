"""Extends Typer for the commands: shared options, fast parsing, confirmation and JSON arguments."""

from extcli.cli.options import argument, flag, option
from extcli.cli.shared_options import Watch, command, noun, noun_and_command, shared, show_live

__all__ = ["Watch", "argument", "command", "flag", "noun", "noun_and_command", "option", "shared", "show_live"]
