"""The options and the extensions file of `extcli serve`, and its errors for invalid ones (operations, Starting)."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from emulator.core.extensions import Extension, read_extensions
from extcli.errors import UsageError
from extcli.extensions import list_extensions
from extcli.main import main

SECRET = "dGhlIHNlY3JldCB0aGF0IG11c3Qgbm90IGJlIHNob3du"
MISTAKES = {
    # the content of the file, and a part of the error message after the file's name
    "nothing": ("", "extensions: "),
    "a key of many parts": (f"{'a.' * 20_000}a = 1", "is not TOML"),
    "a file of megabytes": ("#" * (1 << 20) + "\n", "cannot be read"),
    "a list of extensions": ('extensions = ["my-ext"]', ":1:1: extensions: "),
    "an extension that is text": ('[extensions]\nmy-ext = "{SECRET}"', ":2:1: extensions.my-ext: "),
    "not TOML": ("[extensions.my-ext\nsecrets = {SECRET}", "is not TOML"),
    "UTF-16": ("\udcff\udcfe", "UTF-16"),
    "a huge number": ("a = " + "1" * 5_000, "is not TOML"),
    "a number of many digits": ('[extensions.e]\nsecrets = ["{SECRET}"]\nn = 0x' + "f" * 5_000, "is not TOML"),
    "deep nesting": ("a = " + "[" * 5_000, "is nested too deeply"),
    "no secret": ("[extensions.my-ext]", "extensions.my-ext: "),
    "a key of two lines": ('[extensions.e]\n"a\\nb" = 1', ':2:1: extensions.e["a\\nb"]: '),
    "a client id of two lines": ('[extensions."a\\nb"]\nsecrets = ["{SECRET}"]', 'extensions["a\\nb"]: '),
    "a client id with a space": ('[extensions."a b"]\nsecrets = ["{SECRET}"]', 'extensions["a b"]: '),
    "secrets that are text": ('[extensions.e]\nsecrets = "{SECRET}"', "extensions.e.secrets: "),
    "secrets that are numbers": ("[extensions.e]\nsecrets = [1]", ":2:12: extensions.e.secrets[0]: "),
    "a secret that is not base64": ('[extensions.e]\nsecrets = ["{SECRET}", "{SECRET}!"]', "secrets[1]: "),
    "a truncated secret": ('[extensions.e]\nsecrets = ["{SECRET}A"]', "e.secrets[0]: "),
    "an empty secret": ('[extensions.e]\nsecrets = [""]', "extensions.e.secrets[0]: "),
    "a missing file": ('[extensions.e]\nsecret_files = ["absent"]', "absent' cannot be read"),
    "an impossible file name": ('[extensions.e]\nsecret_files = ["a\\u0000b"]', "cannot be read"),
    "files that are text": ('[extensions.e]\nsecret_files = "s.txt"', "secret_files: "),
    "an unset variable": ('[extensions.e]\nsecret_env = "EXTCLI_UNSET"', "e.secret_env: must name an environment"),
    "a variable without base64": ('[extensions.e]\nsecret_env = "BROKEN"', "extensions.e.secret_env: is not base64"),
    "an owner that is a number": ('[extensions.e]\nsecrets = ["{SECRET}"]\nowner_user_id = 1', "owner_user_id: "),
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
            list_extensions(file)
        assert error == f"extcli serve: {told.value}\n"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--production"], "--production needs --extensions FILE"),
        (["--registered-only"], "--registered-only needs --extensions FILE"),
        (["--extensions", "/absent/file.toml"], "/absent/file.toml: "),
        (["--extensions", "/"], "/: "),
        (["--extensions", "/dev/zero"], "/dev/zero: "),
        (["--data", "mysql://here"], "--data: cannot keep data in 'mysql://here'"),
        (["--data", ""], "--data: cannot keep data in ''"),
        (["--data", "my.db"], "--data: cannot keep data in 'my.db': write sqlite:///./my.db"),
        (["--data", "/srv/my.db"], "--data: cannot keep data in '/srv/my.db': write sqlite:///srv/my.db"),
        (["--data", "sqlite://file.db"], "--data: cannot keep data in 'sqlite://file.db'"),
        (["--data", "sqlite:///absent/folder/x.db"], "cannot open /absent/folder/x.db"),
        (["--data", "sqlite:///x.db?synchronous=maybe"], "--data: cannot keep data in 'sqlite:///x.db?synchronous="),
        (["--data", "sqlite:////"], "--data: cannot keep data in 'sqlite:////'"),
        (["--data", "sqlite:///etc/passwd"], "cannot open /etc/passwd"),
        (["--page-events", "some"], "--page-events: 'some'"),
        (["--log-level", "loud"], "--log-level: 'loud'"),
        (["--data", "redsi://user:word@here/1"], "--data: cannot keep data in 'redsi://…@here/1'"),
        (["--data", "redis://user:word/@here/1"], "--data: cannot keep data in redis://…: "),
        (["--control-host", "http://x"], "--control-host: 'http://x'"),
        (["--control-host", "x:8282"], "--control-host: 'x:8282'"),
        (["--production", "--extensions", "x", "--control-host", "x"], "--control-host: --production"),
        (["--host", "no..such"], "--host no..such --port 0:"),
        (["--host", "192.0.2.1"], "--host 192.0.2.1 --port 0: "),
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
