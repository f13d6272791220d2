"""Which proxy variable applies to a URL."""

from __future__ import annotations

import pytest

from extcli.api.http import proxy_of


@pytest.mark.parametrize(
    ("url", "variables", "expected"),
    [
        ("http://service.example", {}, ""),
        ("http://service.example", {"http_proxy": "http://p:1"}, "HTTP_PROXY"),
        ("https://service.example", {"HTTPS_PROXY": "http://p:1"}, "HTTPS_PROXY"),
        ("https://service.example", {"ALL_PROXY": "http://p:1"}, "ALL_PROXY"),
        ("https://service.example", {"http_proxy": "http://p:1"}, ""),
        ("https://service.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example"}, ""),
        ("http://127.0.0.1:8282", {"http_proxy": "http://p:1"}, ""),
        ("http://blue.localhost:8282", {"ALL_PROXY": "http://p:1"}, ""),
    ],
)
def test_a_proxy_applies_by_scheme_unless_the_host_is_exempt(monkeypatch: pytest.MonkeyPatch, url, variables, expected):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert expected == proxy_of(url)
