"""By which token a command calls, and that no secret ever shows."""

from __future__ import annotations

import base64
import json

import jwt
import pytest

from support.program import SECRET_BASE64, http_response
from support.service import SECRET, real_seconds

INFO = ("user", "info", "-o", "json")


def signed(**claims: object) -> str:
    return jwt.encode({"exp": real_seconds() + 600, **claims}, SECRET)


def test_a_sandbox_hands_out_a_token_to_whoever_asks(extcli):
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
def test_a_backend_or_admin_has_no_channel_unless_told(extcli, acts_as, role, channel, variables):
    """Ruling A4: an extension-level token reads all channels."""
    info = extcli(*INFO, "--as", acts_as, env=variables).json

    assert (role, channel) == (info["role"], info.get("channel_id") or None)
    assert "5" == extcli(*INFO, "--as", acts_as, "--channel", "5", env=variables).json["channel_id"]


def test_a_given_token_is_used(extcli):
    token = signed(role="viewer", channel_id="9", user_id="U9")

    assert "U9" == extcli(*INFO, env={"EXTCLI_TOKEN": token}).json["user_id"]


def test_a_token_can_come_from_a_file(extcli, tmp_path):
    (tmp_path / "token").write_text(signed(role="viewer", channel_id="9", user_id="U9") + "\n")

    assert "U9" == extcli(*INFO, "--token-file", str(tmp_path / "token")).json["user_id"]
    assert 2 == extcli(*INFO, "--token-file", str(tmp_path / "none")).exit_code
    assert 2 == extcli(*INFO, "--token-file", str(tmp_path / "token"), "--as", "viewer").exit_code


def test_as_overrides_a_token_that_lies_in_the_environment(extcli):
    token = signed(role="viewer", channel_id="9", user_id="U9")

    assert "U2" == extcli(*INFO, "--as", "viewer:U2", env={"EXTCLI_TOKEN": token}).json["user_id"]


def test_a_token_for_all_channels_may_name_one(extcli):
    """Ruling A4."""
    extcli("vote", "cast", "--value", "3", "--channel", "5")
    extcli("vote", "cast", "--value", "4", "--channel", "6")
    token = signed(role="backend")

    assert 2 == len(extcli("vote", "logs", env={"EXTCLI_TOKEN": token}).rows)
    assert ["3"] == [row[2] for row in extcli("vote", "logs", "--channel", "5", env={"EXTCLI_TOKEN": token}).rows]


def test_a_secret_signs_tokens_that_production_takes(extcli, production):
    variables = {"EXTCLI_URL": production.url, "EXTCLI_SECRET": SECRET_BASE64}

    result = extcli("vote", "cast", "--value", "3", env=variables)

    assert 0 == result.exit_code


def test_a_secret_can_lie_in_a_file(extcli, production, tmp_path):
    (tmp_path / "secret").write_text(SECRET_BASE64 + "\n")
    variables = {"EXTCLI_URL": production.url, "EXTCLI_SECRET_FILE": str(tmp_path / "secret")}

    assert "U1" == extcli(*INFO, env=variables).json["user_id"]
    assert 2 == extcli(*INFO, env={"EXTCLI_SECRET_FILE": str(tmp_path / "none")}).exit_code


def test_production_hands_out_no_tokens_and_the_error_says_what_to_set(extcli, production):
    result = extcli("vote", "get", "--url", production.url)

    assert (4, "") == (result.exit_code, result.stdout)
    assert "POST /v1/e/authtoken was refused: 404 Not Found" in result.stderr
    assert "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN" in result.stderr


def test_a_wrong_secret_is_named_as_the_likely_cause(extcli, production):
    result = extcli("vote", "get", "--url", production.url, env={"EXTCLI_SECRET": "d3Jvbmc="})

    assert 4 == result.exit_code
    assert "is EXTCLI_SECRET (or EXTCLI_SECRET_FILE) the secret of client id my-extension" in result.stderr


