"""`extcli help`: topics that concern many commands. `extcli completion`: scripts that complete commands in a shell."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

from extcli.cli import argument, shared
from extcli.completion import SHELLS
from extcli.config.settings import VARIABLES
from extcli.errors import EXIT_CODE_MEANINGS
from extcli.output.columns import Column, listing
from extcli.session import Session


def _show_records(session: Session, records: list[dict[str, Any]]) -> None:
    """Print records, with a column for each of their members."""
    columns = [Column(name, heading="") for name in records[0]]
    session.output.show_value(records, listing("", *columns))


@shared
def help(
    session: Session,
    topic: list[str] | None = argument("all|exit-codes|env|seed", "A topic, or a command such as vote cast.", None),
) -> None:
    """List all commands, or explain exit codes, variables, the content of a seed, or a command.

    \b
    Examples:
      extcli help all
      extcli help exit-codes
      extcli help vote cast
      extcli help env -o jsonl
    """
    match topic or []:
        case ["all"]:
            from extcli.app import full_help

            session.output.line(full_help())
        case ["exit-codes"]:
            _show_records(session, [{"code": int(code), "meaning": text} for code, text in EXIT_CODE_MEANINGS.items()])
        case ["env"]:
            _show_records(session, [{"variable": name, "meaning": text} for name, text in _variable_meanings().items()])
        case ["seed"]:
            from extcli.seeds import reference

            names = ("field", "accepts", "meaning")
            _show_records(session, [dict(zip(names, field, strict=True)) for field in reference()])
            session.output.note("`extcli seed example` prints a seed with all these fields")
        case words:
            from extcli.app import run

            run([*words, "--help"])


def _variable_meanings() -> dict[str, str]:
    """Return the variables of the settings and of the options of `serve`, with their meanings."""
    from extcli.app import load_noun

    meanings = dict(VARIABLES)
    for option in load_noun("serve").params:
        if option.envvar and not option.hidden:
            meanings[str(option.envvar)] = f"serve {option.opts[0]}: {option.help or ''}"
    return meanings


class Shell(StrEnum):
    """A shell with a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


@shared
def completion(session: Session, shell: Shell = argument("bash|zsh|fish|powershell", "The shell.")) -> None:
    """Print the completion script of a shell.

    It completes commands, options, file names, and live names: polls, rankings, buffers, code sets,
    namespaces and profiles. Names come from a sandbox; with https://, only from one on this machine.
    Completion never uses a secret or a token, starts no service, and is silent if no service
    responds.

    The script for PowerShell is not tested.

    \b
    Examples:
      source <(extcli completion bash)
      extcli completion fish > ~/.config/fish/completions/extcli.fish
    """
    session.output.body([(Path(SHELLS) / f"extcli.{shell}").read_bytes()])
