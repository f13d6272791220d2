"""`extcli token` and `extcli user`."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest

from support.profile_files import write_profiles
from support.program import SECRET_BASE64, http_response
from support.service import SECRET, LiveServer, real_seconds

INFO = ("user", "info", "-o", "json")


def signed(**claims: object) -> str:
    return jwt.encode({"exp": real_seconds() + 600, **claims}, SECRET)


def claims_of(token: str) -> dict[str, Any]:
    return jwt.decode(token.strip(), SECRET, algorithms=["HS256"], options={"verify_exp": False})


@pytest.fixture
def mint(extcli):
    """Run `extcli token mint` with the secret; it must succeed."""
    return lambda *args: extcli("token", "mint", *args, env={"EXTCLI_SECRET": SECRET_BASE64}, exits=0)


@pytest.mark.parametrize(
    ("args", "claims"),
    [
        ("", {"role": "backend"}),
        (
            "--role viewer --user 5 --channel 9 --ttl 1h",
            {"role": "viewer", "user_id": "5", "opaque_user_id": "U5", "channel_id": "9"},
        ),
        ("--role viewer --channel 9 --opaque Axyz", {"role": "viewer", "opaque_user_id": "Axyz", "channel_id": "9"}),
        # Ruling A2
        (
            "--role broadcaster --channel 9",
            {"role": "broadcaster", "user_id": "9", "opaque_user_id": "U9", "channel_id": "9"},
        ),
    ],
)
def test_mint_signs_the_given_claims_with_the_decoded_secret(mint, args, claims):
    found = claims_of(mint(*args.split()).stdout)

    lifetime = 3600 if "--ttl" in args else 900
    assert lifetime - 100 < int(str(found.pop("exp"))) - real_seconds() <= lifetime
    assert claims == found


def test_mint_signs_by_the_clock_of_the_service(mint, live: LiveServer):
    live.advance(8 * 86_400_000)

    token = mint("--channel", "1001").stdout.strip()

    assert 200 == live.bearer(token).get("vote").status_code


def test_mint_reports_a_clock_that_the_emulator_does_not_show(mint, live: LiveServer):
    stderr = mint("--url", live.url.replace("127.0.0.1", "0.0.0.0")).stderr

    assert "does not show its clock, so this machine's counts: set EXTCLI_CONTROL_TOKEN" in stderr


@pytest.mark.parametrize("args", [("--url", "http://127.0.0.1:1"), ("-p", "live")], ids=["no service", "production"])
def test_without_an_emulator_mint_signs_by_the_clock_of_this_machine(mint, live: LiveServer, args):
    live.advance(8 * 86_400_000)
    write_profiles(live={"url": live.url, "production": True})

    assert real_seconds() < claims_of(mint(*args).stdout)["exp"] <= real_seconds() + 900


def test_header_prints_a_complete_header(mint):
    assert mint("--header", "--client-id", "abc").stdout.startswith("Authorization: abc eyJ")


def test_sandbox_prints_a_token_of_the_service(extcli):
    token = extcli("token", "sandbox", "--role", "broadcaster", "--channel", "9").stdout.strip()

    assert "9" == extcli(*INFO, env={"EXTCLI_TOKEN": token}).json["channel_id"]


def test_inspect_prints_claims_and_traps(extcli):
    token = signed(role="viewer", exp=1, allowed_stage="sandbox", name="?>~?>~" * 3)

    document = extcli("token", "inspect", "-o", "json", input=token).json

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


def test_a_valid_token_has_no_traps(extcli):
    token = extcli("token", "mint", env={"EXTCLI_SECRET": SECRET_BASE64}).stdout

    assert [] == extcli("token", "inspect", "-", "-o", "json", input=token).json["traps"]


def test_a_table_shows_formatted_times(extcli):
    stdout = extcli("token", "inspect", "-o", "table", input=signed(role="viewer", exp=1_900_000_000)).stdout

    assert "1900000000  (2030-03-17 17:46:40Z)" in stdout


@pytest.mark.parametrize(
    "text", ["", "abc", "a.b", "a.b.c", "!.!.!", base64.b64encode(json.dumps([1]).encode()).decode() + ".e30.x"]
)
def test_invalid_tokens_are_a_usage_error(extcli, text):
    result = extcli("token", "inspect", input=text, fails=2)

    assert "this is not a token" in result.stderr


def test_exp_in_milliseconds_is_a_trap(extcli):
    token = signed(role="viewer", exp=1_900_000_000_000)

    traps = extcli("token", "inspect", "-o", "json", input=token).json["traps"]

    assert ["exp is more than a year away: is it in milliseconds? It must be in seconds"] == traps


def test_inspect_reads_a_file_standard_input_or_the_token_file(extcli, file):
    token = signed(role="viewer", user_id="5")
    path = file(token, "token.jwt")

    for args, typed in ((path,), ""), (("-",), token), ((), token), (("--token-file", path), ""):
        assert "5" == extcli("token", "inspect", *args, "-o", "json", input=typed).json["claims"]["user_id"]


def test_inspect_at_a_terminal_explains_the_token_in_use(extcli):
    result = extcli("token", "inspect", "-o", "json", tty=True, env={"EXTCLI_TOKEN": signed(role="viewer")})

    assert "viewer" == result.json["claims"]["role"]
    assert 2 == extcli("token", "inspect", tty=True).exit_code


@pytest.mark.parametrize("prefix", ["", "Authorization: my-extension "])
def test_a_token_on_the_command_line_is_refused_and_not_quoted(extcli, prefix):
    """Process lists and shell histories show arguments."""
    token = signed(role="viewer")

    result = extcli("token", "inspect", prefix + token, fails=2)

    assert "a token cannot be given on the command line" in result.stderr
    assert token not in result.stderr


# Users


def test_users_who_shared_their_id_are_listed(extcli):
    for user in ("U1", "U2"):
        extcli("vote", "cast", "--value", "1", "--as", f"viewer:{user}")

    assert {"U1", "U2"} <= {row[0] for row in extcli("user", "list").rows}


def test_users_are_listed_page_by_page(extcli, answering):
    first, last = (
        http_response("200 OK", json.dumps({"next": following, "results": [{"twitch_id": user}]}))
        for following, user in (("c5", "U1"), ("0", "U2"))
    )
    env = {"EXTCLI_TOKEN": "a.b.c"}

    everyone = extcli("user", "list", "-v", "--url", answering(first, last), env=env)
    page = extcli("user", "list", "--cursor", "0", "--url", answering(first, last), env=env)

    assert ["U1", "U2"] == everyone.stdout.split()
    assert "cursor=c5" in everyone.stderr
    assert ["U1"] == page.stdout.split()


@pytest.mark.parametrize(
    ("use", "trap"),
    [
        (
            "pin",
            "it is valid only after the broadcaster has entered the PIN that was issued with it: `extcli pin check`",
        ),
        ("refresh", "it is for no endpoint"),
    ],
)
def test_inspect_explains_pin_and_refresh_tokens(extcli, use, trap):
    traps = extcli("token", "inspect", "-o", "json", input=signed(role="viewer", use=use)).json["traps"]

    assert 1 == sum(trap in each for each in traps)


def test_inspect_explains_the_token_issued_with_a_game_s_pin(extcli):
    token = extcli("pin", "request", "--game", "-o", "json").json["token"]

    assert "after the broadcaster has entered the PIN" in extcli("token", "inspect", input=token).stdout


# The token that a command sends, and that no secret is printed


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
