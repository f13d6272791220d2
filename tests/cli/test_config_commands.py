"""`extcli config list` and `get`: the effective settings and their origins."""

from __future__ import annotations

import pytest

from support.profile_files import config_file, write_profiles
from support.program import SECRET_BASE64


@pytest.fixture
def config(extcli):
    return lambda *args, **settings: extcli("config", *args, **settings)


@pytest.fixture
def by_key(config):
    """Return the records of `config list`, by key."""
    return lambda *args, **settings: {
        each["key"]: each for each in config("list", "--show-origin", "-o", "json", *args, **settings).json
    }


def test_every_setting_is_listed_with_its_effective_value_and_origin(by_key, live):
    dev = {"url": f"{live.url}/", "ws_url": "wss://elsewhere.example", "channel": "7", "timeout": "2m"}
    file = write_profiles('profile = "dev"', dev=dev)

    found = by_key("--as", "viewer:U5", env={"EXTCLI_CLIENT_ID": "mine"})

    assert {
        "profile": ("dev", str(file)),
        "url": (live.url, "EXTCLI_URL"),
        "ws_url": ("wss://elsewhere.example", f"profile dev in {file}"),
        "client_id": ("mine", "EXTCLI_CLIENT_ID"),
        "as": ("viewer:U5", "--as"),
        "channel": ("7", f"profile dev in {file}"),
        "token": ("not set", "default"),
        "token_file": (None, "default"),
        "secret": ("not set", "default"),
        "secret_file": (None, "default"),
        "pin_path": ("link/pin", "default"),
        "broadcast_method": ("GET", "default"),
        "output": ("json", "--output"),
        "timeout": ("120s", f"profile dev in {file}"),
        "production": (False, "default"),
        "state_dir": (str(file.parent / "state"), "EXTCLI_STATE_DIR"),
        "config": (str(file), "EXTCLI_CONFIG"),
    } == {key: (each["value"], each["origin"]) for key, each in found.items()}


def test_all_formats_list_the_same_settings(config, live):
    assert ["url", live.url] == config("list").rows[1]
    assert ["url", live.url, "EXTCLI_URL"] == config("list", "--show-origin").rows[1]
    assert {"key": "url", "value": live.url} == config("list", "-o", "json").json[1]
    assert {"key": "url", "value": live.url} == config("list", "-o", "jsonl").jsonl[1]
    assert ["url", live.url] == config("list", "-o", "table").stdout.splitlines()[2].split()


def test_a_setting_without_a_default_is_empty(config):
    assert ["as", ""] == config("list").rows[4]
    assert {"key": "as", "value": None} == config("list", "-o", "jsonl").jsonl[4]


@pytest.mark.parametrize("form", ["table", "plain", "json", "jsonl"])
def test_secrets_and_tokens_are_listed_as_set_or_not_set(config, form):
    secrets = {"EXTCLI_SECRET": SECRET_BASE64, "EXTCLI_TOKEN": "hunter2"}

    result = config("list", "--show-origin", "-o", form, env=secrets)

    assert SECRET_BASE64 not in result.stdout + result.stderr
    assert "hunter2" not in result.stdout + result.stderr
    assert "set" == config("get", "secret", env=secrets).stdout.strip()


def test_list_does_not_read_the_secret_file_of_a_profile(by_key):
    file = write_profiles(live={"url": "https://ext.example", "secret_file": "not.there"})

    own, other = by_key("-p", "live"), by_key(env={"EXTCLI_PROFILE": "live"})

    assert ("set", f"profile live in {file}") == (own["secret"]["value"], own["secret"]["origin"])
    assert (str(file.parent / "not.there"), None) == (own["secret_file"]["value"], other["secret_file"]["value"])
    assert ("not set", f"default, ignoring profile live in {file}") == (
        other["secret"]["value"],
        other["secret"]["origin"],
    )


def test_production_follows_from_the_address(by_key, live):
    file = write_profiles(live={"url": live.url, "production": True})

    assert (True, f"profile live in {file}") == tuple(by_key()["production"][name] for name in ("value", "origin"))


def test_list_sends_nothing(config):
    assert 0 == config("list", "--url", "http://127.0.0.1:1").exit_code


def test_get_prints_only_the_value(config, live):
    assert f"{live.url}\n" == config("get", "url").stdout
    assert f"{live.url}\n" == config("get", "url", "-o", "table").stdout
    assert {"key": "url", "value": live.url, "origin": "EXTCLI_URL"} == config("get", "url", "-o", "json").json


@pytest.mark.parametrize("form", ["table", "plain"])
def test_get_of_an_unset_setting_exits_7_and_prints_nothing(config, form):
    result = config("get", "as", "-o", form)

    assert (7, "", "extcli: as is not set\n") == (result.exit_code, result.stdout, result.stderr)
    assert config("get", "channel", "-o", "json").json["value"] is None


@pytest.mark.parametrize(
    ("key", "variables", "code"),
    [("channel", {"EXTCLI_CHANNEL": "7"}, 0), ("channel", {}, 7), ("extension", {}, 2)],
    ids=["set", "not set", "no setting"],
)
def test_get_of_a_name_of_a_store_points_to_the_store(config, key, variables, code):
    """`config get channel` is easily meant as `store-config get channel`."""
    result = config("get", key, "-o", "table", env=variables)

    assert code == result.exit_code
    assert f"`extcli store-config get {key}` reads the config store" in result.stderr


def test_an_unknown_setting_is_an_error_that_names_the_known_ones(config):
    result = config("get", "colour", fails=2)

    assert "one of profile, url, ws_url, client_id" in result.stderr


def test_path_prints_the_path_even_of_an_absent_or_invalid_file(config):
    assert f"{config_file()}\n" == config("path").stdout

    config_file().write_text("[")

    assert f"{config_file()}\n" == config("path", "-p", "none").stdout


def test_a_table_shows_the_path_of_the_profiles_file_once(config):
    file = write_profiles(
        'profile = "live"', live={"url": "https://ext.example", "secret_file": "s", "production": True}
    )

    by_own, by_other = (
        config("list", "--show-origin", "-o", "table", env={"EXTCLI_URL": url, "COLUMNS": "200"}).stdout
        for url in ("", "https://other.example")
    )

    rows = {line.split()[0]: line.split(maxsplit=2)[2] for line in map(str.strip, by_own.splitlines()[1:])}
    assert ("the key profile", "profile live", "profile live") == (rows["profile"], rows["url"], rows["production"])
    assert "default, ignoring profile live" in by_other
    assert 1 == len([line for line in by_other.splitlines() if f" {file} " in f"{line} "])
