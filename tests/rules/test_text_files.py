"""Text in the encodings that programs on Windows write, and text for them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.contract import user_files
from emulator.core.extensions import read_extensions
from emulator.process.http_server import is_port_taken
from extcli import clock


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path, begin: bytes):
    file = tmp_path / "secret"
    file.write_bytes(begin + "é\r\n".encode())

    assert user_files.text(file, 100) == "é\r\n"


def test_extensions_and_secrets_may_have_a_byte_order_mark_and_crlf(tmp_path: Path):
    (tmp_path / "s").write_bytes(b"\xef\xbb\xbfc2VjcmV0c2VjcmV0\r\n")
    file = tmp_path / "extensions.toml"
    file.write_bytes(b'\xef\xbb\xbf[extensions.my-ext]\r\nsecret_files = ["s"]\r\n')

    assert read_extensions(file)["my-ext"].secrets == (b"secretsecret",)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_refused_by_that_name(tmp_path: Path, encoding: str):
    file = tmp_path / "config.toml"
    file.write_bytes("\ufeff[profiles]".encode(encoding))

    with pytest.raises(OSError, match="it is UTF-16; save it as UTF-8"):
        user_files.text(file, 100)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252"])
def test_an_example_in_a_file_is_utf_8_whatever_the_code_page(encoding: str):
    assert "…" in _printed(encoding, "seed", "example")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp932"])
def test_a_table_in_a_file_has_all_its_characters_whatever_the_code_page(encoding: str):
    assert "é日" in _printed(encoding, "config", "list", "-o", "table", channel="é日")


def _printed(encoding: str, *args: str, channel: str = "1") -> str:
    """Return what a command writes to a file where the locale has this encoding."""
    environ = os.environ | {"PYTHONIOENCODING": encoding, "EXTCLI_CHANNEL": channel}
    command = [sys.executable, "-m", "extcli", *args]
    return subprocess.run(command, env=environ, capture_output=True, check=True, timeout=60).stdout.decode()


@pytest.mark.parametrize(
    ("seconds", "longest", "first"),
    [(None, None, None), (5, None, 5), (None, 0.2, 0.2), (5, 0.2, 0.2), (0.1, 0.2, 0.1), (0, 0.2, 0)],
)
def test_a_wait_is_divided_where_ctrl_c_needs_that(seconds: float | None, longest: float | None, first: float | None):
    assert next(clock.split_wait(seconds, longest)) == first


def test_a_wait_without_seconds_left_ends():
    assert list(clock.split_wait(0, 0.2)) == [0]


@pytest.mark.parametrize(
    ("number", "of_windows", "taken"), [(errno.EADDRINUSE, None, True), (13, 10013, True), (13, None, False)]
)
def test_a_port_that_windows_reserves_is_taken(number: int, of_windows: int | None, taken: bool):
    error = OSError(number, "")
    if of_windows:
        error.winerror = of_windows  # type: ignore[attr-defined]

    assert is_port_taken(error) is taken
