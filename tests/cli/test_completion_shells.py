"""Completion in real shells on a terminal: `benchmarks/completion.py` prints how long it takes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from support.program import PROGRAM
from support.typing_shell import SHELLS, Shell

pytestmark = pytest.mark.slow


@pytest.fixture(params=SHELLS)
def typing(request, extcli, environment, tmp_path) -> Iterator[Shell]:
    """A shell with completion, and one poll in the service."""
    if shutil.which(request.param) is None:
        pytest.skip(f"needs {request.param}")
    extcli("vote", "cast", "lunch-menu", "--value", "1")
    extcli("vote", "cast", "my$poll", "--value", "1")
    home = tmp_path / "home"
    home.mkdir()
    (home / "ballots.csv").touch()
    shell = Shell(request.param, PROGRAM.parent, home, {"EXTCLI_URL": environment["EXTCLI_URL"]})
    yield shell
    shell.close()


def test_a_shell_completes_commands_options_files_and_live_names(typing):
    typing.shown_after_tab("extcli acc", "umulate ")
    typing.shown_after_tab("extcli connect un", "ity ")
    typing.shown_after_tab("extcli vote get --prof", "ile ")
    typing.shown_after_tab("extcli vote cast --from bal", "lots.csv ")
    typing.shown_after_tab("extcli vote get lun", "ch-menu ")
    typing.shown_after_tab("extcli vote get my", "$poll ")


def test_a_shell_is_silent_where_nothing_answers(typing):
    typing.nothing_after_tab("extcli --url http://127.0.0.1:1 vote get lun")
