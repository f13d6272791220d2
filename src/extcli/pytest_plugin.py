"""The pytest plugin `extcli`: options, a marker and fixtures. docs/guide/pytest.md describes them."""

from __future__ import annotations

import pytest

from extcli.testing.fixtures import extcli, extcli_async, extcli_factory, extcli_serve_args, extcli_server

__all__ = ["extcli", "extcli_async", "extcli_factory", "extcli_serve_args", "extcli_server"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("extcli", "extcli: a service for tests of an extension")
    group.addoption(
        "--extcli-url",
        metavar="URL",
        help="use the running service at this URL (default: EXTCLI_URL, or start a service)",
    )
    group.addoption(
        "--extcli-keep", action="store_true", help="keep the namespaces of failed tests, and print their URLs"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "extcli(seed=FILE, clock=TIME): what the namespace of the test begins with")
