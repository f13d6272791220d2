"""`extcli config set` and `unset`: edits of the profiles file, which keep the rest of it."""

from __future__ import annotations

import stat

import pytest

from support.profile_files import config_file, write_profiles
from support.program import SECRET_BASE64

TEXT = """\
# my deployments
profile = "dev"  # the usual one

[profiles.dev]   # on this machine
url = "http://127.0.0.1:8282"   # its port
timeout = "10s"

[profiles.live]
url = "https://ext.example"
"""


@pytest.fixture
def config(extcli):
    return lambda *args, **settings: extcli("config", *args, **settings)


def test_set_changes_the_current_profile_and_keeps_the_rest(config):
    config_file().write_text(TEXT)

    assert 0 == config("set", "timeout", "20s").exit_code
    assert 0 == config("set", "channel", "7", "-p", "live").exit_code
    assert 0 == config("set", "production", "true", env={"EXTCLI_PROFILE": "live"}).exit_code

    expected = TEXT.replace('"10s"', '"20s"') + 'channel = "7"\nproduction = true\n'
    assert expected == config_file().read_text()


def test_the_profiles_file_is_created_for_its_owner_only(config, extcli, monkeypatch, tmp_path):
    place = tmp_path / "settings" / "extcli" / "config.toml"
    monkeypatch.setenv("EXTCLI_CONFIG", str(place))

    assert 0 == extcli("profile", "add", "dev", "--url", "http://127.0.0.1:8282").exit_code
    assert 0 == config("set", "channel", "7", "-p", "dev").exit_code

    assert "http://127.0.0.1:8282\n" == config("get", "url", "-p", "dev", env={"EXTCLI_URL": ""}).stdout
    assert "7\n" == config("get", "channel", "-p", "dev").stdout
    assert 0o600 == stat.S_IMODE(place.stat().st_mode)
    assert 0o700 == stat.S_IMODE(place.parent.stat().st_mode)


@pytest.mark.parametrize("text", ["", TEXT], ids=["no profiles", "other profiles"])
def test_set_does_not_create_a_profile(config, text):
    config_file().write_text(text)

    result = config("set", "channel", "7", "-p", "lvie", fails=2)

    assert f"no profile 'lvie' in {config_file()}" in result.stderr
    assert ("known profiles: dev, live" if text else "the file has no profiles") in result.stderr
    assert "create it with `extcli profile add lvie --url URL`" in result.stderr
    assert text == config_file().read_text()


@pytest.mark.parametrize("args", [("set", "url", "http://127.0.0.1:1"), ("set", "channel", "7"), ("unset", "timeout")])
@pytest.mark.parametrize("option", ["--url", "--channel", "--timeout"])
def test_set_and_unset_refuse_options_that_are_settings(config, args, option):
    config_file().write_text(TEXT)

    result = config(*args, option, "9", fails=2)

    assert f"takes no {option}" in result.stderr
    assert TEXT == config_file().read_text()


def test_a_profile_with_a_secret_must_have_a_url(config, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.secret").write_text(SECRET_BASE64)
    before = write_profiles(
        dev={"channel": "7"}, live={"url": "https://ext.example", "secret_file": "live.secret"}
    ).read_text()

    for args in (("set", "secret_file", "live.secret", "-p", "dev"), ("unset", "url", "-p", "live")):
        result = config(*args, fails=2)
        assert f"profiles.{args[-1]}.secret_file needs a url in the same profile" in result.stderr
    assert before == config_file().read_text()


def test_set_without_a_current_profile_is_an_error(config):
    result = config("set", "timeout", "20s", fails=2)

    assert "no profile is selected" in result.stderr
    assert not config_file().exists()


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("url", "nonsense", "is not a URL with http or https"),
        ("ws_url", "http://h", "is not a URL with ws or wss"),
        ("client_id", "two words", "client_id is not a valid client id"),
        ("as", ":U1", "is not a role"),
        ("output", "xml", "is not an output format"),
        ("timeout", "soon", "is not a duration"),
        ("pin_path", "../x", "is not a path below /v1/e/"),
        ("broadcast_method", "PUT", "is not a broadcast method"),
        ("production", "yes", "must be true or false"),
        ("channel", "", "must not be empty"),
        ("secret_file", "none", "cannot read"),
        ("secret_file", "weak", "is not base64"),
        ("token_file", "weak", "is not a valid token"),
        ("colour", "blue", "is not a known key"),
        ("secret", "hunter2", "a secret or token must not be in this file"),
        ("token", "hunter2", "a secret or token must not be in this file"),
    ],
)
def test_an_invalid_value_is_not_written(config, monkeypatch, tmp_path, key, value, what):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weak").write_text("a secret, in words")
    config_file().write_text(TEXT)

    result = config("set", key, value, fails=2)

    assert what in result.stderr
    assert f"{config_file()}: profiles.dev.{key}" in result.stderr
    assert "hunter2" not in result.stderr
    assert TEXT == config_file().read_text()


