"""Errors in the extensions file, and files that cannot be edited."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from emulator.config.extensions import read_extensions
from emulator.errors import ConfigurationError
from extcli.clock import now
from support.extension_files import LAID_OUT, registered
from support.profile_files import write_profiles
from support.program import PROGRAM, SECRET_BASE64
from support.service import CLIENT_ID

WRONG = {
    "not TOML": ("[extensions.e\n", "is not TOML"),
    "a huge number": ("a = " + "1" * 5_000, "is not TOML"),
    "not text": ("\udcff", "is not TOML"),
    "an unknown key": ('[extensions.e]\nsecret = "QUJD"', ":2:1: extensions.e.secret: unknown field"),
}


@pytest.mark.parametrize("mistake", WRONG)
@pytest.mark.parametrize("verb", ["init", "list", "rotate", "retire"])
def test_an_invalid_file_is_an_error_that_names_the_key(extcli, folder: Path, verb: str, mistake: str):
    text, expected = WRONG[mistake]
    (folder / "extensions.toml").write_bytes(text.encode("utf-8", "surrogateescape"))

    result = extcli("extension", verb, *(() if verb == "list" else ("--client-id", "e")), fails=2)

    assert re.match(f"extcli: extensions.toml.*{re.escape(expected)}", result.stderr)
    assert ["extensions.toml"] == [path.name for path in folder.iterdir()]
    assert text.encode("utf-8", "surrogateescape") == (folder / "extensions.toml").read_bytes()


def test_a_layout_that_cannot_be_edited_is_left_unchanged(extcli, folder: Path):
    text = 'extensions = {e = {secrets = ["QUJD"]}}\n'
    (folder / "extensions.toml").write_text(text)

    result = extcli("extension", "init", "--client-id", "other", exits=2)

    assert result.stderr.startswith("extcli: extensions.toml: cannot edit the layout of extensions")
    assert text == (folder / "extensions.toml").read_text()
    assert 1 == len(list(folder.iterdir()))


@pytest.mark.parametrize("verb", ["list", "rotate", "retire"])
def test_only_init_creates_the_file(extcli, folder: Path, verb: str):
    result = extcli("extension", verb, exits=2)

    assert result.stderr.startswith("extcli: extensions.toml: cannot be read: No such file or directory\n")
    assert "extcli extension init" in result.stderr
    assert [] == list(folder.iterdir())


def test_a_missing_folder_is_an_error(extcli, folder: Path):
    result = extcli("extension", "init", "absent/extensions.toml", exits=2)

    assert "cannot write absent/my-extension.secret: No such file or directory" in result.stderr


@pytest.mark.parametrize("verb", ["rotate", "retire"])
def test_rotate_and_retire_require_a_registered_extension(extcli, folder: Path, verb: str):
    (folder / "extensions.toml").write_text(LAID_OUT)

    result = extcli("extension", verb, "--client-id", "nobody", exits=2)

    assert "extensions.toml: extensions.nobody is not registered" in result.stderr
    assert "registered: my-extension, other" in result.stderr
    assert LAID_OUT == (folder / "extensions.toml").read_text()


# `extcli extension revoke-all`: every link and issued token of an extension ends at the next reload (ruling T3)


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
def test_a_value_that_is_not_an_instant_is_refused(extcli, laid_out: Path, value: str):
    laid_out.write_text(f'[extensions.e]\nsecrets = ["QUJD"]\ntokens_not_before = {value}\n')

    listed = extcli("extension", "list", exits=2)

    assert "extensions.e.tokens_not_before: must be a time with an offset" in listed.stderr
    with pytest.raises(ConfigurationError, match=r"extensions\.e\.tokens_not_before: must be a time with an offset"):
        read_extensions(laid_out)


# Warnings about files of secrets and tokens that other users can read


GET = ("vote", "get", "-o", "plain")


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "live.secret"
    path.write_text(SECRET_BASE64)
    return path


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_readable_secret_file_is_used_and_reported_once(extcli, live, secret_file, mode):
    secret_file.chmod(mode)
    write_profiles(live={"url": live.url, "secret_file": secret_file.name})
    warning = f"other users can read {secret_file}: chmod 600 {secret_file}\n"

    by_variable = extcli(*GET, env={"EXTCLI_SECRET_FILE": str(secret_file)})
    by_profile = extcli("socket", "send", "get", "state", "--data", '{"state_id": "channel"}', "-p", "live")

    assert (0, warning) == (by_variable.exit_code, by_variable.stderr)
    assert (0, 1) == (by_profile.exit_code, by_profile.stderr.count(warning))


def test_a_readable_token_file_is_reported(extcli, tmp_path):
    token = tmp_path / "token"
    token.write_text(extcli("token", "sandbox").stdout)
    token.chmod(0o644)

    assert f"other users can read {token}" in extcli(*GET, "--token-file", str(token)).stderr


def test_a_private_file_is_not_reported_nor_is_any_with_quiet(extcli, secret_file):
    secret_file.chmod(0o644)
    assert "" == extcli(*GET, "-q", env={"EXTCLI_SECRET_FILE": str(secret_file)}).stderr

    secret_file.chmod(0o600)
    assert "" == extcli(*GET, env={"EXTCLI_SECRET_FILE": str(secret_file)}).stderr


def test_a_pipe_is_not_reported(environment):
    script = f'EXTCLI_SECRET_FILE=<(echo {SECRET_BASE64}) exec "$0" vote get'

    run = subprocess.run(["bash", "-c", script, PROGRAM], env=os.environ, capture_output=True, timeout=20, check=True)

    assert b"" == run.stderr


def test_a_readable_file_is_reported_when_it_is_configured(extcli, secret_file):
    secret_file.chmod(0o644)
    named = ("--secret-file", str(secret_file))

    added = extcli("profile", "add", "live", "--url", "https://ext.example", *named)
    changed = extcli("config", "set", "secret_file", str(secret_file), "-p", "live")

    for result in (added, changed):
        assert 0 == result.exit_code
        assert f"other users can read {secret_file}" in result.stderr
