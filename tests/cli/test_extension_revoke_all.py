"""`extcli extension revoke-all`: every link and issued token of an extension ends at the next reload (ruling T3)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulator.config.extensions import read_extensions
from emulator.errors import ConfigurationError
from extcli.clock import now
from support.extension_files import LAID_OUT, registered
from support.service import CLIENT_ID

INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def laid_out(folder: Path) -> Path:
    """A file of two extensions with comments."""
    (folder / "kept.secret").write_text("ZmlsZQ==")
    (folder / "extensions.toml").write_text(LAID_OUT)
    return folder / "extensions.toml"


def test_everything_issued_until_now_ends(extcli, folder: Path, laid_out: Path):
    start = now()

    result = extcli("extension", "revoke-all", "--client-id", CLIENT_ID)

    instant = registered(folder)[CLIENT_ID].tokens_not_before
    assert start < instant <= now() + 1
    assert 0 == registered(folder)["other"].tokens_not_before
    assert (0, ["client_id", CLIENT_ID]) == (result.exit_code, result.rows[0])
    assert re.fullmatch(INSTANT, dict(result.rows)["tokens_not_before"])
    assert "kill -HUP <pid>" in result.stderr


def test_only_one_line_is_added_and_all_comments_stay(extcli, laid_out: Path):
    extcli("extension", "revoke-all", "--client-id", CLIENT_ID)

    added = [line for line in laid_out.read_text().splitlines() if line not in LAID_OUT.splitlines()]
    kept = [line for line in laid_out.read_text().splitlines() if line not in added]
    assert [True] == [bool(re.fullmatch(f"tokens_not_before = {INSTANT}", line)) for line in added]
    assert LAID_OUT.splitlines() == kept


def test_a_second_run_moves_the_time_and_keeps_its_comment(extcli, folder: Path, laid_out: Path):
    laid_out.write_text('[extensions.e]\nsecrets = ["QUJD"]\ntokens_not_before = 2020-01-01T00:00:00+01:00  # a leak\n')
    before = registered(folder)["e"].tokens_not_before

    extcli("extension", "revoke-all", "--client-id", "e")

    assert 1_577_833_200_000 == before < registered(folder)["e"].tokens_not_before
    assert laid_out.read_text().endswith("Z  # a leak\n")


def test_the_time_never_moves_back(extcli, folder: Path, laid_out: Path):
    laid_out.write_text('[extensions.e]\nsecrets = ["QUJD"]\ntokens_not_before = 9999-01-01T00:00:00Z\n')
    before = registered(folder)["e"].tokens_not_before

    extcli("extension", "revoke-all", "--client-id", "e")

    assert before == registered(folder)["e"].tokens_not_before


def test_an_unknown_extension_changes_nothing(extcli, laid_out: Path):
    result = extcli("extension", "revoke-all", "--client-id", "nobody")

    assert (2, LAID_OUT) == (result.exit_code, laid_out.read_text())


def test_other_commands_keep_the_time(extcli, folder: Path, laid_out: Path):
    extcli("extension", "revoke-all", "--client-id", CLIENT_ID)
    instant = registered(folder)[CLIENT_ID].tokens_not_before

    codes = [extcli("extension", verb, "--client-id", CLIENT_ID).exit_code for verb in ("rotate", "retire")]

    assert instant
    assert ([0, 0], instant) == (codes, registered(folder)[CLIENT_ID].tokens_not_before)


def test_list_shows_the_time(extcli, laid_out: Path):
    extcli("extension", "revoke-all", "--client-id", CLIENT_ID)

    ours, theirs = extcli("extension", "list", "-o", "json").json

    assert re.fullmatch(INSTANT, ours["tokens_not_before"])
    assert "tokens_not_before" not in theirs


@pytest.mark.parametrize(
    "value", ["2026-11-22T10:00:00", "2026-11-22", "10:00:00", '"2026-11-22T10:00:00Z"', "1", "true"]
)
def test_a_value_that_is_no_instant_is_refused(extcli, laid_out: Path, value: str):
    laid_out.write_text(f'[extensions.e]\nsecrets = ["QUJD"]\ntokens_not_before = {value}\n')

    listed = extcli("extension", "list", exits=2)

    assert "extensions.e.tokens_not_before must be a time with an offset" in listed.stderr
    with pytest.raises(ConfigurationError, match=r"extensions\.e\.tokens_not_before: must be a time with an offset"):
        read_extensions(laid_out)
