"""`extcli completion`: the scripts that complete commands and live names in a shell."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import extcli.completion
from extcli.cli import argument, shared
from extcli.session import Session


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
    namespaces and profiles. Names come from a sandbox at http:// only. Completion never uses a
    secret or a token, starts no service, and is silent if no service responds.

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