def test_a_secret_that_is_not_base64_is_wrong_configuration(extcli):
    result = extcli("vote", "get", env={"EXTCLI_SECRET": "not/base64!hunter2"})

    assert (2, "") == (result.exit_code, result.stdout)
    assert "EXTCLI_SECRET is not base64" in result.stderr
    assert "hunter2" not in result.stderr


def test_a_token_that_is_several_words_is_wrong_configuration(extcli):
    result = extcli("vote", "get", env={"EXTCLI_TOKEN": "my-extension hunter2"})

    assert 2 == result.exit_code
    assert "hunter2" not in result.stderr


def test_an_expired_token_is_explained(extcli):
    result = extcli("vote", "get", env={"EXTCLI_TOKEN": signed(role="viewer", exp=1)})

    assert 4 == result.exit_code
    assert "expired" in result.stderr
    assert "extcli token inspect" in result.stderr


def test_a_real_deployment_is_not_asked_for_its_clock_in_vain(extcli, answering):
    """It has none; the refusal is reported as it is."""
    refusal = http_response("401 Unauthorized", '{"reason":"token expired"}')
    url = answering(refusal, http_response("404 Not Found"))

    result = extcli("vote", "get", "--url", url, env={"EXTCLI_SECRET": SECRET_BASE64})

    assert 4 == result.exit_code
    assert "token expired" in result.stderr


@pytest.mark.parametrize(
    "args", [("vote", "cast", "--value", "3"), ("vote", "cast", "--value", "300"), ("token", "mint")]
)
def test_no_secret_shows_on_standard_error(extcli, args):
    result = extcli("-v", *args, env={"EXTCLI_SECRET": SECRET_BASE64})

    assert SECRET_BASE64 not in result.stderr
    assert "eyJ" not in result.stderr


def test_verbose_shows_the_exchange_with_the_token_masked(extcli, live):
    result = extcli("vote", "get", "lunch", "-v", env={"EXTCLI_SECRET": SECRET_BASE64})

    assert [f"> GET {live.url}/v1/e/vote?id=lunch", "> authorization: my-extension ***"] == result.stderr.splitlines()[
        :2
    ]
    assert result.stderr.splitlines()[2].startswith("< 200 OK")


def test_no_option_takes_a_secret(extcli):
    for command in ([], ["token", "mint"], ["vote", "get"]):
        assert "--secret" not in extcli(*command, "--help").stdout
        assert 2 == extcli(*command, "--secret", "x").exit_code


# The token commands


def claims_of(token: str) -> dict[str, object]:
    return jwt.decode(token.strip(), SECRET, algorithms=["HS256"])


def test_mint_prints_only_a_token_signed_with_the_decoded_secret(extcli):
    result = extcli(
        "token",
        "mint",
        "--role",
        "viewer",
        "--user",
        "5",
        "--channel",
        "9",
        "--ttl",
        "1h",
        env={"EXTCLI_SECRET": SECRET_BASE64},
    )

    claims = claims_of(result.stdout)
    assert 3500 < int(str(claims.pop("exp"))) - real_seconds() <= 3600
    assert {"role": "viewer", "user_id": "5", "opaque_user_id": "U5", "channel_id": "9"} == claims


def test_mint_is_for_a_backend_unless_told(extcli):
    claims = claims_of(extcli("token", "mint", env={"EXTCLI_SECRET": SECRET_BASE64}).stdout)

    assert {"exp", "role"} == set(claims)
    assert "backend" == claims["role"]


def test_a_broadcaster_is_the_owner_of_the_channel(extcli):
    """Ruling A2."""
    result = extcli("token", "mint", "--role", "broadcaster", "--channel", "9", env={"EXTCLI_SECRET": SECRET_BASE64})

    assert ("9", "U9") == tuple(claims_of(result.stdout)[name] for name in ("user_id", "opaque_user_id"))


def test_mint_can_name_an_opaque_id(extcli):
    result = extcli("token", "mint", "--as", "viewer", "--opaque", "Axyz", env={"EXTCLI_SECRET": SECRET_BASE64})

    assert "Axyz" == claims_of(result.stdout)["opaque_user_id"]


