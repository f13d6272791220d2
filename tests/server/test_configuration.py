"""How the service is told what to be, and what it says when it is told nonsense (operations, Starting)."""

from __future__ import annotations

import base64
import inspect
from pathlib import Path

import pytest
from typer.models import OptionInfo

from emulator.config.extensions import Extension, read_extensions
from extcli.commands.serve import serve
from extcli.main import main

SECRET = "dGhlIHNlY3JldCB0aGF0IG11c3Qgbm90IGJlIHNob3du"
MISTAKES = {
    # what is in the file, and what the one line says of it after the file's name
    "nothing": ("", "extensions: has no table"),
    "no table": ('[extension.my-ext]\nsecrets = ["{SECRET}"]', "extensions: has no table"),
    "an empty table": ("[extensions]", "extensions: has no table"),
    "a list of extensions": ('extensions = ["my-ext"]', "extensions: has no table"),
    "an extension that is text": ('[extensions]\nmy-ext = "{SECRET}"', "extensions.my-ext: must be a table"),
    "not TOML": ("[extensions.my-ext\nsecrets = {SECRET}", "is not TOML"),
    "not text": ("\udcff\udcfe", "is not TOML"),
    "a number without end": ("a = " + "1" * 5_000, "is not TOML"),
    "nested without end": ("a = " + "[" * 5_000, "is nested too deeply"),
    "a key twice": ('[extensions.e]\nsecrets = ["{SECRET}"]\nsecrets = ["{SECRET}"]', "is not TOML"),
    "no secret": ("[extensions.my-ext]", "extensions.my-ext: has no secret"),
    "no secrets": ("[extensions.my-ext]\nsecrets = []", "extensions.my-ext: has no secret"),
    "a misspelled key": ('[extensions.e]\nsecret = "{SECRET}"', "extensions.e.'secret': is not a known key"),
    "a key of two lines": ('[extensions.e]\n"a\\nb" = 1', "extensions.e.'a\\nb': is not a known key"),
    "a client id of two lines": ('[extensions."a\\nb"]\nsecrets = ["{SECRET}"]', "extensions.'a\\nb': a client id"),
    "a client id with a space": ('[extensions."a b"]\nsecrets = ["{SECRET}"]', "extensions.'a b': a client id"),
    "a client id of nothing": ('[extensions.""]\nsecrets = ["{SECRET}"]', "extensions.'': a client id"),
    "secrets that are text": ('[extensions.e]\nsecrets = "{SECRET}"', "extensions.e.secrets: must be an array"),
    "secrets that are numbers": ("[extensions.e]\nsecrets = [1]", "extensions.e.secrets: must be an array"),
    "a secret that is not base64": ('[extensions.e]\nsecrets = ["{SECRET}", "{SECRET}!"]', "secrets[1]: is not base64"),
    "a secret cut short": ('[extensions.e]\nsecrets = ["{SECRET}A"]', "e.secrets[0]: is not base64"),
    "a secret with an umlaut": ('[extensions.e]\nsecrets = ["{SECRET}ä"]', "e.secrets[0]: is not base64"),
    "an empty secret": ('[extensions.e]\nsecrets = [""]', "extensions.e.secrets[0]: is empty"),
    "a file that is not there": ('[extensions.e]\nsecret_files = ["absent"]', "absent' cannot be read: No such file"),
    "a file that is a folder": ('[extensions.e]\nsecret_files = ["."]', "cannot be read: Is a directory"),
    "a file of no name": ('[extensions.e]\nsecret_files = ["a\\u0000b"]', "cannot be read"),
    "files that are text": ('[extensions.e]\nsecret_files = "s.txt"', "secret_files: must be an array of strings"),
    "an unset variable": ('[extensions.e]\nsecret_env = "EXTCLI_UNSET"', "e.secret_env: names no environment variable"),
    "a variable of no name": ('[extensions.e]\nsecret_env = ""', "e.secret_env: names no environment variable"),
    "a variable with another text": ('[extensions.e]\nsecret_env = "BROKEN"', "extensions.e.secret_env: is not base64"),
    "an owner that is a number": ('[extensions.e]\nsecrets = ["{SECRET}"]\nowner_user_id = 1', "owner_user_id: must"),
}  # fmt: skip


