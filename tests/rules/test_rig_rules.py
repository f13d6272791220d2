"""The arrangement of the rig, and the headers by which a page forbids frames."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from emulator.core.errors import BadRequest
from emulator.dashboard.rig.arrangement import parse_arrangement
from emulator.dashboard.rig.framing import forbidding_header

PAGE = "http://127.0.0.1:8000/panel.html"
OWN = "http://127.0.0.1:8282"


def parameters(src: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(src).query).items()}


def headers_of(*pairs: tuple[str, str]) -> httpx.Headers:
    return httpx.Headers(pairs)


def test_the_address_of_a_frame_has_its_viewer_and_its_own_parameters():
    query = {
        "url": f"{PAGE}?a=1&extcli_user=9&mode=x#top",
        "client_id": "ext",
        "1.user_id": "42",
        "1.identity": "unshared",
        "1.theme": "dark",
        "1.language": "pt-BR",
        "1.mute": "on",
    }
    src = parse_arrangement(query, OWN).frames[0].src

    assert src.startswith(f"{PAGE}?a=1&")
    assert src.endswith("#top")
    assert {
        "a": "1",
        "anchor": "panel",
        "platform": "web",
        "state": "testing",
        "popout": "false",
        "mode": "viewer",
        "language": "pt-BR",
        "locale": "pt-BR",
        "extcli_role": "viewer",
        "extcli_channel": "1001",
        "extcli_client": "ext",
        "extcli_user": "42",
        "extcli_identity": "unshared",
        "extcli_theme": "dark",
        "extcli_mute": "on",
    } == parameters(src)


def test_a_broadcasters_user_is_the_channel():
    src = parse_arrangement({"url": PAGE, "1.role": "broadcaster", "1.user_id": "42"}, OWN).frames[0].src

    assert "1001" == parameters(src)["extcli_user"]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        (PAGE, "http://127.0.0.1:8000"),
        ("https://LOCALHOST:443/x", "https://localhost"),
        ("http://my-extension.test:80", "http://my-extension.test"),
        ("http://bücher.example/", "http://xn--bcher-kva.example"),
        ("http://localhost:8283", "http://localhost:8283"),
    ],
)
def test_the_origin_of_the_pages_is_known(url: str, origin: str):
    assert origin == parse_arrangement({"url": url}, OWN).origin


@pytest.mark.parametrize(
    "url",
    [
        "",
        "panel.html",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://",
        "http://user:secret@127.0.0.1:8000/",
        "http://a\\b/",
        "http://good.example\\@evil.example/",
        "http://a\n.example/",
        "http://a;script-src *.example/",
        "http://*.example/",
        "http://2130706433:8282/",
        "http://[::1]:8000/",
        "http://a:99999/",
        "http://a/" + "x" * 2_048,
    ],
)
def test_an_address_that_is_not_a_page_of_a_web_server_is_refused(url: str):
    with pytest.raises(BadRequest) as refused:
        parse_arrangement({"url": url}, OWN)

    assert refused.value.detail.startswith("url: ")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8282/", "http://localhost:8282/x", "https://127.9.9.9:8282"])
def test_a_page_of_the_service_itself_is_refused(url: str):
    with pytest.raises(BadRequest) as refused:
        parse_arrangement({"url": url}, OWN)

    assert "serve the extension at another port" in refused.value.detail


@pytest.mark.parametrize("page", ["http://127.0.0.1:8001/", "//other.example/", "javascript:alert(1)"])
@pytest.mark.parametrize("name", ["config", "live"])
def test_all_frames_have_one_origin(name: str, page: str):
    with pytest.raises(BadRequest) as refused:
        parse_arrangement({"url": PAGE, name: page}, OWN)

    assert refused.value.detail.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("viewers", "0"),
        ("viewers", "7"),
        ("1.role", "admin"),
        ("2.identity", "x"),
        ("1.theme", "blue"),
        ("1.language", "<b>"),
        ("1.view", "config"),
        ("1.height", "99"),
        ("1.x", "²"),
        ("1.user_id", "x" * 65),
        ("channel_id", "\u202e"),
    ],
)
def test_an_invalid_parameter_is_named(name: str, value: str):
    with pytest.raises(BadRequest) as refused:
        parse_arrangement({"url": PAGE, name: value}, OWN)

    assert refused.value.detail.startswith(f"{name}: ")


@pytest.mark.parametrize(
    "header",
    [
        ("X-Frame-Options", "DENY"),
        ("x-frame-options", "sameorigin"),
        ("X-Frame-Options", "DENY, SAMEORIGIN"),
        ("Content-Security-Policy", "frame-ancestors 'none'"),
        ("Content-Security-Policy", "frame-ancestors 'self'"),
        ("Content-Security-Policy", "frame-ancestors"),
        ("Content-Security-Policy", "frame-ancestors https://*.ext-twitch.tv http://127.0.0.1:1"),
        ("Content-Security-Policy", "frame-ancestors 127.0.0.1"),
        ("Content-Security-Policy", "Frame-Ancestors https:"),
    ],
)
def test_a_header_that_forbids_frames_is_named_as_it_was_sent(header: tuple[str, str]):
    assert ": ".join(header).lower() == forbidding_header(headers_of(header), OWN).lower()


@pytest.mark.parametrize(
    "pairs",
    [
        (),
        (("X-Frame-Options", "ALLOW-FROM http://x"),),
        (("Content-Security-Policy", "default-src 'none'"),),
        (("Content-Security-Policy-Report-Only", "frame-ancestors 'none'"),),
        (("Content-Security-Policy", "frame-ancestors *"), ("X-Frame-Options", "DENY")),
        (("Content-Security-Policy", "frame-ancestors http:"),),
        (("Content-Security-Policy", "default-src 'self'; frame-ancestors 'self' 127.0.0.1:8282"),),
        (("Content-Security-Policy", "frame-ancestors http://127.0.0.1:*"),),
        (("Content-Security-Policy", "frame-ancestors http://127.0.0.1:8282/"),),
    ],
)
def test_other_headers_allow_frames(pairs: tuple[tuple[str, str], ...]):
    assert "" == forbidding_header(headers_of(*pairs), OWN)


def test_every_policy_must_allow_frames():
    policies = (("Content-Security-Policy", "frame-ancestors *"), ("Content-Security-Policy", "frame-ancestors 'none'"))

    assert "Content-Security-Policy: frame-ancestors 'none'" == forbidding_header(headers_of(*policies), OWN)


def test_a_wildcard_covers_names_below_it_only():
    policy = headers_of(("Content-Security-Policy", "frame-ancestors *.dev.test:8282"))

    assert "" == forbidding_header(policy, "http://a.dev.test:8282")
    assert forbidding_header(policy, "http://dev.test:8282")
