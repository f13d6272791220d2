"""`extcli extension`: the service reads what it writes, and it keeps what an edit does not concern."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from emulator.config.extensions import Extension
from support.extension_files import LAID_OUT, registered
from support.profile_files import write_profiles
from support.service import CLIENT_ID


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_init_creates_an_extensions_file_and_a_secret_file(extcli, folder: Path):
    result = extcli("extension", "init", "--client-id", CLIENT_ID, "--owner", "12345")

    extension = registered(folder)[CLIENT_ID]
    secret = (folder / "my-extension.secret").read_text().strip()
    assert (0, "") == (result.exit_code, result.stderr)
    assert [["client_id", CLIENT_ID], ["file", "extensions.toml"], ["secret_file", "my-extension.secret"]] == (
        result.rows
    )
    assert Extension(CLIENT_ID, (base64.b64decode(secret),), "12345") == extension
    assert 32 == len(extension.secrets[0])
    assert (0o600, 0o600) == (mode(folder / "my-extension.secret"), mode(folder / "extensions.toml"))
    assert secret not in (folder / "extensions.toml").read_text()


def test_init_inline_writes_one_file(extcli, folder: Path):
    extcli("extension", "init", "--client-id", CLIENT_ID, "--inline")

    assert ["extensions.toml"] == [path.name for path in folder.iterdir()]
    assert 32 == len(registered(folder)[CLIENT_ID].secrets[0])
    assert 0o600 == mode(folder / "extensions.toml")


def test_a_new_secret_file_signs_tokens(extcli, folder: Path):
    extcli("extension", "init", "--client-id", CLIENT_ID)

    extcli("token", "mint", env={"EXTCLI_SECRET_FILE": "my-extension.secret"}, exits=0)


@pytest.mark.parametrize("inline", [(), ("--inline",)], ids=["in a file", "inline"])
@pytest.mark.parametrize("output", ["plain", "json", "jsonl", "table"])
def test_secrets_are_printed_only_with_show(extcli, folder: Path, inline: tuple[str, ...], output: str):
    shown = extcli("extension", "init", "--client-id", CLIENT_ID, *inline, "--show", "-o", output)
    hidden = [
        extcli("extension", *args, "-v", "-o", output)
        for args in (
            ("list",),
            ("rotate", "--client-id", CLIENT_ID),
            ("init", "--client-id", "other", *inline),
            ("init", "--client-id", "other", *inline),
            ("rotate", "--client-id", "nobody"),
            ("retire", "--client-id", "other"),
        )
    ]

    secrets = [base64.b64encode(key).decode() for each in registered(folder).values() for key in each.secrets]
    assert [secrets[1]] == [secret for secret in secrets if secret in shown.stdout]
    assert [0, 0, 0, 2, 2, 0] == [result.exit_code for result in hidden]
    assert not [secret for secret in secrets for result in hidden if secret in result.stdout + result.stderr]


def test_init_appends_to_a_file_and_keeps_its_mode(extcli, folder: Path):
    file = folder / "extensions.toml"
    file.write_text(LAID_OUT)
    file.chmod(0o640)
    (folder / "kept.secret").write_text("ZmlsZQ==")

    result = extcli("extension", "init", "--client-id", "a/b.c", exits=0)

    assert "kill -HUP <pid>" in result.stderr
    assert file.read_text().startswith(LAID_OUT)
    assert ["my-extension", "other", "a/b.c"] == list(registered(folder))
    assert (0o640, 0o600) == (mode(file), mode(folder / "a-b.c.secret"))


def test_init_overwrites_no_secret_file_and_no_extension(extcli, folder: Path):
    (folder / "my-extension.secret").write_text("existing")

    first = extcli("extension", "init", "--client-id", CLIENT_ID)
    again = extcli("extension", "init", "--client-id", CLIENT_ID)

    assert "existing" == (folder / "my-extension.secret").read_text()
    assert ["secret_file", "my-extension.2.secret"] in first.rows
    assert (2, "") == (again.exit_code, again.stdout)
    assert again.stderr.startswith("extcli: extensions.toml: extensions.my-extension is registered already\n")
    assert "extcli extension rotate --client-id my-extension" in again.stderr
    assert not (folder / "my-extension.3.secret").exists()


def test_rotate_adds_a_secret_and_keeps_the_previous_one(extcli, folder: Path):
    extcli("extension", "init", "--client-id", CLIENT_ID)
    keys = [registered(folder)[CLIENT_ID].secrets]
    for _ in range(2):
        result = extcli("extension", "rotate", "--client-id", CLIENT_ID)
        keys.append(registered(folder)[CLIENT_ID].secrets)

    (first,), (second, *after_second), (third, *after_third) = keys
    assert ([first], [second]) == (after_second, after_third)
    assert 3 == len({first, second, third})
    assert "dropped: my-extension.secret; its file was not deleted\n" in result.stderr
    assert (folder / "my-extension.secret").exists()


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (0, []),
        (1, [b"newest"]),
        (2, [b"newest", b"older"]),
        (4, [b"newest", b"older", b"oldest", b"file"]),
        (5, [b"newest", b"older", b"oldest", b"file", b"env"]),
        (9, [b"newest", b"older", b"oldest", b"file", b"env"]),
    ],
)
def test_rotate_keeps_n_older_secrets_and_all_comments(extcli, folder: Path, keep: int, kept: list[bytes]):
    file = folder / "extensions.toml"
    file.write_text(LAID_OUT)
    (folder / "kept.secret").write_text("ZmlsZQ==")

    result = extcli("extension", "rotate", "--client-id", CLIENT_ID, "--keep", str(keep))

    extension = registered(folder)[CLIENT_ID]
    assert 0 == result.exit_code
    assert (32, kept, "12345") == (len(extension.secrets[0]), list(extension.secrets[1:]), extension.owner_user_id)
    lines = file.read_text().splitlines()
    theirs = LAID_OUT.splitlines()
    assert theirs[:5] == lines[:5]
    assert theirs[-4:] == lines[-4:]


def test_retire_keeps_the_newest_secret_and_deletes_no_files(extcli, folder: Path):
    extcli("extension", "init", "--client-id", CLIENT_ID)
    extcli("extension", "rotate", "--client-id", CLIENT_ID)
    newest, _ = registered(folder)[CLIENT_ID].secrets

    result = extcli("extension", "retire", "--client-id", CLIENT_ID, exits=0)

    assert (newest,) == registered(folder)[CLIENT_ID].secrets
    assert "dropped: my-extension.secret; its file was not deleted\n" in result.stderr
    assert "kill -HUP <pid>" in result.stderr
    assert (folder / "my-extension.secret").exists()


@pytest.mark.parametrize("step", [("rotate", "--keep", "0"), ("retire",)], ids=["rotate", "retire"])
def test_dropping_a_secret_names_the_profiles_that_use_its_file(extcli, folder: Path, step: tuple[str, ...]):
    extcli("extension", "init", "--client-id", CLIENT_ID)
    extcli("extension", "rotate", "--client-id", CLIENT_ID)
    urls = {"url": "http://127.0.0.1:1"}
    write_profiles(
        old=urls | {"secret_file": str(folder / "my-extension.secret")},
        new=urls | {"secret_file": str(folder / "my-extension.2.secret")},
        none=urls,
    )

    result = extcli("extension", *step, "--client-id", CLIENT_ID)

    newest = folder / ("my-extension.3.secret" if step[0] == "rotate" else "my-extension.2.secret")
    named = [line for line in result.stderr.splitlines() if line.startswith("profile old ")]
    assert [f"profile old uses a dropped secret: extcli -p old config set secret_file {newest}"] == named
    assert (step[0] == "rotate") == ("profile new uses a dropped secret" in result.stderr)
    assert "profile none" not in result.stderr


def test_a_damaged_profiles_file_stops_a_retirement_before_it_starts(extcli, folder: Path):
    extcli("extension", "init", "--client-id", CLIENT_ID)
    extcli("extension", "rotate", "--client-id", CLIENT_ID)
    write_profiles("[profiles")

    result = extcli("extension", "retire", "--client-id", CLIENT_ID)

    assert (2, 2) == (result.exit_code, len(registered(folder)[CLIENT_ID].secrets))


def test_retire_drops_secrets_of_all_sources(extcli, folder: Path):
    (folder / "extensions.toml").write_text(LAID_OUT)
    (folder / "kept.secret").write_text("ZmlsZQ==")

    result = extcli("extension", "retire", "--client-id", CLIENT_ID)

    text = (folder / "extensions.toml").read_text()
    assert (b"newest",) == registered(folder)[CLIENT_ID].secrets
    assert ["one of secrets", "one of secrets", "kept.secret; its file was not deleted", "OLD_SECRET"] == [
        line.removeprefix("dropped: ") for line in result.stderr.splitlines() if line.startswith("dropped: ")
    ]
    assert LAID_OUT[: LAID_OUT.index('    "b2xk')] == text[: text.index("]\nsecret_files")]
    assert LAID_OUT.splitlines()[-4:] == text.splitlines()[-4:]


def test_retire_keeps_an_only_secret(extcli, folder: Path):
    (folder / "extensions.toml").write_text(LAID_OUT)

    result = extcli("extension", "retire", "--client-id", "other")

    assert (0, "nothing to drop: the extension has only one secret\n") == (result.exit_code, result.stderr)
    assert LAID_OUT == (folder / "extensions.toml").read_text()


def test_rotate_adds_a_secret_file_to_an_extension_with_a_variable(extcli, folder: Path):
    (folder / "extensions.toml").write_text(LAID_OUT)
    (folder / "kept.secret").write_text("ZmlsZQ==")

    extcli("extension", "rotate", "--client-id", "other")

    fresh, old = registered(folder)["other"].secrets
    assert (base64.b64decode((folder / "other.secret").read_text()), b"env") == (fresh, old)


def test_a_list_on_one_line_stays_on_one_line(extcli, folder: Path):
    file = folder / "extensions.toml"
    file.write_text('[extensions.e]\nsecrets = ["QUJD", "REVG"]  # both\nowner_user_id = "1"  # us\n')
    file.chmod(0o644)

    result = extcli("extension", "rotate", "--client-id", "e")

    fresh = base64.b64encode(registered(folder)["e"].secrets[0]).decode()
    assert f'[extensions.e]\nsecrets = ["{fresh}", "QUJD"]  # both\nowner_user_id = "1"  # us\n' == file.read_text()
    assert "extensions.toml contains secrets, and other users can read it" in result.stderr


def test_an_inline_table_can_be_edited(extcli, folder: Path):
    file = folder / "extensions.toml"
    file.write_text('[extensions]\ne = { secrets = ["QUJD"], owner_user_id = "1" }  # ours\n')

    extcli("extension", "rotate", "--client-id", "e")

    fresh = base64.b64encode(registered(folder)["e"].secrets[0]).decode()
    assert f'[extensions]\ne = {{ secrets = ["{fresh}", "QUJD"], owner_user_id = "1" }}  # ours\n' == file.read_text()


def test_tables_can_be_in_any_order(extcli, folder: Path):
    file = folder / "extensions.toml"
    text = 'title = "x"\n[extensions.a]\nsecrets = ["QUJD"]\n[other]\nx = 1\n[extensions.b]\nsecrets = ["QUJD"]'
    file.write_text(text)

    codes = [
        extcli("extension", verb, "--client-id", name).exit_code for verb, name in (("init", "c"), ("rotate", "b"))
    ]

    assert [0, 0] == codes
    assert {"a": 1, "b": 2, "c": 1} == {name: len(each.secrets) for name, each in registered(folder).items()}
    assert file.read_text().startswith(text[: text.rindex('"QUJD"')])


def test_an_edit_follows_a_symbolic_link(extcli, folder: Path):
    (folder / "real.toml").write_text(LAID_OUT)
    (folder / "extensions.toml").symlink_to("real.toml")

    extcli("extension", "rotate", "--client-id", "other")

    assert (folder / "extensions.toml").is_symlink()
    assert "other.secret" in (folder / "real.toml").read_text()


def test_list_shows_owners_and_sources_and_warns_of_short_secrets(extcli, folder: Path):
    (folder / "extensions.toml").write_text(LAID_OUT)
    (folder / "kept.secret").write_text("ZmlsZQ==")

    plain, structured = extcli("extension", "list"), extcli("extension", "list", "-o", "json")

    assert [
        [
            "my-extension",
            "12345",
            "5",
            "inline (short), inline (short), inline (short), file kept.secret (short), env OLD_SECRET (unset)",
        ],
        ["other", "", "1", "env THEIR_SECRET (unset)"],
    ] == plain.rows
    assert "my-extension: a secret is shorter than the 32 bytes that HS256 requires\n" == plain.stderr
    assert {"from": "file", "name": "kept.secret", "state": "short"} == structured.json[0]["sources"][3]
    assert {"client_id", "owner_user_id", "secrets", "sources"} == set(structured.json[1])


def test_an_argument_or_the_variable_of_serve_names_the_file(extcli, folder: Path):
    (folder / "elsewhere.toml").write_text('[extensions.e]\nsecrets = ["QUJD"]\n')

    named = extcli("extension", "list", "elsewhere.toml")
    variable = extcli("extension", "list", env={"EXTCLI_SERVE_EXTENSIONS": "elsewhere.toml"})

    assert ["e", "", "1", "inline (short)"] == named.rows[0]
    assert named.stdout == variable.stdout
