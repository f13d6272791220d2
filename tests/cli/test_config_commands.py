"""`extcli config` and `extcli profile`: effective settings and their origins, and edits of the profiles file."""

from __future__ import annotations

import stat

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


def test_secrets_and_tokens_are_listed_as_set_or_not_set(config):
    secrets = {"EXTCLI_SECRET": SECRET_BASE64, "EXTCLI_TOKEN": "hunter2"}

    for form in ("table", "plain", "json", "jsonl"):
        result = config("list", "--show-origin", "-o", form, env=secrets)
        assert not [each for each in secrets.values() if each in result.stdout + result.stderr]
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


def test_get_of_an_unset_setting_exits_7_and_prints_nothing(config):
    config("get", "as", "-o", "table", fails=7)

    assert config("get", "channel", "-o", "json").json["value"] is None


def test_path_prints_the_path_even_of_an_absent_or_invalid_file(config):
    assert f"{config_file()}\n" == config("path").stdout

    config_file().write_text("[")

    assert f"{config_file()}\n" == config("path", "-p", "none").stdout


# `extcli config set` and `unset`: edits of the profiles file, which keep the rest of it


TEXT = """\
# my deployments
profile = "dev"  # the usual one

[profiles.dev]   # on this machine
url = "http://127.0.0.1:8282"   # its port
timeout = "10s"

[profiles.live]
url = "https://ext.example"
"""


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


def test_set_does_not_create_a_profile_or_accept_options_that_are_settings(config):
    config_file().write_text(TEXT)

    for words in ("set channel 7 -p lvie", "set channel 7 -p none", "set url http://127.0.0.1:1 --url 9"):
        config(*words.split(), fails=2)
    assert "--timeout" in config("unset", "timeout", "--timeout", "9", fails=2).stderr
    assert TEXT == config_file().read_text()


