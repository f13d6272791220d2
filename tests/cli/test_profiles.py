"""Which profile is selected, the order of precedence of settings, and errors in the profiles file."""

from __future__ import annotations

import json
import re

import pytest

from support.profile_files import config_file, write_profiles

INFO = ("user", "info", "-o", "json")


# Selection and precedence


def test_the_profile_flag_precedes_the_variable_and_the_default(extcli):
    write_profiles('profile = "third"', first={"channel": "1"}, second={"channel": "2"}, third={"channel": "3"})

    assert "3" == extcli(*INFO).json["channel_id"]
    assert "2" == extcli(*INFO, env={"EXTCLI_PROFILE": "second"}).json["channel_id"]
    assert "1" == extcli(*INFO, "-p", "first", env={"EXTCLI_PROFILE": "second"}).json["channel_id"]


def test_a_setting_of_a_flag_precedes_the_environment_and_the_profile(extcli):
    write_profiles(dev={"channel": "7"})
    variables = {"EXTCLI_CHANNEL": "8", "EXTCLI_PROFILE": "dev"}

    assert "9" == extcli(*INFO, "--channel", "9", env=variables).json["channel_id"]
    assert "8" == extcli(*INFO, env=variables).json["channel_id"]
    assert "7" == extcli(*INFO, env=variables | {"EXTCLI_CHANNEL": ""}).json["channel_id"]
    assert "1001" == extcli(*INFO).json["channel_id"]


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


def test_a_flag_precedes_a_profile_named_on_the_command_line(extcli):
    write_profiles(dev=OWN)

    assert "9" == extcli("user", "info", "-p", "dev", "--channel", "9").json["channel_id"]


def test_a_profile_that_is_only_selected_comes_after_the_environment(extcli, live):
    variables = VARIABLES | {"EXTCLI_URL": live.url}
    write_profiles('profile = "dev"', dev=OWN)
    by_default = extcli("config", "list", env=variables)
    write_profiles(dev=OWN)
    by_variable = extcli("config", "list", env={"EXTCLI_PROFILE": "dev", **variables})

    for result in (by_default, by_variable):
        found = dict(row for row in result.rows)
        assert ("8", "other", "viewer:U8") == (found["channel"], found["client_id"], found["as"])


def test_show_origin_names_the_profile_of_the_command_line(extcli, live):
    file = write_profiles(dev={"url": live.url, **OWN})

    result = extcli("config", "list", "--show-origin", "-p", "dev", env=VARIABLES)

    origins = {each["key"]: each["origin"] for each in result.json}
    assert "--profile" == origins["profile"]
    assert {f"profile dev in {file}"} == {origins[key] for key in ("url", "channel", "client_id", "as")}


def test_a_secret_of_the_named_profile_precedes_credentials_of_the_environment(extcli, live, tmp_path):
    (tmp_path / "own.secret").write_text("b3duIHNlY3JldA==")
    file = write_profiles(dev={"url": live.url, "secret_file": "own.secret"})
    variables = {"EXTCLI_TOKEN": "a.b.c", "EXTCLI_SECRET": "b3RoZXI=", "EXTCLI_SECRET_FILE": "/other"}

    listed = extcli("config", "list", "--show-origin", "-o", "json", "-p", "dev", env=variables).json

    found = {each["key"]: (each["value"], each["origin"]) for each in listed}
    assert ("set", f"profile dev in {file}") == found["secret"]
    assert ("not set", "default") == found["token"]
    assert 0 == extcli("user", "info", "-p", "dev", env=variables).exit_code


def test_credentials_of_the_environment_serve_a_named_profile_without_any(extcli, live):
    write_profiles(dev={"url": live.url})
    token = extcli("token", "sandbox", "--user", "U9").stdout.strip()

    assert "U9" == extcli(*INFO, "-p", "dev", env={"EXTCLI_TOKEN": token}).json["user_id"]


def test_an_identity_of_the_named_profile_precedes_a_token_of_the_environment(extcli, live):
    write_profiles(dev={"url": live.url, "as": "viewer:U7"})
    token = extcli("token", "sandbox", "--user", "U9").stdout.strip()

    assert "U7" == extcli(*INFO, "-p", "dev", env={"EXTCLI_TOKEN": token}).json["user_id"]


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