def test_a_header_is_ready_for_curl(extcli):
    result = extcli("token", "mint", "--header", "--client-id", "abc", env={"EXTCLI_SECRET": SECRET_BASE64})

    assert result.stdout.startswith("Authorization: abc eyJ")


def test_mint_needs_a_secret_and_says_which_variable(extcli):
    result = extcli("token", "mint")

    assert (2, "") == (result.exit_code, result.stdout)
    assert "set EXTCLI_SECRET, or name its file in EXTCLI_SECRET_FILE" in result.stderr


def test_sandbox_prints_a_token_of_the_service(extcli):
    token = extcli("token", "sandbox", "--role", "broadcaster", "--channel", "9").stdout.strip()

    assert "9" == extcli(*INFO, env={"EXTCLI_TOKEN": token}).json["channel_id"]


def test_inspect_explains_a_token_and_its_traps(extcli):
    token = signed(role="viewer", exp=1, allowed_stage="sandbox", name="?>~?>~" * 3)

    document = extcli("token", "inspect", token, "-o", "json").json

    assert "viewer" == document["claims"]["role"]
    assert [
        "it expired",
        "its stage is sandbox",
        "its payload has - or _",
    ] == [
        next(
            start
            for start in ("it expired", "its stage is sandbox", "its payload has - or _")
            if trap.startswith(start)
        )
        for trap in document["traps"]
    ]


def test_a_sound_token_has_no_traps(extcli):
    token = extcli("token", "mint", env={"EXTCLI_SECRET": SECRET_BASE64}).stdout

    assert [] == extcli("token", "inspect", "-", "-o", "json", input=token).json["traps"]


def test_people_see_times(extcli):
    stdout = extcli("token", "inspect", signed(role="viewer", exp=1_900_000_000), "-o", "table").stdout

    assert "1900000000  (2030-03-17 17:46:40Z)" in stdout


@pytest.mark.parametrize(
    "text", ["", "abc", "a.b", "a.b.c", "!.!.!", base64.b64encode(json.dumps([1]).encode()).decode() + ".e30.x"]
)
def test_what_is_no_token_is_wrong_usage(extcli, text):
    result = extcli("token", "inspect", text)

    assert (2, "") == (result.exit_code, result.stdout)
    assert "this is not a token" in result.stderr


def test_exp_in_milliseconds_is_a_trap(extcli):
    traps = extcli("token", "inspect", signed(role="viewer", exp=1_900_000_000_000), "-o", "json").json["traps"]

    assert ["exp is more than a year away: is it in milliseconds? It must be in seconds"] == traps


# Users


def test_users_who_shared_their_id_are_listed(extcli):
    for user in ("U1", "U2"):
        extcli("vote", "cast", "--value", "1", "--as", f"viewer:{user}")

    assert {"U1", "U2"} <= {row[0] for row in extcli("user", "list").rows}


def test_many_users_are_listed_page_by_page(extcli, tmp_path):
    (tmp_path / "b.csv").write_text("".join(f"U{index},1\n" for index in range(1100)))
    extcli("vote", "cast", "--from", str(tmp_path / "b.csv"))

    assert {f"U{index}" for index in range(1100)} <= {row[0] for row in extcli("user", "list").rows}
    assert 1000 == len(extcli("user", "list", "--cursor", "0").rows)


@pytest.mark.parametrize(
    ("use", "trap"),
    [
        ("pin", "it is invalid until the broadcaster enters the PIN that was issued with it"),
        ("refresh", "it is for no endpoint"),
    ],
)
def test_inspect_explains_a_token_that_waits_or_calls_nothing(extcli, use, trap):
    traps = extcli("token", "inspect", signed(role="viewer", use=use), "-o", "json").json["traps"]

    assert 1 == sum(trap in each for each in traps)


def test_inspect_explains_the_token_that_comes_with_a_game_s_pin(extcli):
    token = extcli("pin", "request", "--game", "-o", "json").json["token"]

    assert "until the broadcaster enters the PIN" in extcli("token", "inspect", token).stdout
