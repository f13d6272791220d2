"""Errors in the extensions file, and files that cannot be edited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulator.core.errors import ConfigurationError
from emulator.core.extensions import read_extensions
from extcli.clock import now
from support.extension_files import LAID_OUT, registered
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import CLIENT_ID

WRONG = {
    "not TOML": "[extensions.e\n",
    "not text": "\udcff",
    "an unknown key": '[extensions.e]\nsecret = "QUJD"',
    "another layout": 'extensions = {e = {secrets = ["QUJD"]}}\n',
}


@pytest.mark.parametrize("mistake", WRONG)
@pytest.mark.parametrize("verb", ["init", "list", "rotate", "retire"])
def test_a_file_that_is_invalid_or_cannot_be_edited_stays_as_it_is(extcli, folder: Path, verb: str, mistake: str):
    text = WRONG[mistake].encode("utf-8", "surrogateescape")
    (folder / "extensions.toml").write_bytes(text)
    can_be_read = mistake == "another layout" and verb != "init"

    named = () if verb == "list" else ("--client-id", "other" if mistake == "another layout" else "e")
    result = extcli("extension", verb, *named, exits=0 if can_be_read and verb == "list" else 2)

    assert can_be_read or result.stderr.startswith("extcli: extensions.toml:")
    assert ["extensions.toml"] == [path.name for path in folder.iterdir()]
    assert text == (folder / "extensions.toml").read_bytes()


@pytest.mark.parametrize("words", ["list", "rotate", "retire", "init absent/extensions.toml"])
def test_only_init_creates_the_file(extcli, folder: Path, words: str):
    extcli("extension", *words.split(), exits=2)

    assert [] == list(folder.iterdir())


@pytest.mark.parametrize("verb", ["rotate", "retire", "revoke-all"])
def test_a_change_requires_a_registered_extension(extcli, laid_out: Path, verb: str):
    assert "my-extension, other" in extcli("extension", verb, "--client-id", "nobody", exits=2).stderr
    assert LAID_OUT == laid_out.read_text()


# `extcli extension revoke-all`: every link and issued token of an extension ends at the next reload (ruling T3)


INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_everything_issued_until_now_ends(extcli, folder: Path, laid_out: Path):
    start = now()

    result = extcli("extension", "revoke-all", "--client-id", CLIENT_ID, exits=0)

    instant = registered(folder)[CLIENT_ID].tokens_not_before
    assert start < instant <= now() + 1
    assert 0 == registered(folder)["other"].tokens_not_before
    assert re.fullmatch(INSTANT, dict(result.rows)["tokens_not_before"])
    [line] = [line for line in laid_out.read_text().splitlines() if line not in LAID_OUT.splitlines()]
    assert LAID_OUT == laid_out.read_text().replace(f"{line}\n", "")
    for verb in ("rotate", "retire"):
        extcli("extension", verb, "--client-id", CLIENT_ID, exits=0)
    assert instant == registered(folder)[CLIENT_ID].tokens_not_before
    ours, theirs = extcli("extension", "list", "-o", "json").json
    assert ("tokens_not_before" in ours, "tokens_not_before" in theirs) == (True, False)


@pytest.mark.parametrize("time", ["2020-01-01T00:00:00+01:00", "9999-01-01T00:00:00Z"])
def test_the_time_never_moves_back(extcli, folder: Path, laid_out: Path, time: str):
    laid_out.write_text(f'[extensions.e]\nsecrets = ["QUJD"]\ntokens_not_before = {time}  # a leak\n')
    before = registered(folder)["e"].tokens_not_before

    extcli("extension", "revoke-all", "--client-id", "e")

    assert (before < registered(folder)["e"].tokens_not_before) == time.startswith("2020")
    assert before <= registered(folder)["e"].tokens_not_before
    assert laid_out.read_text().endswith("Z  # a leak\n")


@pytest.mark.parametrize("value", ["2026-11-22T10:00:00", '"2026-11-22T10:00:00Z"', "1"])
def test_a_value_that_is_not_an_instant_is_refused(extcli, laid_out: Path, value: str):
    laid_out.write_text(f'[extensions.e]\nsecrets = ["QUJD"]\ntokens_not_before = {value}\n')

    assert "extensions.e.tokens_not_before" in extcli("extension", "list", exits=2).stderr
    with pytest.raises(ConfigurationError, match=r"extensions\.e\.tokens_not_before"):
        read_extensions(laid_out)


# Warnings about files of secrets and tokens that other users can read


GET = ("vote", "get", "-o", "plain")


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "live.secret"
    path.write_text(SECRET_BASE64)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_readable_secret_file_is_used_and_reported_once(extcli, live, secret_file, mode):
    secret_file.chmod(mode)
    write_profiles(live={"url": live.url, "secret_file": secret_file.name})
    warning = f"other users can read {secret_file}: chmod 600 {secret_file}\n"

    by_variable = extcli(*GET, env={"EXTCLI_SECRET_FILE": str(secret_file)})
    by_profile = extcli("socket", "send", "get", "state", "--data", '{"state_id": "channel"}', "-p", "live")

    assert (0, warning) == (by_variable.exit_code, by_variable.stderr)
    assert (0, 1) == (by_profile.exit_code, by_profile.stderr.count(warning))


def test_a_private_file_is_not_reported_nor_is_any_with_quiet(extcli, secret_file):
    for mode, options in ((0o644, ("-q",)), (0o600, ())):
        secret_file.chmod(mode)
        assert "" == extcli(*GET, *options, env={"EXTCLI_SECRET_FILE": str(secret_file)}).stderr
