"""The token that a command sends, and that no secret is printed."""

from __future__ import annotations

import jwt
import pytest

from support.program import SECRET_BASE64, http_response
from support.service import SECRET, real_seconds

INFO = ("user", "info", "-o", "json")


def signed(**claims: object) -> str:
    return jwt.encode({"exp": real_seconds() + 600, **claims}, SECRET)


def test_a_sandbox_issues_a_token_without_a_secret(extcli):
    info = extcli(*INFO).json

    assert ("viewer", "1001", "U1") == (info["role"], info["channel_id"], info["user_id"])


def test_a_viewer_without_a_user_is_anonymous(extcli):
    info = extcli(*INFO, "--as", "viewer").json

    assert info["opaque_user_id"].startswith("A")


@pytest.mark.parametrize(
    ("acts_as", "role", "channel"),
    [("broadcaster", "broadcaster", "1001"), ("backend", "backend", None), ("admin", "admin", None)],
)
@pytest.mark.parametrize("variables", [{}, {"EXTCLI_SECRET": SECRET_BASE64}], ids=["sandbox", "signed"])
def test_a_backend_or_admin_has_no_channel_by_default(extcli, acts_as, role, channel, variables):
    """Ruling A4: an extension-level token reads all channels."""
    info = extcli(*INFO, "--as", acts_as, env=variables).json

    assert (role, channel) == (info["role"], info.get("channel_id") or None)
    assert "5" == extcli(*INFO, "--as", acts_as, "--channel", "5", env=variables).json["channel_id"]


def test_a_given_token_is_sent(extcli):
    token = signed(role="viewer", channel_id="9", user_id="U9")

    assert "U9" == extcli(*INFO, env={"EXTCLI_TOKEN": token}).json["user_id"]


def test_a_token_can_come_from_a_file(extcli, tmp_path):
    (tmp_path / "token").write_text(signed(role="viewer", channel_id="9", user_id="U9") + "\n")

    assert "U9" == extcli(*INFO, "--token-file", str(tmp_path / "token")).json["user_id"]
    assert 2 == extcli(*INFO, "--token-file", str(tmp_path / "none")).exit_code
    assert 2 == extcli(*INFO, "--token-file", str(tmp_path / "token"), "--as", "viewer").exit_code


def test_as_overrides_a_token_in_the_environment(extcli):
    token = signed(role="viewer", channel_id="9", user_id="U9")

    assert "U2" == extcli(*INFO, "--as", "viewer:U2", env={"EXTCLI_TOKEN": token}).json["user_id"]


def test_a_token_for_all_channels_can_select_one(extcli):
    """Ruling A4."""
    extcli("vote", "cast", "--value", "3", "--channel", "5")
    extcli("vote", "cast", "--value", "4", "--channel", "6")
    token = signed(role="backend")

    assert 2 == len(extcli("vote", "logs", env={"EXTCLI_TOKEN": token}).rows)
    assert ["3"] == [row[2] for row in extcli("vote", "logs", "--channel", "5", env={"EXTCLI_TOKEN": token}).rows]


def test_a_secret_signs_tokens_that_production_accepts(extcli, production):
    variables = {"EXTCLI_URL": production.url, "EXTCLI_SECRET": SECRET_BASE64}

    extcli("vote", "cast", "--value", "3", env=variables, exits=0)


def test_a_secret_can_come_from_a_file(extcli, production, tmp_path):
    (tmp_path / "secret").write_text(SECRET_BASE64 + "\n")
    variables = {"EXTCLI_URL": production.url, "EXTCLI_SECRET_FILE": str(tmp_path / "secret")}

    assert "U1" == extcli(*INFO, env=variables).json["user_id"]
    assert 2 == extcli(*INFO, env={"EXTCLI_SECRET_FILE": str(tmp_path / "none")}).exit_code


def test_production_issues_no_tokens_and_the_error_says_what_to_set(extcli, production):
    result = extcli("vote", "get", "--url", production.url, fails=4)

    assert "POST /v1/e/authtoken was refused: 404 Not Found" in result.stderr
    assert "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN" in result.stderr


def test_a_refused_token_suggests_checking_the_secret(extcli, production):
    result = extcli("vote", "get", "--url", production.url, env={"EXTCLI_SECRET": "d3Jvbmc="}, exits=4)

    assert "is EXTCLI_SECRET (or EXTCLI_SECRET_FILE) the secret of client id my-extension" in result.stderr


def test_a_secret_that_is_not_base64_is_a_usage_error(extcli):
    result = extcli("vote", "get", env={"EXTCLI_SECRET": "not/base64!hunter2"}, fails=2)

    assert "EXTCLI_SECRET is not base64" in result.stderr
    assert "hunter2" not in result.stderr


def test_a_token_of_several_words_is_a_usage_error(extcli):
    result = extcli("vote", "get", env={"EXTCLI_TOKEN": "my-extension hunter2"}, exits=2)

    assert "hunter2" not in result.stderr


def test_an_expired_token_gets_advice(extcli):
    result = extcli("vote", "get", env={"EXTCLI_TOKEN": signed(role="viewer", exp=1)}, exits=4)

    assert "expired" in result.stderr
    assert "extcli token inspect" in result.stderr


def test_a_service_without_a_clock_keeps_the_refusal(extcli, answering):
    """Published services have no clock endpoint."""
    refusal = http_response("401 Unauthorized", '{"reason":"token expired"}')
    url = answering(refusal, http_response("404 Not Found"))

    result = extcli("vote", "get", "--url", url, env={"EXTCLI_SECRET": SECRET_BASE64}, exits=4)

    assert "token expired" in result.stderr


@pytest.mark.parametrize(
    "args", [("vote", "cast", "--value", "3"), ("vote", "cast", "--value", "300"), ("token", "mint")]
)
def test_no_secret_is_printed_on_standard_error(extcli, args):
    result = extcli("-v", *args, env={"EXTCLI_SECRET": SECRET_BASE64})

    assert SECRET_BASE64 not in result.stderr
    assert "eyJ" not in result.stderr


def test_verbose_output_masks_the_token(extcli, live):
    result = extcli("vote", "get", "lunch", "-v", env={"EXTCLI_SECRET": SECRET_BASE64})

    assert [f"> GET {live.url}/v1/e/vote?id=lunch", "> authorization: my-extension ***"] == result.stderr.splitlines()[
        :2
    ]
    assert result.stderr.splitlines()[2].startswith("< 200 OK")


def test_no_option_takes_a_secret(extcli):
    for command in ([], ["token", "mint"], ["vote", "get"]):
        assert "--secret" not in extcli(*command, "--help").stdout
        assert 2 == extcli(*command, "--secret", "x").exit_code
