"""A profile belongs to one deployment: its secret, token and socket are not used for another service."""

from __future__ import annotations

import pytest

from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import CLIENT_ID

INFO = ("user", "info", "-o", "json")
GET = ("socket", "send", "get", "state", "--data", '{"state_id": "channel"}')


@pytest.fixture
def live_profile(environment, production, tmp_path, monkeypatch):
    """Write a profile with the secret of a production service, in a file next to the profiles file."""
    monkeypatch.delenv("EXTCLI_URL")
    (tmp_path / "live.secret").write_text(f"{SECRET_BASE64}\n")
    write_profiles(live={"url": production.url, "client_id": CLIENT_ID, "secret_file": "live.secret"})


@pytest.mark.usefixtures("live_profile")
def test_a_secret_file_is_relative_to_the_profiles_file(extcli, production, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    same = ("--url", f"{production.url.replace('http', 'HTTP')}/")

    for args in ((), same):
        assert "U1" == extcli(*INFO, "-p", "live", *args, exits=0).json["user_id"]
    write_profiles(live={"url": production.url, "secret_file": "~/live.secret"})
    extcli(*INFO, "-p", "live", env={"HOME": str(tmp_path)}, exits=0)


@pytest.mark.usefixtures("live_profile")
@pytest.mark.parametrize("by", ["--url", "EXTCLI_URL"])
def test_the_secret_of_a_profile_signs_nothing_for_another_url(extcli, live, by):
    """With `-p live --url http://other`, a token that is valid for live must not be sent to the other service."""
    arguments, variables = (("--url", live.url), {}) if by == "--url" else ((), {"EXTCLI_URL": live.url})

    result = extcli(*INFO, "-v", *arguments, env={"EXTCLI_PROFILE": "live", **variables}, exits=0)

    assert f"> POST {live.url}/v1/e/authtoken" in result.stderr  # a sandbox token, not a self-signed one
    extcli("token", "mint", *arguments, env={"EXTCLI_PROFILE": "live", **variables}, exits=2)


# Production issues no tokens


def test_production_without_a_secret_receives_no_request(extcli, production, monkeypatch):
    monkeypatch.delenv("EXTCLI_URL")
    write_profiles(live={"url": production.url, "production": True})

    for command in (INFO, GET, ("vote", "cast", "--value", "3"), ("-o", "plain", "pin", "request")):
        for where in (("-p", "live"), ("--url", production.url)):
            assert "> " not in extcli(*command, "-v", *where, fails=2).stderr


def test_a_production_profile_requests_no_token_from_another_url(extcli, live, production):
    write_profiles(live={"url": production.url, "production": True, "secret_file": "live.secret"})

    assert "> " not in extcli("vote", "get", "-v", "-p", "live", "--url", live.url, fails=2).stderr


# The addresses of a profile


@pytest.mark.usefixtures("live_profile")
def test_the_secret_of_a_profile_signs_nothing_for_another_socket(extcli, live):
    """The variable precedes the profile, and names another service."""
    variables = {"EXTCLI_PROFILE": "live", "EXTCLI_WS_URL": f"{live.url.replace('http', 'ws')}/ws"}

    result = extcli(*GET, "-v", env=variables, exits=4)

    assert '"action":"authenticate"' not in result.stderr.replace(" ", "")


@pytest.mark.usefixtures("live_profile")
def test_the_token_of_a_profile_is_sent_only_to_its_url(extcli, live, production, tmp_path):
    (tmp_path / "token").write_text(extcli("token", "mint", "--user", "U7", "--role", "viewer", "-p", "live").stdout)
    write_profiles(live={"url": production.url, "token_file": "token"})

    assert "U7" == extcli(*INFO, "-p", "live").json["user_id"]
    assert "U1" == extcli(*INFO, "-p", "live", "--url", live.url).json["user_id"]


@pytest.mark.usefixtures("live_profile")
@pytest.mark.parametrize("variables", [{"EXTCLI_AS": "viewer:U3"}, {"EXTCLI_SECRET": SECRET_BASE64}])
def test_an_identity_in_the_environment_overrides_a_profile_s_token(extcli, production, tmp_path, variables):
    token = extcli("token", "mint", "--user", "U7", "--role", "viewer", "-p", "live").stdout
    (tmp_path / "token").write_text(token)
    write_profiles(live={"url": production.url, "token_file": "token", "secret_file": "live.secret"})

    chosen = {"EXTCLI_PROFILE": "live"}
    assert "U7" == extcli(*INFO, env=chosen).json["user_id"]
    assert "U7" != extcli(*INFO, env=chosen | variables).json["user_id"]


def test_a_profile_without_a_url_fits_any_and_has_no_secret(extcli, production):
    write_profiles(mine={"channel": "7", "as": "viewer:U5"})

    assert "7" == extcli(*INFO, "-p", "mine").json["channel_id"]
    for key in ("secret_file", "token_file"):
        write_profiles(mine={key: "live.secret"})
        assert key in extcli(*INFO, "-p", "mine", env={"EXTCLI_URL": production.url}, fails=2).stderr


def test_a_profile_s_socket_is_used_with_its_own_url_only(extcli, live, monkeypatch):
    own = f"{live.url.replace('http', 'ws')}/0.2.0/mine"
    write_profiles(dev={"url": live.url, "ws_url": own})
    beside = f"{live.url.replace('http', 'ws')}/_ns/other/ws"

    assert f"> CONNECT {own}" in extcli(*GET, "-v", "-p", "dev", env={"EXTCLI_URL": ""}).stderr
    assert f"> CONNECT {own}" in extcli(*GET, "-v", "-p", "dev", "--url", f"{live.url}/").stderr
    for args, variables in (("--url", f"{live.url}/_ns/other"), {}), ((), {"EXTCLI_URL": f"{live.url}/_ns/other"}):
        chosen = {"EXTCLI_PROFILE": "dev", **variables}
        assert f"> CONNECT {beside}" in extcli(*GET, "-v", *args, env=chosen).stderr


# connect


def test_an_address_that_a_named_profile_replaces_is_reported(extcli, live):
    write_profiles(dev={"url": live.url})

    for url, options, is_reported in (("http://127.0.0.1:1", (), True), (live.url, (), False)):
        result = extcli("vote", "get", "-p", "dev", *options, env={"EXTCLI_URL": url}, exits=0)
        assert is_reported == ("EXTCLI_URL is ignored" in result.stderr)
