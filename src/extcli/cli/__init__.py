"""Extends Typer for the commands: shared options, fast parsing, confirmation and JSON arguments."""

from extcli.cli.options import argument, flag, option
from extcli.cli.shared_options import Watch, command, noun, noun_and_command, repeat, shared

__all__ = ["Watch", "argument", "command", "flag", "noun", "noun_and_command", "option", "repeat", "shared"]