@pytest.mark.parametrize("args", [("vote", "get"), ("-o", "json", "token", "inspect", "a.b.c"), ("extension", "list")])
@pytest.mark.parametrize("text", ["", "[profiles.dev]\n[profiles.live]\n"], ids=["no profiles", "other profiles"])
def test_an_unknown_profile_is_a_usage_error_that_names_the_known(extcli, args, text):
    write_profiles(text)

    result = extcli("-p", "lvie", *args, fails=2)

    assert f"no profile 'lvie' (--profile) in {config_file()}" in result.stderr
    assert ("known profiles: dev, live" if text else "the file has no profiles") in result.stderr


def test_an_unknown_default_profile_is_an_error(extcli):
    write_profiles('profile = "gone"', dev={})

    result = extcli("vote", "get", exits=2)

    assert f"no profile 'gone' (the key profile) in {config_file()}" in result.stderr


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[profiles.dev", "is not TOML"),
        ("a = " + "[" * 3000, "is "),
        ("profile = 5", "profile must be the name"),
        ("profiles = 5", "profiles must be a table"),
        ("url = 'http://x'", "'url' is not a known key"),
        ("[profiles]\ndev = 5", "profiles.dev must be a table"),
        ("[profiles.'a b']", "profiles: 'a b' is not a valid profile name"),
        ("secret = 'hunter2'", "secret: a secret or token must not be in this file"),
        ("[profiles.dev]\nurll = 'http://x'", "profiles.dev.urll is not a known key"),
        ("[profiles.dev]\ntimeout = 10", "profiles.dev.timeout must be text"),
        ("[profiles.dev]\nchannel = ''", "profiles.dev.channel must be text"),
        ("[profiles.dev]\nproduction = 'true'", "profiles.dev.production must be true or false"),
        (
            '[profiles.dev]\nsecret_file = "a\\u0000b"',
            "profiles.dev.secret_file must be a path without a null character",
        ),
        (b"[profiles.dev]\nchannel = '\xff'", "is not TOML: not UTF-8 text"),
    ],
)
def test_an_invalid_file_is_an_error_with_its_key_and_a_fix(extcli, text, where):
    config_file().write_bytes(text if isinstance(text, bytes) else text.encode())

    result = extcli("vote", "get", "-o", "json")

    error = json.loads(result.stderr)["error"]
    assert (2, "", 2) == (result.exit_code, result.stdout, error["exit_code"])
    assert re.match(rf"{re.escape(str(config_file()))}:? {re.escape(where)}", error["what"])
    assert error["fix"]


@pytest.mark.parametrize("key", ["secret", "token"])
def test_a_secret_in_the_file_is_refused_and_not_printed(extcli, key):
    write_profiles(dev={key: "hunter2"})

    result = extcli("vote", "get", fails=2)

    assert f"{config_file()}: profiles.dev.{key}: a secret or token must not be in this file" in result.stderr
    assert f"set {key}_file to its path" in result.stderr
    assert "hunter2" not in result.stderr


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("url", "nonsense"),
        ("ws_url", "http://h"),
        ("client_id", "two words"),
        ("as", ":U1"),
        ("output", "xml"),
        ("timeout", "soon"),
        ("pin_path", "../x"),
        ("broadcast_method", "PUT"),
        ("secret_file", "none.secret"),
        ("token_file", "none.token"),
        ("secret_file", "~no-such-user/secret"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_its_profile_and_key(extcli, live, monkeypatch, key, value):
    if key != "url":
        monkeypatch.setenv("EXTCLI_URL", live.url)
    else:
        monkeypatch.delenv("EXTCLI_URL")
    write_profiles(dev={"url": live.url, key: value})
    commands = {"ws_url": ("socket", "send", "get"), "pin_path": ("pin", "request")}
    command = ("broadcast", "send", "a", "1") if key == "broadcast_method" else commands.get(key, ("vote", "get"))

    result = extcli(*command, "-p", "dev", fails=2)

    assert f"{key} of profile dev in {config_file()}" in result.stderr


def test_an_impossible_path_counts_as_no_file(extcli):
    assert 0 == extcli("vote", "get", env={"EXTCLI_CONFIG": "/dev/null/config.toml"}).exit_code


def test_an_unreadable_file_is_an_error(extcli):
    config_file().mkdir()

    result = extcli("vote", "get", fails=2)

    assert f"cannot read {config_file()}: " in result.stderr
