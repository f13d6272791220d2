"""`extcli profile`: adding, listing, showing and removing profiles."""

from __future__ import annotations

import pytest

from support.profile_files import config_file, write_profiles


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
