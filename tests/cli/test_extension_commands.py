"""`extcli extension`: the service reads what it writes, and it keeps what an edit does not concern."""

from __future__ import annotations

import base64
import re
import stat
from pathlib import Path

import pytest

from emulator.core.errors import ConfigurationError
from emulator.core.extensions import Extension, read_extensions
from extcli.clock import now
from support.extension_files import LAID_OUT, registered
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import CLIENT_ID


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_init_creates_an_extensions_file_and_a_secret_file(extcli, folder: Path):
    result = extcli("extension", "init", "--client-id", CLIENT_ID, "--owner", "12345", exits=0)

    extension = registered(folder)[CLIENT_ID]
    secret = (folder / "my-extension.secret").read_text().strip()
    assert [["client_id", CLIENT_ID], ["file", "extensions.toml"], ["secret_file", "my-extension.secret"]] == (
        result.rows
    )
    assert Extension(CLIENT_ID, (base64.b64decode(secret),), "12345") == extension
    assert 32 == len(extension.secrets[0])
    assert (0o600, 0o600) == (mode(folder / "my-extension.secret"), mode(folder / "extensions.toml"))
    assert secret not in (folder / "extensions.toml").read_text()
    extcli("token", "mint", env={"EXTCLI_SECRET_FILE": "my-extension.secret"}, exits=0)


def test_init_inline_writes_one_file(extcli, folder: Path):
    extcli("extension", "init", "--client-id", CLIENT_ID, "--inline")

    assert ["extensions.toml"] == [path.name for path in folder.iterdir()]
    assert 32 == len(registered(folder)[CLIENT_ID].secrets[0])
    assert 0o600 == mode(folder / "extensions.toml")


@pytest.mark.parametrize(
    ("inline", "output"), [((), "table"), ((), "json"), (("--inline",), "plain"), (("--inline",), "jsonl")]
)
def test_secrets_are_printed_only_with_show(extcli, folder: Path, inline: tuple[str, ...], output: str):
    shown = extcli("extension", "init", "--client-id", CLIENT_ID, *inline, "--show", "-o", output)
    other = ("init", "--client-id", "other", *inline)
    hidden = [
        extcli("extension", *args, "-v", "-o", output)
        for args in (("list",), ("rotate", "--client-id", CLIENT_ID), other, other, ("retire", "--client-id", "other"))
    ]

    secrets = [base64.b64encode(key).decode() for each in registered(folder).values() for key in each.secrets]
    assert [secrets[1]] == [secret for secret in secrets if secret in shown.stdout]
    assert [0, 0, 0, 2, 0] == [result.exit_code for result in hidden]
    assert not [secret for secret in secrets for result in hidden if secret in result.stdout + result.stderr]


def test_init_appends_to_a_file_and_keeps_its_mode(extcli, folder: Path, laid_out: Path):
    laid_out.chmod(0o640)

    extcli("extension", "init", "--client-id", "a/b.c", exits=0)

    assert laid_out.read_text().startswith(LAID_OUT)
    assert ["my-extension", "other", "a/b.c"] == list(registered(folder))
    assert (0o640, 0o600) == (mode(laid_out), mode(folder / "a-b.c.secret"))


def test_init_overwrites_no_secret_file_and_no_extension(extcli, folder: Path):
    (folder / "my-extension.secret").write_text("existing")

    first = extcli("extension", "init", "--client-id", CLIENT_ID)
    extcli("extension", "init", "--client-id", CLIENT_ID, fails=2)

    assert "existing" == (folder / "my-extension.secret").read_text()
    assert ["secret_file", "my-extension.2.secret"] in first.rows
    assert not (folder / "my-extension.3.secret").exists()


@pytest.mark.parametrize("keep", [0, 2, 4, 9])
def test_rotate_keeps_n_older_secrets_and_all_comments(extcli, folder: Path, laid_out: Path, keep: int):
    extcli("extension", "rotate", "--client-id", CLIENT_ID, "--keep", str(keep), exits=0)

    extension = registered(folder)[CLIENT_ID]
    kept = [b"newest", b"older", b"oldest", b"file", b"env"][:keep]
    assert (32, kept, "12345") == (len(extension.secrets[0]), list(extension.secrets[1:]), extension.owner_user_id)
    lines = laid_out.read_text().splitlines()
    theirs = LAID_OUT.splitlines()
    assert theirs[:5] == lines[:5]
    assert theirs[-4:] == lines[-4:]


