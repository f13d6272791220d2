"""`extcli serve`: errors in its options and variables. Other tests cover how it serves."""

from __future__ import annotations

import pytest

INVALID = {
    "": ["--port", "--production=maybe", "--nope", "here", "--max-body 0", "--log-level loud", "--port abc"],
    "--leeway": ["-1", "3601", "1.5"],
    "--port": ["65536", "-1"],
    "--name": ["a b", "", "../x", "x" * 65, "con", "NUL"],
    "--journal": ["16", "63KiB", "16MB", "MiB", "-1", "1.5MiB", "16 MiB", ""],
}
"""Options with a value that is none; those of the first line have it in them."""
VARIABLES = {"PORT": "abc", "LEEWAY": "5s", "DATA": "nonsense", "MAX_IDS": "0", "PRODUCTION": "maybe", "WORKERS": "2"}


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option, values in INVALID.items() for value in values]
)
def test_an_invalid_option_is_reported_on_one_line(extcli, option: str, value: str):
    args = [f"{option}={value}"] if option else value.split()

    (line,) = extcli("serve", *args, fails=2).stderr.splitlines()

    assert line.startswith("extcli serve: ")
    assert (option or args[0].partition("=")[0]) in line


@pytest.mark.parametrize("name", VARIABLES)
def test_an_invalid_variable_is_reported_on_one_line(extcli, name: str):
    (line,) = extcli("serve", env={f"EXTCLI_SERVE_{name}": VARIABLES[name]}, fails=2).stderr.splitlines()

    assert line.startswith("extcli serve: ")
    assert name in line or VARIABLES[name] in line


def test_port_0_is_suggested_only_if_the_port_is_taken(extcli, live):
    taken = extcli("serve", "--port", live.url.rpartition(":")[2])
    elsewhere = extcli("serve", "--host", "192.0.2.1")

    assert (2, 2) == (taken.exit_code, elsewhere.exit_code)
    assert "--port 0 takes a free port" in taken.stderr
    assert "--port 0" not in elsewhere.stderr
