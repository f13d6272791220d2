"""`extcli profile`: adding, listing, showing and removing profiles."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.profile_files import config_file, write_profiles
from support.program import PROGRAM, SECRET_BASE64
from support.service import CLIENT_ID


@pytest.fixture
def profile(extcli):
    return lambda *args, **settings: extcli("profile", *args, **settings)


def test_a_profile_is_added_and_used(profile, extcli, production, tmp_path, monkeypatch):
    monkeypatch.delenv("EXTCLI_URL")
    (tmp_path / "live.secret").write_text(SECRET_BASE64)
    secret_file = ("--secret-file", str(tmp_path / "live.secret"))

    assert 0 == profile("add", "live", "--url", production.url, "--client-id", CLIENT_ID, *secret_file).exit_code

    assert "U1" == extcli("user", "info", "-p", "live", "-o", "json").json["user_id"]


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
        "live --url http://127.0.0.1:2 --channel=",
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


def test_the_default_profiles_file_is_in_the_platform_s_directory(environment, tmp_path):
    home = tmp_path / "home"
    variables = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    variables |= {"HOME": str(home), "EXTCLI_CONFIG": ""}

    def output(*args: str) -> str:
        run = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=20, env=variables, check=True)
        return run.stdout

    place = Path(output("config", "path").strip())
    assert home in place.parents
    place.parent.mkdir(parents=True)
    place.write_text("[profiles.homely]\n")

    assert output("profile", "list").startswith("homely\t")