def test_rotate_keeps_the_previous_secret_and_retire_only_the_newest(extcli, folder: Path):
    extcli("extension", "init", "--client-id", CLIENT_ID)
    (first,) = registered(folder)[CLIENT_ID].secrets
    extcli("extension", "rotate", "--client-id", CLIENT_ID)
    newest, previous = registered(folder)[CLIENT_ID].secrets
    assert first == previous != newest

    write_profiles("[profiles")
    extcli("extension", "retire", "--client-id", CLIENT_ID, exits=2)
    assert (newest, first) == registered(folder)[CLIENT_ID].secrets
    write_profiles()
    assert "my-extension.secret" in extcli("extension", "retire", "--client-id", CLIENT_ID, exits=0).stderr

    assert (newest,) == registered(folder)[CLIENT_ID].secrets
    assert (folder / "my-extension.secret").exists()


def test_retire_drops_secrets_of_all_sources(extcli, folder: Path, laid_out: Path):
    result = extcli("extension", "retire", "--client-id", CLIENT_ID)

    text = laid_out.read_text()
    assert (b"newest",) == registered(folder)[CLIENT_ID].secrets
    assert 4 == result.stderr.count("dropped: ")
    assert LAID_OUT[: LAID_OUT.index('    "b2xk')] == text[: text.index("]\nsecret_files")]
    assert LAID_OUT.splitlines()[-4:] == text.splitlines()[-4:]
    extcli("extension", "rotate", "--client-id", "other")
    fresh, old = registered(folder)["other"].secrets
    assert (base64.b64decode((folder / "other.secret").read_text()), b"env") == (fresh, old)


@pytest.mark.parametrize(
    "text",
    [
        '[extensions.e]\nsecrets = ["{}QUJD"{}]  # both\nowner_user_id = "1"  # us\n',
        '[extensions]\ne = {{ secrets = ["{}QUJD"{}], owner_user_id = "1" }}  # ours\n',
        'title = "x"\n[extensions.a]\nsecrets = ["QUJD"]\n[other]\nx = 1\n[extensions.e]\nsecrets = ["{}QUJD"{}]\n',
    ],
    ids=["one line", "an inline table", "any order"],
)
def test_an_edit_keeps_the_layout_of_a_file(extcli, folder: Path, text: str):
    (folder / "extensions.toml").write_text(text.format("", ', "REVG"'))

    extcli("extension", "rotate", "--client-id", "e", exits=0)

    fresh = base64.b64encode(registered(folder)["e"].secrets[0]).decode()
    assert text.format(f'{fresh}", "', "") == (folder / "extensions.toml").read_text()


def test_an_edit_follows_a_symbolic_link(extcli, folder: Path, laid_out: Path):
    laid_out.rename(folder / "real.toml")
    laid_out.symlink_to("real.toml")

    extcli("extension", "rotate", "--client-id", "other")

    assert laid_out.is_symlink()
    assert "other.secret" in (folder / "real.toml").read_text()


def test_list_shows_owners_and_sources(extcli, laid_out: Path):
    plain, structured = extcli("extension", "list"), extcli("extension", "list", "-o", "json")

    assert ["my-extension", "12345", "5"] == plain.rows[0][:3]
    assert ["other", "", "1", "env THEIR_SECRET (unset)"] == plain.rows[1]
    assert {"from": "file", "name": "kept.secret", "state": "short"} == structured.json[0]["sources"][3]
    assert {"client_id", "owner_user_id", "secrets", "sources"} == set(structured.json[1])


def test_an_argument_or_the_variable_of_serve_names_the_file(extcli, folder: Path):
    (folder / "elsewhere.toml").write_text('[extensions.e]\nsecrets = ["QUJD"]\n')

    for args, variables in (("elsewhere.toml",), {}), ((), {"EXTCLI_SERVE_EXTENSIONS": "elsewhere.toml"}):
        assert ["e", "", "1", "inline (short)"] == extcli("extension", "list", *args, env=variables).rows[0]


# Errors in the extensions file


WRONG = {
    "not TOML": "[extensions.e\n",
    "not text": "\udcff",
    "an unknown key": '[extensions.e]\nsecret = "QUJD"',
}


