"""`extcli serve`: errors in its options and variables. Other tests cover how it serves."""

from __future__ import annotations

import pytest

NAMES = ("a b", "", "../x", "x" * 65)
"""Texts that are no names of services."""


@pytest.mark.parametrize(
    ("args", "env", "named"),
    [
        ((), {"EXTCLI_SERVE_PORT": "abc"}, "EXTCLI_SERVE_PORT"),
        ((), {"EXTCLI_SERVE_WORKERS": "0"}, "EXTCLI_SERVE_WORKERS"),
        (("--port",), {}, "--port"),
        (("--leeway", "-1"), {}, "--leeway"),
        (("--leeway", "3601"), {}, "--leeway"),
        (("--leeway", "1.5"), {}, "--leeway"),
        ((), {"EXTCLI_SERVE_LEEWAY": "5s"}, "EXTCLI_SERVE_LEEWAY"),
        (("--production=maybe",), {}, "--production"),
        (("--nope",), {}, "--nope"),
        (("--max-body", "0"), {}, "--max-body"),
        *((("--name", name), {}, f"--name: {name!r} must have 1 to 64 letters, digits") for name in NAMES),
        (("here",), {}, "here"),
        (("--log-level", "loud"), {}, "--log-level"),
        ((), {"EXTCLI_SERVE_DATA": "nonsense"}, "nonsense"),
    ],
)
def test_an_invalid_option_or_variable_is_reported_on_one_line(extcli, args, env, named):
    result = extcli("serve", *args, env=env, fails=2)

    (line,) = result.stderr.splitlines()
    assert line.startswith("extcli serve: ")
    assert named in line


@pytest.mark.parametrize(
    ("args", "env", "message"),
    [
        (("--port", "abc"), {}, "'abc' is not a whole number from 0 to 65535"),
        (("--port", "65536"), {}, "'65536' is not a whole number from 0 to 65535"),
        ((), {"EXTCLI_SERVE_MAX_IDS": "0"}, "'0' is not a whole number of at least 1"),
        ((), {"EXTCLI_SERVE_PRODUCTION": "maybe"}, "'maybe' is neither true nor false"),
    ],
)
def test_an_invalid_value_is_reported_with_its_limits(extcli, args, env, message):
    result = extcli("serve", *args, env=env, exits=2)

    (line,) = result.stderr.splitlines()
    assert line.startswith("extcli serve: ")
    assert line.endswith(f": {message}")


@pytest.mark.parametrize("size", ["16", "63KiB", "16MB", "MiB", "-1", "1.5MiB", "16 MiB", ""])
def test_an_unusable_size_of_the_journal_is_reported(extcli, size):
    result = extcli("serve", f"--journal={size}")

    assert (
        2,
        f"extcli serve: --journal: {size!r} must be 0, for none, or a size of at least 64KiB, such as 16MiB\n",
    ) == (
        result.exit_code,
        result.stderr,
    )


def test_port_0_is_suggested_only_if_the_port_is_taken(extcli, live):
    taken = extcli("serve", "--port", live.url.rpartition(":")[2])
    elsewhere = extcli("serve", "--host", "192.0.2.1")

    assert (2, 2) == (taken.exit_code, elsewhere.exit_code)
    assert "--port 0 takes a free port" in taken.stderr
    assert "--port 0" not in elsewhere.stderr