def test_a_path_is_relative_to_the_working_directory_or_the_profiles_file(config, monkeypatch, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_profiles(live={"url": "https://ext.example"})
    for directory, name in ((elsewhere, "here.secret"), (tmp_path, "beside.secret")):
        (directory / name).write_text(SECRET_BASE64)
    monkeypatch.chdir(elsewhere)

    for name, written in (("here.secret", str(elsewhere / "here.secret")), ("beside.secret", "beside.secret")):
        assert 0 == config("set", "secret_file", name, "-p", "live").exit_code
        assert f'secret_file = "{written}"' in config_file().read_text()
        monkeypatch.chdir(elsewhere)
        assert "set\n" == config("get", "secret", "-p", "live", env={"EXTCLI_URL": ""}).stdout


# Unset


def test_unset_removes_a_value(config):
    config_file().write_text(TEXT)

    assert 0 == config("unset", "timeout").exit_code

    assert TEXT.replace('timeout = "10s"\n', "") == config_file().read_text()


def test_unset_of_a_missing_value_or_profile_is_an_error(config):
    config_file().write_text(TEXT)

    assert "profiles.dev.channel is not set" in config("unset", "channel").stderr
    assert "no profile 'none'" in config("unset", "channel", "-p", "none").stderr


@pytest.mark.parametrize("wrong", ['urll = "http://x"', "timeout = 10", 'secret = "hunter2"'])
def test_unset_repairs_an_invalid_profile(config, extcli, wrong):
    write_profiles(f'profile = "dev"\n[profiles.dev]\n{wrong}')
    assert 2 == extcli("vote", "get").exit_code

    assert 0 == config("unset", wrong.partition(" ")[0]).exit_code

    assert 0 == extcli("vote", "get").exit_code


@pytest.mark.parametrize(
    "text",
    [
        'profiles.dev.channel = "1"\n',
        '[profiles]\ndev = {channel = "1"}\n',
        '[profiles.dev]\nchannel = "1" # one\n\n[profiles.live] # the real one\n',
    ],
)
def test_other_layouts_of_toml_can_be_edited(config, extcli, text):
    config_file().write_text(text)
    extcli("profile", "add", "live", "--url", "https://ext.example")

    assert (0, 0) == tuple(config("set", "channel", "7", "-p", name).exit_code for name in ("dev", "live"))

    assert ["7\n", "7\n"] == [config("get", "channel", "-p", name).stdout for name in ("dev", "live")]
    assert config_file().read_text().startswith(text.replace('"1"', '"7"'))


def test_a_layout_that_cannot_be_edited_is_left_unchanged(extcli):
    text = 'profiles = {dev = {channel = "1"}}\n'
    config_file().write_text(text)

    result = extcli("profile", "add", "live", "--url", "https://ext.example", fails=2)

    assert "cannot edit the layout of profiles" in result.stderr
    assert text == config_file().read_text()


def test_a_file_that_is_not_toml_is_not_overwritten(config):
    config_file().write_text("[profiles.dev\n")

    result = config("set", "channel", "7", "-p", "dev", fails=2)

    assert f"{config_file()} is not TOML" in result.stderr
    assert "[profiles.dev\n" == config_file().read_text()


def test_an_unwritable_profiles_file_is_an_error(extcli):
    place = {"EXTCLI_CONFIG": "/proc/extcli/config.toml"}

    result = extcli("profile", "add", "dev", "--url", "https://ext.example", env=place, fails=2)

    assert "cannot write /proc/extcli/config.toml: " in result.stderr