@pytest.mark.parametrize("mistake", WRONG)
def test_an_invalid_file_stays_as_it_is(extcli, folder: Path, mistake: str):
    text = WRONG[mistake].encode("utf-8", "surrogateescape")
    (folder / "extensions.toml").write_bytes(text)

    for verb in ("init", "list", "rotate", "retire"):
        named = () if verb == "list" else ("--client-id", "e")
        assert extcli("extension", verb, *named, exits=2).stderr.startswith("extcli: extensions.toml:")
    assert ["extensions.toml"] == [path.name for path in folder.iterdir()]
    assert text == (folder / "extensions.toml").read_bytes()


def test_only_init_creates_the_file_and_a_change_requires_a_registered_extension(extcli, folder: Path):
    for words in ("list", "rotate", "retire", "init absent/extensions.toml"):
        extcli("extension", *words.split(), exits=2)
    assert [] == list(folder.iterdir())
    (folder / "extensions.toml").write_text(LAID_OUT)
    for verb in ("rotate", "retire", "revoke-all"):
        assert "my-extension, other" in extcli("extension", verb, "--client-id", "nobody", exits=2).stderr
    assert LAID_OUT == (folder / "extensions.toml").read_text()


# `extcli extension revoke-all`: every link and issued token of an extension ends at the next reload (ruling T3)


INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_everything_issued_until_now_ends(extcli, folder: Path, laid_out: Path):
    start = now()

    result = extcli("extension", "revoke-all", "--client-id", CLIENT_ID, exits=0)

    instant = registered(folder)[CLIENT_ID].tokens_not_before
    assert start < instant <= now() + 1
    assert 0 == registered(folder)["other"].tokens_not_before
    assert re.fullmatch(INSTANT, dict(result.rows)["tokens_not_before"])
    [line] = [line for line in laid_out.read_text().splitlines() if line not in LAID_OUT.splitlines()]
    assert LAID_OUT == laid_out.read_text().replace(f"{line}\n", "")
    for verb in ("rotate", "retire"):
        extcli("extension", verb, "--client-id", CLIENT_ID, exits=0)
    assert instant == registered(folder)[CLIENT_ID].tokens_not_before
    ours, theirs = extcli("extension", "list", "-o", "json").json
    assert ("tokens_not_before" in ours, "tokens_not_before" in theirs) == (True, False)


@pytest.mark.parametrize("time", ["2020-01-01T00:00:00+01:00", "9999-01-01T00:00:00Z"])
def test_the_time_never_moves_back(extcli, folder: Path, laid_out: Path, time: str):
    laid_out.write_text(f'[extensions.e]\nsecrets = ["QUJD"]\ntokens_not_before = {time}  # a leak\n')
    before = registered(folder)["e"].tokens_not_before

    extcli("extension", "revoke-all", "--client-id", "e")

    assert (before < registered(folder)["e"].tokens_not_before) == time.startswith("2020")
    assert before <= registered(folder)["e"].tokens_not_before
    assert laid_out.read_text().endswith("Z  # a leak\n")


def test_a_value_that_is_not_an_instant_is_refused(extcli, laid_out: Path):
    for value in ("2026-11-22T10:00:00", '"2026-11-22T10:00:00Z"', "1"):
        laid_out.write_text(f'[extensions.e]\nsecrets = ["QUJD"]\ntokens_not_before = {value}\n')
        assert "extensions.e.tokens_not_before" in extcli("extension", "list", exits=2).stderr
        with pytest.raises(ConfigurationError, match=r"extensions\.e\.tokens_not_before"):
            read_extensions(laid_out)


# Warnings about files of secrets and tokens that other users can read


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o600])
def test_a_secret_file_that_others_can_read_is_used_and_reported_once(extcli, live, tmp_path, mode):
    path = tmp_path / "live.secret"
    path.write_text(SECRET_BASE64)
    path.chmod(mode)
    write_profiles(live={"url": live.url, "secret_file": path.name})
    warning = f"other users can read {path}: chmod 600 {path}\n" if mode & 0o077 else ""
    get, variables = ("vote", "get", "-o", "plain"), {"EXTCLI_SECRET_FILE": str(path)}

    by_profile = extcli("socket", "send", "get", "state", "--data", '{"state_id": "channel"}', "-p", "live", exits=0)

    assert warning == extcli(*get, env=variables, exits=0).stderr
    assert bool(warning) == by_profile.stderr.count("other users can read")
    assert "" == extcli(*get, "-q", env=variables).stderr
