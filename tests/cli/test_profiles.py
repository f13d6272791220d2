"""Which profile is selected, the order of precedence of settings, and errors in the profiles file."""

from __future__ import annotations

import json

import pytest

from support.profile_files import config_file, write_profiles

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


def test_a_profile_sets_the_output_format_and_the_timeout(extcli, answering):
    write_profiles(dev={"output": "json", "timeout": "100ms"})

    assert "stats" in extcli("vote", "get", "-p", "dev").json
    assert 3 == extcli("vote", "get", "-p", "dev", "--url", answering(hold=True)).exit_code


def test_a_profile_sets_the_pin_path_and_the_broadcast_method(extcli, answering):
    write_profiles(dev={"pin_path": "mine/pin", "broadcast_method": "post"})

    pin, event = (
        extcli(*args, "-v", "-p", "dev", "--url", answering(), env={"EXTCLI_TOKEN": "a.b.c"}).stderr
        for args in (("pin", "request"), ("broadcast", "send", "hint", "1"))
    )

    assert "/v1/e/mine/pin" in pin
    assert "> POST" in event


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
