"""Which profile is selected, the order of precedence of settings, errors in the file, and the service it belongs to."""

from __future__ import annotations

import json

import pytest

from support.profile_files import config_file, write_profiles
from support.program import SECRET_BASE64
from support.service import CLIENT_ID

INFO = ("user", "info", "-o", "json")


# Selection and precedence


def test_the_profile_flag_precedes_the_variable_and_the_default(extcli):
    write_profiles('profile = "third"', first={"channel": "1"}, second={"channel": "2"}, third={"channel": "3"})

    assert "3" == extcli(*INFO).json["channel_id"]
    assert "2" == extcli(*INFO, env={"EXTCLI_PROFILE": "second"}).json["channel_id"]
    assert "1" == extcli(*INFO, "-p", "first", env={"EXTCLI_PROFILE": "second"}).json["channel_id"]


OWN = {"channel": "7", "client_id": "own", "as": "viewer:U7", "output": "json"}
VARIABLES = {
    "EXTCLI_CHANNEL": "8",
    "EXTCLI_CLIENT_ID": "other",
    "EXTCLI_AS": "viewer:U8",
    "EXTCLI_OUTPUT": "plain",
    "EXTCLI_URL": "http://127.0.0.1:1",
}


def test_a_profile_named_on_the_command_line_precedes_the_environment(extcli, live):
    write_profiles(dev={"url": live.url, **OWN})

    info = extcli("user", "info", "-p", "dev", env=VARIABLES).json

    assert ("7", "own", "U7") == tuple(info[name] for name in ("channel_id", "extension_id", "user_id"))
    assert "9" == extcli("user", "info", "-p", "dev", "--channel", "9", env=VARIABLES).json["channel_id"]
    assert "8" == extcli(*INFO, env={"EXTCLI_PROFILE": "dev", "EXTCLI_CHANNEL": "8"}).json["channel_id"]
    assert "7" == extcli(*INFO, env={"EXTCLI_PROFILE": "dev", "EXTCLI_CHANNEL": ""}).json["channel_id"]
    only_selected = {"EXTCLI_PROFILE": "dev", **VARIABLES, "EXTCLI_URL": live.url, "EXTCLI_OUTPUT": "json"}
    info = extcli("user", "info", env=only_selected).json
    assert ("8", "other", "U8") == tuple(info[name] for name in ("channel_id", "extension_id", "user_id"))


def test_a_secret_of_the_named_profile_precedes_credentials_of_the_environment(extcli, live, tmp_path):
    (tmp_path / "own.secret").write_text("b3duIHNlY3JldA==")
    file = write_profiles(dev={"url": live.url, "secret_file": "own.secret"})
    variables = {"EXTCLI_TOKEN": "a.b.c", "EXTCLI_SECRET": "b3RoZXI=", "EXTCLI_SECRET_FILE": "/other"}

    listed = extcli("config", "list", "--show-origin", "-o", "json", "-p", "dev", env=variables).json

    found = {each["key"]: (each["value"], each["origin"]) for each in listed}
    assert ("set", f"profile dev in {file}") == found["secret"]
    assert ("not set", "default") == found["token"]
    assert 0 == extcli("user", "info", "-p", "dev", env=variables).exit_code


@pytest.mark.parametrize(("settings", "user"), [({}, "U9"), ({"as": "viewer:U7"}, "U7")])
def test_an_identity_of_the_named_profile_precedes_a_token_of_the_environment(extcli, live, settings, user):
    write_profiles(dev={"url": live.url, **settings})
    token = extcli("token", "sandbox", "--user", "U9").stdout.strip()

    assert user == extcli(*INFO, "-p", "dev", env={"EXTCLI_TOKEN": token}).json["user_id"]


def test_a_profile_sets_format_timeout_pin_path_and_broadcast_method(extcli, answering):
    write_profiles(
        dev={"output": "json", "timeout": "100ms"}, paths={"pin_path": "mine/pin", "broadcast_method": "post"}
    )
    paths = {"env": {"EXTCLI_TOKEN": "a.b.c"}}

    assert "stats" in extcli("vote", "get", "-p", "dev").json
    extcli("vote", "get", "-p", "dev", "--url", answering(hold=True), exits=3)
    assert "/v1/e/mine/pin" in extcli("pin", "request", "-v", "-p", "paths", "--url", answering(), **paths).stderr
    sent = extcli("broadcast", "send", "hint", "1", "-v", "-p", "paths", "--url", answering(), **paths)
    assert "> POST" in sent.stderr


# Errors


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "-p lvie vote get"),
        ("[profiles.dev]\n[profiles.live]\n", "-p lvie -o json token inspect a.b.c"),
        ('profile = "lvie"\n[profiles.dev]', "extension list"),
    ],
)
def test_an_unknown_profile_is_a_usage_error(extcli, text, line):
    write_profiles(text)

    assert "'lvie'" in extcli(*line.split(), fails=2).stderr


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[profiles.dev", "not TOML"),
        ("a = " + "[" * 3000, "is "),
        ("profiles = 5", "profiles"),
        ("url = 'http://x'", "'url'"),
        ("[profiles.'a b']", "'a b'"),
        ("secret = 'hunter2'", "secret"),
        ("[profiles.dev]\nurll = 'http://x'", "profiles.dev.urll"),
        ("[profiles.dev]\ntimeout = 10", "profiles.dev.timeout"),
        ("[profiles.dev]\nproduction = 'true'", "profiles.dev.production"),
        ("[profiles.dev]\nsecret = 'hunter2'", "profiles.dev.secret"),
        ('[profiles.dev]\nsecret_file = "a\\u0000b"', "profiles.dev.secret_file"),
        (b"[profiles.dev]\nchannel = '\xff'", "not TOML"),
        (None, "cannot read"),
    ],
)
def test_an_invalid_file_is_an_error_with_its_key(extcli, text, where):
    if text is None:
        config_file().mkdir()
    else:
        config_file().write_bytes(text if isinstance(text, bytes) else text.encode())

    result = extcli("vote", "get", "-o", "json", fails=2)

    what = json.loads(result.stderr)["error"]["what"]
    assert str(config_file()) in what
    assert where in what
    assert "hunter2" not in result.stderr


@pytest.mark.parametrize(
    ("key", "value", "command"),
    [
        ("url", "nonsense", "vote get"),
        ("ws_url", "http://h", "socket send get"),
        ("token_file", "none.token", "vote get"),
        ("secret_file", "~no-such-user/secret", "vote get"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_its_profile_and_key(extcli, live, monkeypatch, key, value, command):
    write_profiles(dev={"url": live.url, key: value})
    monkeypatch.setenv("EXTCLI_URL", "" if key == "url" else live.url)

    result = extcli(*command.split(), "-p", "dev", fails=2)

    assert f"{key} of profile dev in {config_file()}" in result.stderr


def test_an_impossible_path_counts_as_no_file(extcli):
    assert 0 == extcli("vote", "get", env={"EXTCLI_CONFIG": "/dev/null/config.toml"}).exit_code


# A profile belongs to one deployment: its secret, token and socket are not used for another service


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
