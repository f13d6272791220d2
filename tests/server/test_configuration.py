"""The options and the extensions file of `extcli serve`, and its errors for invalid ones (operations, Starting)."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from emulator.config.extensions import Extension, read_extensions
from emulator.errors import ConfigurationError
from extcli.errors import UsageError
from extcli.extensions.registry import registrations
from extcli.main import main

SECRET = "dGhlIHNlY3JldCB0aGF0IG11c3Qgbm90IGJlIHNob3du"
MISTAKES = {
    # the content of the file, and a part of the error message after the file's name
    "nothing": ("", "extensions: has no table"),
    "no table": ('[extension.my-ext]\nsecrets = ["{SECRET}"]', "extensions: has no table"),
    "a key of many parts": (f"{'a.' * 20_000}a = 1", "is not TOML: a key has more than 100 parts"),
    "a file of megabytes": ("#" * (1 << 20) + "\n", "cannot be read: it is larger than 1,048,576 bytes"),
    "an empty table": ("[extensions]", "extensions: has no table"),
    "a list of extensions": ('extensions = ["my-ext"]', ":1:1: extensions: must be a table"),
    "an extension that is text": ('[extensions]\nmy-ext = "{SECRET}"', ":2:1: extensions.my-ext: must be a table"),
    "not TOML": ("[extensions.my-ext\nsecrets = {SECRET}", "is not TOML"),
    "UTF-16": ("\udcff\udcfe", "it is UTF-16; save it as UTF-8"),
    "not text": ("\udcff", "is not TOML"),
    "a huge number": ("a = " + "1" * 5_000, "is not TOML"),
    "deep nesting": ("a = " + "[" * 5_000, "is nested too deeply"),
    "a duplicate key": ('[extensions.e]\nsecrets = ["{SECRET}"]\nsecrets = ["{SECRET}"]', "is not TOML"),
    "no secret": ("[extensions.my-ext]", "extensions.my-ext: has no secret"),
    "no secrets": ("[extensions.my-ext]\nsecrets = []", "extensions.my-ext: has no secret"),
    "a misspelled key": ('[extensions.e]\nsecret = "{SECRET}"', ":2:1: extensions.e.secret: unknown field"),
    "a key of two lines": ('[extensions.e]\n"a\\nb" = 1', ':2:1: extensions.e["a\\nb"]: unknown field'),
    "a client id of two lines": ('[extensions."a\\nb"]\nsecrets = ["{SECRET}"]', 'extensions["a\\nb"]: a client id'),
    "a client id with a space": ('[extensions."a b"]\nsecrets = ["{SECRET}"]', 'extensions["a b"]: a client id'),
    "an empty client id": ('[extensions.""]\nsecrets = ["{SECRET}"]', 'extensions[""]: a client id'),
    "secrets that are text": ('[extensions.e]\nsecrets = "{SECRET}"', "extensions.e.secrets: must be a list"),
    "secrets that are numbers": ("[extensions.e]\nsecrets = [1]", ":2:12: extensions.e.secrets[0]: must be a text"),
    "a secret that is not base64": ('[extensions.e]\nsecrets = ["{SECRET}", "{SECRET}!"]', "secrets[1]: is not base64"),
    "a truncated secret": ('[extensions.e]\nsecrets = ["{SECRET}A"]', "e.secrets[0]: is not base64"),
    "a secret with an umlaut": ('[extensions.e]\nsecrets = ["{SECRET}ä"]', "e.secrets[0]: is not base64"),
    "an empty secret": ('[extensions.e]\nsecrets = [""]', "extensions.e.secrets[0]: is empty"),
    "a missing file": ('[extensions.e]\nsecret_files = ["absent"]', "absent' cannot be read: No such file"),
    "a directory as file": ('[extensions.e]\nsecret_files = ["."]', "cannot be read: Is a directory"),
    "an impossible file name": ('[extensions.e]\nsecret_files = ["a\\u0000b"]', "cannot be read"),
    "files that are text": ('[extensions.e]\nsecret_files = "s.txt"', "secret_files: must be a list of"),
    "an unset variable": ('[extensions.e]\nsecret_env = "EXTCLI_UNSET"', "e.secret_env: must name an environment"),
    "an empty variable name": ('[extensions.e]\nsecret_env = ""', "e.secret_env: must name an environment"),
    "a variable without base64": ('[extensions.e]\nsecret_env = "BROKEN"', "extensions.e.secret_env: is not base64"),
    "an owner that is a number": ('[extensions.e]\nsecrets = ["{SECRET}"]\nowner_user_id = 1', "owner_user_id: must"),
}  # fmt: skip


def failed_start(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    """Run `extcli serve`, which must fail before it serves; return exit code and standard error."""
    code = main(["serve", "--port", "0", *args])
    printed = capsys.readouterr()
    assert "" == printed.out
    return code, printed.err


def written(folder: Path, text: str) -> Path:
    file = folder / "extensions.toml"
    file.write_bytes(text.replace("{SECRET}", SECRET).encode("utf-8", "surrogateescape"))
    return file


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_invalid_extensions_file_exits_2_and_names_file_and_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mistake: str
):
    text, expected = MISTAKES[mistake]
    file = written(tmp_path, text)
    monkeypatch.setenv("BROKEN", f"{SECRET}?")

    code, error = failed_start(capsys, "--production", "--extensions", str(file))

    assert 2 == code
    assert error.startswith(f"extcli serve: {file}:")
    assert expected in error
    assert (1, "\n") == (len(error.splitlines()), error[-1])
    assert SECRET not in error
    if "environment" not in expected:  # a variable may be set for the service only
        with pytest.raises(UsageError) as told:
            registrations(file)
        assert error == f"extcli serve: {told.value}\n"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--production"], "--production needs --extensions FILE"),
        (["--registered-only"], "--registered-only needs --extensions FILE"),
        (["--extensions", "/absent/file.toml"], "/absent/file.toml: cannot be read: No such file or directory"),
        (["--extensions", "/"], "/: cannot be read: Is a directory"),
        (["--data", "mysql://here"], "--data: cannot keep data in 'mysql://here': accepted are sqlite://"),
        (["--data", ""], "--data: cannot keep data in '': accepted are sqlite://"),
        (
            ["--data", "my.db"],
            "--data: cannot keep data in 'my.db': write sqlite:///./my.db for a file; accepted",
        ),
        (
            ["--data", "/srv/my.db"],
            "--data: cannot keep data in '/srv/my.db': write sqlite:///srv/my.db for a file; accepted",
        ),
        (["--data", "sqlite://file.db"], "--data: cannot keep data in 'sqlite://file.db': accepted are sqlite://"),
        (["--data", "sqlite:///absent/folder/x.db"], "cannot open /absent/folder/x.db"),
        (
            ["--data", "sqlite:///x.db?synchronous=maybe"],
            "--data: cannot keep data in 'sqlite:///x.db?synchronous=maybe': synchronous is 'maybe'; normal and full",
        ),
        (["--data", "sqlite:////"], "--data: cannot keep data in 'sqlite:////'"),
        (["--data", "sqlite:///usr"], "cannot open /usr"),
        (["--data", "sqlite:///etc/passwd"], "cannot open /etc/passwd"),
        (["--workers", "2"], "--workers needs --data that processes can share"),
        (["--workers", "2", "--data", "sqlite:///absent/folder/x.db"], "cannot open /absent/folder/x.db"),
        (["--page-events", "some"], "--page-events: 'some' must be 'all' or 'none'"),
        (["--channel-stores", "both"], "--channel-stores: 'both' must be 'shared' or 'extension'"),
        (["--log-level", "loud"], "--log-level: 'loud' is not one of debug, info, warning, error"),
        (["--log-format", "xml"], "--log-format: 'xml' is not one of text, json"),
        (["--data", "redsi://user:word@here/1"], "--data: cannot keep data in 'redsi://…@here/1': accepted"),
        (
            ["--data", "redis://user:word/@here/1"],
            "--data: cannot keep data in redis://…: percent-encode special characters in the user and password",
        ),
        (["--control-host", "http://x"], "--control-host: 'http://x' must be a host name, without scheme and port"),
        (["--control-host", "x:8282"], "--control-host: 'x:8282' must be a host name, without scheme and port"),
        (["--control-host", ""], "--control-host: '' must be a host name"),
        (
            ["--production", "--extensions", "x", "--control-host", "x"],
            "--control-host: --production has no control API",
        ),
        (["--host", "no..such"], "--host no..such --port 0:"),
        (["--host", "192.0.2.1"], "--host 192.0.2.1 --port 0: Cannot assign requested address"),
    ],
    ids=" ".join,
)
def test_an_invalid_option_exits_2_with_one_line(capsys: pytest.CaptureFixture[str], args: list[str], expected: str):
    code, error = failed_start(capsys, *args)

    assert (2, 1) == (code, len(error.splitlines()))
    assert error.startswith(f"extcli serve: {expected}")


def test_secrets_come_from_the_file_other_files_and_the_environment(tmp_path: Path):
    texts = {name: base64.b64encode(name.encode()).decode() for name in ("first", "second", "third", "fourth")}
    (tmp_path / "third.txt").write_text(f"{texts['third']}\n")
    file = written(
        tmp_path,
        f"""
        [extensions.my-ext]
        secrets = ["{texts["first"]}", "{texts["second"]}"]
        secret_files = ["third.txt"]
        secret_env = "MY_SECRET"
        owner_user_id = "12345"
        [extensions."12345"]
        secrets = ["{texts["first"]}"]
        """,
    )

    extensions = read_extensions(file, {"MY_SECRET": f"{texts['fourth']}\n"})

    assert Extension("my-ext", (b"first", b"second", b"third", b"fourth"), "12345") == extensions["my-ext"]
    assert Extension("12345", (b"first",)) == extensions["12345"]


def test_dots_outside_of_keys_are_allowed(tmp_path: Path):
    (tmp_path / "secret").write_text("Zmlyc3Q=")
    name = f"{'./' * 101}secret"
    file = written(tmp_path, f'[extensions.my-ext]\nsecret_files = ["{name}"]  # {"." * 200}')

    assert {"my-ext": Extension("my-ext", (b"first",))} == read_extensions(file)


def test_a_number_of_too_many_digits_is_refused(tmp_path: Path):
    file = written(tmp_path, f'[extensions.my-ext]\nsecrets = ["Zmlyc3Q="]\nowner_user_id = 0x{"f" * 5000}')

    with pytest.raises(ConfigurationError, match="is not TOML: a number has too many digits"):
        read_extensions(file)


def test_a_device_cannot_be_the_file_of_extensions():
    with pytest.raises(ConfigurationError, match="it is not a regular file"):
        read_extensions(Path("/dev/zero"))


def test_the_repr_of_an_extension_has_no_secrets():
    assert "shown" not in repr(Extension("my-ext", (b"not to be shown",)))
