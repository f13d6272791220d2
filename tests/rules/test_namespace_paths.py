"""Which requests are led into a namespace by the start of their path."""

from __future__ import annotations

import pytest

from emulator.namespaces.routing import split_namespace_path


@pytest.mark.parametrize(
    ("method", "path", "name", "rest"),
    [
        ("GET", "/_ns/blue/v1/e/vote", "blue", "/v1/e/vote"),
        ("POST", "//_ns//blue//v1/e/vote", "blue", "//v1/e/vote"),
        ("DELETE", "/_ns/blue/v1/e/rank", "blue", "/v1/e/rank"),
        ("GET", "/_ns/blue", "blue", ""),
        ("GET", "/_ns/blue/", "blue", "/"),
        ("OPTIONS", "/_ns/blue", "blue", ""),
        ("GET", "/_ns/blue/_ns", "blue", "/_ns"),
        ("DELETE", "/_ns/blue/_ns/red", "blue", "/_ns/red"),
        ("GET", "/_ns/a b/\n", "a b", "/\n"),
        ("DELETE", "/_ns/", "", ""),
        ("GET", "/_ns//v1/e/vote", "v1", "/e/vote"),
    ],
)
def test_paths_below_the_name_of_a_namespace_reach_that_namespace(method: str, path: str, name: str, rest: str):
    assert (name, rest) == split_namespace_path(method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("/_ns", "/_ns/", "//_ns//", "/", "/v1/e/vote", "/x/_ns/blue", "/_nsx/blue/y")),
        *(("POST", path) for path in ("/_ns", "/_ns/", "/_ns/blue", "/_ns/blue/", "//_ns//blue")),
        *(("DELETE", path) for path in ("/_ns", "/_ns/blue", "/_ns/blue/")),
    ],
)
def test_calls_about_namespaces_reach_no_namespace(method: str, path: str):
    assert split_namespace_path(method, path) is None
