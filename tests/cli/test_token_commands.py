"""`extcli token` and `extcli user`."""

from __future__ import annotations

import base64
from typing import Any

import jwt
import pytest

from support.profile_files import write_profiles
from support.program import SECRET_BASE64
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
    assert "EXTCLI_CONTROL_TOKEN" in mint("--url", live.url.replace("127.0.0.1", "0.0.0.0")).stderr
    assert mint("--header", "--client-id", "abc").stdout.startswith("Authorization: abc eyJ")


@pytest.mark.parametrize("args", [("--url", "http://127.0.0.1:1"), ("-p", "live")], ids=["no service", "production"])
def test_without_an_emulator_mint_signs_by_the_clock_of_this_machine(mint, live: LiveServer, args):
    live.advance(8 * 86_400_000)
    write_profiles(live={"url": live.url, "production": True})

    assert real_seconds() < claims_of(mint(*args).stdout)["exp"] <= real_seconds() + 900


@pytest.mark.parametrize(
    ("claims", "traps"),
    [
        ({}, []),
        (
            {"exp": 1, "allowed_stage": "sandbox", "name": "?>~?>~" * 3},
            ["it expired", "its allowed_stage is sandbox", "its payload has - or _"],
        ),
        ({"exp": 1_900_000_000_000}, ["exp is more than a year away"]),
        ({"use": "pin"}, ["it is the token of a PIN (use: pin), valid only after the broadcaster enters the PIN"]),
        ({"use": "refresh"}, ["it is a refresh token"]),
    ],
    ids=["none", "several", "milliseconds", "pin", "refresh"],
)
def test_inspect_prints_claims_and_traps(extcli, claims, traps):
    document = extcli("token", "inspect", "-", "-o", "json", input=signed(role="viewer", **claims)).json

    assert "viewer" == document["claims"]["role"]
    assert [] == [trap for trap in traps if not any(each.startswith(trap) for each in document["traps"])]
    assert bool(traps) == bool(document["traps"])


def test_invalid_tokens_are_a_usage_error(extcli):
    for text in ("", "a.b", "!.!.!", base64.b64encode(b"[1]").decode() + ".e30.x"):
        extcli("token", "inspect", input=text, fails=2)


def test_inspect_reads_a_file_standard_input_or_the_token_in_use(extcli, file):
    """It does not take a token as an argument, and does not quote it: process lists and shell histories show them."""
    token = signed(role="viewer", user_id="5")
    path = file(token, "token.jwt")
    inspect = ("token", "inspect", "-o", "json")

    for args, typed in ((path,), ""), (("-",), token), ((), token), (("--token-file", path), ""):
        assert "5" == extcli(*inspect, *args, input=typed).json["claims"]["user_id"]
    assert "5" == extcli(*inspect, tty=True, env={"EXTCLI_TOKEN": token}).json["claims"]["user_id"]
    extcli(*inspect, tty=True, exits=2)
    for prefix in ("", "Authorization: my-extension "):
        assert token not in extcli("token", "inspect", prefix + token, fails=2).stderr


# The token that a command sends, and that no secret is printed


@pytest.mark.parametrize("variables", [{}, {"EXTCLI_SECRET": SECRET_BASE64}], ids=["sandbox", "signed"])
def test_a_backend_or_admin_has_no_channel_by_default(extcli, variables):
    """Ruling A4: an extension-level token reads all channels."""
    for acts_as in ("viewer:U1", "viewer", "broadcaster", "backend", "admin"):
        role, info = acts_as.partition(":")[0], extcli(*INFO, "--as", acts_as, env=variables).json
        channel = None if role in ("backend", "admin") else "1001"
        assert (role, channel) == (info["role"], info.get("channel_id") or None)
        assert acts_as != "viewer" or info["opaque_user_id"].startswith("A")
        assert "5" == extcli(*INFO, "--as", acts_as, "--channel", "5", env=variables).json["channel_id"]


def test_a_token_or_a_secret_can_come_from_a_file(extcli, production, tmp_path):
    (tmp_path / "token").write_text(signed(role="viewer", channel_id="9", user_id="U9") + "\n")
    (tmp_path / "secret").write_text(SECRET_BASE64 + "\n")
    signs = {"EXTCLI_URL": production.url, "EXTCLI_SECRET_FILE": str(tmp_path / "secret")}

    assert "U9" == extcli(*INFO, "--token-file", str(tmp_path / "token")).json["user_id"]
    assert "U1" == extcli(*INFO, env=signs).json["user_id"]
    extcli(*INFO, "--token-file", str(tmp_path / "none"), exits=2)
    extcli(*INFO, "--token-file", str(tmp_path / "token"), "--as", "viewer", exits=2)
    extcli(*INFO, env={"EXTCLI_SECRET_FILE": str(tmp_path / "none")}, exits=2)


def test_production_without_a_valid_secret_is_refused_with_the_name_of_the_variable(extcli, production):
    for variables in ({}, {"EXTCLI_SECRET": "d3Jvbmc="}):
        said = extcli("vote", "get", "--url", production.url, env=variables, fails=4).stderr
        assert "EXTCLI_SECRET (or EXTCLI_SECRET_FILE)" in said


def test_a_locally_signed_token_follows_a_moved_clock(extcli, live):
    """The service compares `exp` with its own clock, so the token is signed again by that clock."""
    live.advance(7 * 86_400_000)

    assert "3\t1\n" == extcli("vote", "cast", "--value", "3", env={"EXTCLI_SECRET": "c2VjcmV0"}, exits=0).stdout
