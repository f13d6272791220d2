"""Commands that edit one file at the same time: every change whose command succeeded is in the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import pytest

from extcli.config.profiles import Profiles
from extcli.extensions import list_extensions
from support import preloaded
from support.profile_files import config_file, write_profiles

NAMES = [f"p{number}" for number in range(5)]


def run_all(*calls: Sequence[str], files: Sequence[Path] = ()) -> None:
    """Run these commands at the same time, on one of the profiles files in turn; all must succeed."""
    variables = [{"EXTCLI_CONFIG": str(file)} for file in files] or [{}]
    processes = [preloaded.start(call, os.environ | each) for call, each in zip(calls, cycle(variables), strict=False)]
    for process in processes:
        with process:
            printed = process.communicate(20)
            assert 0 == process.returncode, printed


def parallel(*args: str) -> list[list[str]]:
    """Return the calls of one command with each name in the place of `NAME`."""
    return [[each.replace("NAME", name) for each in args] for name in NAMES]


def profiles() -> dict[str, dict[str, str]]:
    return {name: dict(profile.texts) for name, profile in Profiles(config_file()).by_name.items()}


@pytest.fixture
def written(environment: dict[str, str]) -> None:
    write_profiles(**{name: {"url": "http://127.0.0.1:1", "channel": "7"} for name in NAMES})


@pytest.fixture
def registered(extcli: Callable[..., object], folder: Path) -> Path:
    for name in NAMES:
        extcli("extension", "init", "--client-id", name, exits=0)
    return folder / "extensions.toml"


def test_profiles_added_at_once_are_all_kept(environment, tmp_path):
    file = tmp_path / "new" / "config.toml"

    run_all(*parallel("profile", "add", "NAME", "--url", "http://127.0.0.1:1"), files=[file])

    assert {*NAMES} == {*Profiles(file).by_name}
    assert [file.name] == [each.name for each in file.parent.iterdir() if "config" in each.name]


def test_profiles_removed_selected_and_changed_at_once_keep_each_change(written):
    changed = [["config", "set", "channel", "8", "-p", "p2"], ["config", "unset", "channel", "-p", "p3"]]

    run_all(["profile", "rm", "p0"], ["profile", "rm", "p1"], *changed, ["profile", "use", "p4"])

    assert {"p2": "8", "p3": None, "p4": "7"} == {name: each.get("channel") for name, each in profiles().items()}
    assert "p4" == Profiles(config_file()).default


def test_extensions_registered_at_once_are_all_kept(environment, folder: Path):
    run_all(*parallel("extension", "init", "--client-id", "NAME"))

    assert {*NAMES} == {each["client_id"] for each in list_extensions(folder / "extensions.toml")}
    assert {"extensions.toml", *(f"{name}.secret" for name in NAMES)} == {each.name for each in folder.iterdir()}


def test_extensions_changed_at_once_keep_each_change(registered: Path):
    calls = [["extension", verb, "--client-id", name] for verb in ("rotate", "revoke-all") for name in NAMES[:3]]

    run_all(*calls)

    changed = [(len(each["sources"]), "tokens_not_before" in each) for each in list_extensions(registered)]
    assert [(2, True)] * 3 + [(1, False)] * 2 == changed


def test_one_file_under_two_names_is_edited_in_turn(environment, tmp_path):
    (link := tmp_path / "link.toml").symlink_to(config_file())
    config_file().touch()

    run_all(*parallel("profile", "add", "NAME", "--url", "http://127.0.0.1:1"), files=[link, config_file()])

    assert {*NAMES} == {*profiles()}


def test_edits_of_one_poll_at_once_all_take_effect(extcli):
    extcli("vote", "define", "lunch", "--prompt", "before")

    edits = (("--prompt", "after"), ("--total-votes", "4"), ("--user-data", "4"))
    run_all(*[["vote", "edit", "lunch", *each] for each in edits])

    found = extcli("vote", "config", "lunch", "-o", "json").json
    assert ("after", 4, 4) == (found["prompt"], found["totalVotesPerUser"], found["userData"])
