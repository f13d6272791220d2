"""Warnings about files of secrets and tokens that other users can read."""

from __future__ import annotations

import os
import subprocess

import pytest

from support.profile_files import write_profiles
from support.program import PROGRAM, SECRET_BASE64

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
