"""`extcli help`: topics that concern many commands. `extcli completion`: scripts that complete commands in a shell."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import extcli.completion
from extcli.cli import argument, shared
from extcli.config.settings import VARIABLES
from extcli.errors import MEANINGS
from extcli.output.columns import Column, listing, shown, table
from extcli.output.printer import View
from extcli.session import Session


class Topic(StrEnum):
    """A topic."""

    ALL = "all"
    EXIT_CODES = "exit-codes"
    ENV = "env"
    SEED = "seed"


def _columns(facts: list[dict[str, Any]]) -> list[Column]:
    return [Column(name, heading="", text=shown, folds=True) for name in facts[0]]


_FACTS = View(
    table=lambda facts: table(_columns(facts), facts),
    rows=lambda facts: listing("", *_columns(facts)).rows(facts),
    items=lambda facts: facts,
)


@shared
def help(
    session: Session,
    topic: list[str] | None = argument(
        "all|exit-codes|env|seed", "A topic, or a command such as vote cast. `all` lists all commands.", None
    ),
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
        case [Topic.ALL]:
            from extcli.app import full_help

            session.output.line(full_help())
        case [Topic.EXIT_CODES]:
            session.output.show_value([{"code": int(code), "meaning": text} for code, text in MEANINGS.items()], _FACTS)
        case [Topic.ENV]:
            session.output.show_value(_variables(), _FACTS)
        case [Topic.SEED]:
            from extcli.seeds.schema import reference

            fields = [{"field": path, "accepts": accepts, "meaning": meaning} for path, accepts, meaning in reference()]
            session.output.show_value(fields, _FACTS)
            session.output.note("`extcli seed example` prints a seed with all of them")
        case words:
            from extcli.app import run

            run([*words, "--help"])


def _variables() -> list[dict[str, str]]:
    """Return the variables of the settings and of the options of `serve`."""

    from extcli.app import load_noun

    meanings = dict(VARIABLES)
    for option in load_noun("serve").params:
        if option.envvar and not option.hidden:
            meanings[str(option.envvar)] = f"serve {option.opts[0]}: {option.help or ''}"
    return [{"variable": name, "meaning": meaning} for name, meaning in meanings.items()]


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
    namespaces and profiles. Names come from a sandbox at http://, or on this machine at https://.
    Completion never uses a secret or a token, starts no service, and is silent if no service
    responds.

    The script for PowerShell is Typer's, and is not tested.

    \b
    Examples:
      source <(extcli completion bash)
      extcli completion fish > ~/.config/fish/completions/extcli.fish
    """
    if shell is Shell.POWERSHELL:
        from typer._completion_shared import get_completion_script

        from extcli.completion.shells import VARIABLE

        script = get_completion_script(prog_name="extcli", complete_var=VARIABLE, shell=shell.value)
        session.output.body([f"# Written by Typer, and not tested with extcli.\n{script}\n".encode()])
        return
    folder = Path(extcli.completion.__file__).parent / "scripts"
    session.output.body([(folder / f"extcli.{shell}").read_bytes()])
