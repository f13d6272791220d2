"""Errors in the extensions file, and files that cannot be edited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.extension_files import LAID_OUT

WRONG = {
    "not TOML": ("[extensions.e\n", "is not TOML"),
    "a huge number": ("a = " + "1" * 5_000, "is not TOML"),
    "not text": ("\udcff", "is not TOML"),
    "a text as extension": ('[extensions]\ne = "QUJD"', "extensions.e must be a table"),
    "a list of extensions": ("extensions = []", "extensions must be a table"),
    "an unknown key": ('[extensions.e]\nsecret = "QUJD"', "extensions.e.'secret' is not a known key"),
    "a text as secrets": ('[extensions.e]\nsecrets = "QUJD"', "extensions.e.secrets must be an array of strings"),
    "a number as owner": (
        '[extensions.e]\nsecrets = ["QUJD"]\nowner_user_id = 1',
        "extensions.e.owner_user_id must be",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
@pytest.mark.parametrize("verb", ["init", "list", "rotate", "retire"])
def test_an_invalid_file_is_an_error_that_names_the_key(extcli, folder: Path, verb: str, mistake: str):
    text, expected = WRONG[mistake]
    (folder / "extensions.toml").write_bytes(text.encode("utf-8", "surrogateescape"))

    result = extcli("extension", verb, *(() if verb == "list" else ("--client-id", "e")), fails=2)

    assert re.match(f"extcli: extensions.toml.* {re.escape(expected)}", result.stderr)
    assert ["extensions.toml"] == [path.name for path in folder.iterdir()]
    assert text.encode("utf-8", "surrogateescape") == (folder / "extensions.toml").read_bytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('secrets = ["QUJD", "QUJD!"]', "extensions.e.secrets[1] is not base64"),
        ('secrets = [""]', "extensions.e.secrets[0] is empty"),
        ('secret_files = ["absent"]', "extensions.e.secret_files[0]: cannot read 'absent': No such file"),
        ('owner_user_id = "1"', "extensions.e has no secret"),
    ],
)
def test_list_reports_a_secret_that_the_service_would_refuse(extcli, folder: Path, text: str, expected: str):
    (folder / "extensions.toml").write_text(f"[extensions.e]\n{text}\n")

    result = extcli("extension", "list", fails=2)

    assert result.stderr.startswith(f"extcli: extensions.toml: {expected}")


def test_a_layout_that_cannot_be_edited_is_left_unchanged(extcli, folder: Path):
    text = 'extensions = {e = {secrets = ["QUJD"]}}\n'
    (folder / "extensions.toml").write_text(text)

    result = extcli("extension", "init", "--client-id", "other", exits=2)

    assert result.stderr.startswith("extcli: extensions.toml: cannot edit the layout of extensions")
    assert text == (folder / "extensions.toml").read_text()
    assert 1 == len(list(folder.iterdir()))


@pytest.mark.parametrize("verb", ["list", "rotate", "retire"])
def test_only_init_creates_the_file(extcli, folder: Path, verb: str):
    result = extcli("extension", verb, exits=2)

    assert result.stderr.startswith("extcli: cannot read extensions.toml: No such file or directory\n")
    assert "extcli extension init" in result.stderr
    assert [] == list(folder.iterdir())


def test_a_missing_folder_is_an_error(extcli, folder: Path):
    result = extcli("extension", "init", "absent/extensions.toml", exits=2)

    assert "cannot write absent/my-extension.secret: No such file or directory" in result.stderr


@pytest.mark.parametrize("verb", ["rotate", "retire"])
def test_rotate_and_retire_require_a_registered_extension(extcli, folder: Path, verb: str):
    (folder / "extensions.toml").write_text(LAID_OUT)

    result = extcli("extension", verb, "--client-id", "nobody", exits=2)

    assert "extensions.toml: extensions.nobody is not registered" in result.stderr
    assert "registered: my-extension, other" in result.stderr
    assert LAID_OUT == (folder / "extensions.toml").read_text()