def test_a_profile_with_a_secret_must_have_a_url(config, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.secret").write_text(SECRET_BASE64)
    before = write_profiles(
        dev={"channel": "7"}, live={"url": "https://ext.example", "secret_file": "live.secret"}
    ).read_text()

    for args in (("set", "secret_file", "live.secret", "-p", "dev"), ("unset", "url", "-p", "live")):
        assert f"profiles.{args[-1]}.secret_file" in config(*args, fails=2).stderr
    assert before == config_file().read_text()


def test_an_invalid_value_is_not_written(config, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weak").write_text("a secret, in words")
    config_file().write_text(TEXT)

    for line in (
        "url nonsense",
        "production yes",
        "secret_file weak",
        "token_file weak",
        "colour blue",
        "secret hunter2",
    ):
        said = config("set", *line.split(), fails=2).stderr
        assert f"{config_file()}: profiles.dev.{line.split()[0]}" in said
        assert "hunter2" not in said
    assert TEXT == config_file().read_text()


def test_a_path_is_written_as_typed_if_it_is_beside_the_profiles_file(config, monkeypatch, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_profiles(live={"url": "https://ext.example"})
    for folder, name, written in (
        (elsewhere, "here.secret", f"{elsewhere}/here.secret"),
        (tmp_path, "beside.secret", "beside.secret"),
    ):
        (folder / name).write_text(SECRET_BASE64)
        monkeypatch.chdir(folder)
        config("set", "secret_file", name, "-p", "live", exits=0)
        assert f'secret_file = "{written}"' in config_file().read_text()
        monkeypatch.chdir(elsewhere)
        assert "set\n" == config("get", "secret", "-p", "live", env={"EXTCLI_URL": ""}).stdout


# Unset


def test_unset_removes_a_value_that_is_there(config):
    config_file().write_text(TEXT)

    config("unset", "timeout", exits=0)

    assert TEXT.replace('timeout = "10s"\n', "") == config_file().read_text()
    for more in ((), ("-p", "none")):
        config("unset", "channel", *more, fails=2)


def test_unset_repairs_an_invalid_profile(config, extcli):
    for wrong in ('urll = "http://x"', "timeout = 10", 'secret = "hunter2"'):
        write_profiles(f'profile = "dev"\n[profiles.dev]\n{wrong}')
        extcli("vote", "get", exits=2)
        config("unset", wrong.partition(" ")[0], exits=0)
        extcli("vote", "get", exits=0)


def test_a_file_that_cannot_be_edited_is_left_unchanged(extcli):
    config_file().write_text("[profiles.dev\n")
    for command in ("profile add live --url https://ext.example", "config set channel 7"):
        extcli(*command.split(), fails=2)
    assert config_file().read_text() == "[profiles.dev\n"


# `extcli profile`: adding, listing, showing and removing profiles


@pytest.fixture
def profile(extcli):
    return lambda *args, **settings: extcli("profile", *args, **settings)


def test_options_of_add_become_settings_of_the_profile(profile, tmp_path):
    (tmp_path / "token").write_text("a.b.c")
    given = ("--channel", "7", "--as", "viewer:U5", "--ws-url", "wss://sockets.example", "--production")

    profile("add", "live", "--url", "https://ext.example", *given)
    profile("add", "other", "--url", "https://other.example", "--token-file", str(tmp_path / "token"))

    assert {
        "name": "live",
        "url": "https://ext.example",
        "ws_url": "wss://sockets.example",
        "as": "viewer:U5",
        "channel": "7",
        "production": True,
    } == profile("show", "live", "-o", "json").json
    assert ["token_file", str(tmp_path / "token")] in profile("show", "other").rows


@pytest.mark.parametrize(
    "words",
    [
        "dev --url http://127.0.0.1:2",
        "live",
        "a.b --url http://127.0.0.1:2",
        "live --url nonsense",
        "live --url http://127.0.0.1:2 --secret-file ~no-such-user/secret",
    ],
)
def test_add_refuses_invalid_names_values_and_duplicates(profile, words):
    profile("add", "dev", "--url", "http://127.0.0.1:1", exits=0)
    before = config_file().read_text()

    profile("add", *words.split(), fails=2)

    assert before == config_file().read_text()


def test_profiles_are_listed_with_the_current_one_marked(profile):
    assert [] == profile("list", "-o", "json").json
    dev, live = {"url": "http://127.0.0.1:1"}, {"url": "https://ext.example", "production": True}
    write_profiles('profile = "dev"', dev=dev, live=live)

    assert [["dev", dev["url"], "false", "true"], ["live", live["url"], "true", "false"]] == profile("list").rows
    assert [False, True] == [each["chosen"] for each in profile("list", "-o", "json", "-p", "live").json]
    assert {"name": "dev", **dev, "production": False, "chosen": True} == profile("list", "-o", "jsonl").jsonl[0]
    assert [["name", "dev"], ["url", dev["url"]]] == profile("show").rows
    assert ["name", "live"] == profile("show", "-p", "live").rows[0]


def test_use_sets_the_default_profile(profile, extcli):
    config_file().write_text('# mine\n[profiles.dev]\nchannel = "7" # seven\n')

    assert 0 == profile("use", "dev").exit_code

    assert "7" == extcli("user", "info", "-o", "json").json["channel_id"]
    assert '# mine\nprofile = "dev"\n\n[profiles.dev]\nchannel = "7" # seven\n' == config_file().read_text()


@pytest.mark.parametrize("verb", ["use", "rm", "show"])
def test_an_unknown_profile_is_an_error(profile, verb):
    write_profiles(dev={})

    profile(verb, "live", fails=2)


def test_removing_the_default_profile_leaves_no_default(profile, extcli):
    write_profiles('profile = "dev"', dev={"channel": "7"}, live={})

    profile("rm", "dev", exits=0)

    assert "1001" == extcli("user", "info", "-o", "json").json["channel_id"]
    assert [["live", "", "false", "false"]] == profile("list").rows
    profile("rm", "live", exits=0)
    assert [] == profile("list").rows