def complaint(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    """Exit code and standard error of `extcli serve`, which must not come as far as to serve."""
    code = main(["serve", "--port", "0", *args])
    printed = capsys.readouterr()
    assert "" == printed.out
    return code, printed.err


def written(folder: Path, text: str) -> Path:
    file = folder / "extensions.toml"
    file.write_bytes(text.replace("{SECRET}", SECRET).encode("utf-8", "surrogateescape"))
    return file


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_bad_extensions_file_ends_with_2_and_one_line_naming_file_key_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mistake: str
):
    text, expected = MISTAKES[mistake]
    file = written(tmp_path, text)
    monkeypatch.setenv("BROKEN", f"{SECRET}?")

    code, error = complaint(capsys, "--production", "--extensions", str(file))

    assert 2 == code
    assert error.startswith(f"extcli serve: {file}: ")
    assert expected in error
    assert (1, "\n") == (len(error.splitlines()), error[-1])
    assert SECRET not in error


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--production"], "--production needs --extensions FILE"),
        (["--registered-only"], "--registered-only needs --extensions FILE"),
        (["--extensions", "/absent/file.toml"], "/absent/file.toml: cannot be read: No such file or directory"),
        (["--extensions", "/"], "/: cannot be read: Is a directory"),
        (["--data", "mysql://here"], "--data: cannot keep data in 'mysql://here': accepted are sqlite://"),
        (["--data", ""], "--data: cannot keep data in '': accepted are sqlite://"),
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
        (["--channel-stores", "both"], "--channel-stores: 'both' is neither 'shared' nor 'extension'"),
        (["--log-level", "loud"], "--log-level: 'loud' is not one of debug, info, warning, error"),
        (["--log-format", "xml"], "--log-format: 'xml' is not one of text, json"),
        (["--data", "redsi://user:word@here/1"], "--data: cannot keep data in 'redsi://…@here/1': accepted"),
        (
            ["--data", "redis://user:word/@here/1"],
            "--data: cannot keep data in redis://…: percent-encode special characters in the user and password",
        ),
        (["--control-host", "http://x"], "--control-host: 'http://x' is no name of a host; no scheme, no port"),
        (["--control-host", "x:8282"], "--control-host: 'x:8282' is no name of a host; no scheme, no port"),
        (["--control-host", ""], "--control-host: '' is no name of a host"),
        (
            ["--production", "--extensions", "x", "--control-host", "x"],
            "--control-host: with --production there is no control API",
        ),
        (["--host", "no..such"], "--host no..such --port 0:"),
        (["--host", "192.0.2.1"], "--host 192.0.2.1 --port 0: Cannot assign requested address"),
    ],
    ids=" ".join,
)
def test_nonsense_on_the_command_line_ends_with_2_and_one_line(
    capsys: pytest.CaptureFixture[str], args: list[str], expected: str
):
    code, error = complaint(capsys, *args)

    assert (2, 1) == (code, len(error.splitlines()))
    assert error.startswith(f"extcli serve: {expected}")


@pytest.mark.parametrize(
    "args", [["--port", "65536"], ["--port", "x"], ["--workers", "0"], ["--max-body", "0"], ["--no"]]
)
def test_a_value_out_of_range_ends_with_2_and_names_the_flag(capsys: pytest.CaptureFixture[str], args: list[str]):
    code, error = complaint(capsys, *args)

    assert 2 == code
    assert args[0] in error


def test_a_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str], live):
    port = live.url.rpartition(":")[2]

    code = main(["serve", "--port", port])

    assert 2 == code
    assert f"--port {port}: Address already in use" in capsys.readouterr().err


def test_secrets_come_from_the_file_from_other_files_and_from_the_environment(tmp_path: Path):
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


def test_an_extension_never_shows_its_secrets():
    assert "shown" not in repr(Extension("my-ext", (b"not to be shown",)))


@pytest.mark.parametrize("flag", inspect.signature(serve).parameters)
def test_every_flag_of_serve_has_an_environment_variable_of_its_name(flag: str):
    annotation = inspect.signature(serve, eval_str=True).parameters[flag].annotation

    (option,) = (each for each in annotation.__metadata__ if isinstance(each, OptionInfo))

    assert f"EXTCLI_SERVE_{flag.upper()}" == option.envvar
    assert option.help


def test_the_flags_that_scripts_rely_on_are_there():
    flags = set(inspect.signature(serve).parameters)

    assert {"host", "port", "production", "data", "extensions", "workers"} <= flags
