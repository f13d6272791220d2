"""The lines that point a client at a service: each is quoted for where it is pasted, and nobody is asked."""

from __future__ import annotations

import json
from enum import StrEnum
from html import escape
from shlex import join, quote
from typing import TYPE_CHECKING
from urllib.parse import quote as percent_encoded
from urllib.parse import urlsplit

from extcli.config import secret_lookup
from extcli.config.resolver import Resolver
from extcli.config.settings import DEFAULT_CHANNEL

if TYPE_CHECKING:
    from collections.abc import Callable

_PROTOCOL = "0.2.0"
"""The version that the games' library puts into the path; the service takes any."""


class Kind(StrEnum):
    """What is to be pointed at the service."""

    JS = "js"
    CPP = "cpp"
    UNITY = "unity"
    CURL = "curl"
    ENV = "env"


def lines_for(kind: Kind, resolver: Resolver) -> list[str]:
    """What to paste, line by line."""
    return _LINES[kind](resolver)


def _js(resolver: Resolver) -> list[str]:
    url = resolver.url()
    channel = _script_text(resolver.channel() or DEFAULT_CHANNEL)
    return [
        "<!-- Before the SDK: leads its calls and its events to the service. Leave it out of what you upload. -->",
        f'<script src="{escape(url)}/_emulator/sdk.js"></script>',
        '<script src="medkit.umd.js"></script>',
        "<script>",
        "  const Muxy = window.Muxy.default;",
        "  // Without sdk.js, as in Node.js, .url() leads the calls there, and events are not heard.",
        f"  Muxy.debug(new Muxy.DebuggingOptions().url({_script_text(url)}).channelID({channel}));",
        f"  Muxy.setup({{ clientID: {_script_text(resolver.client_id())} }});",
        "</script>",
    ]


def _cpp(resolver: Resolver) -> list[str]:
    address = _game_address(resolver)
    lines = [
        "// What your own transport opens, in place of the scheme and the address that the library gives:",
        f"const std::string address = {json.dumps(address)};",
    ]
    if sample := _sample_host(address):
        lines += [
            "// The transport of the library's examples takes it without the scheme:",
            f"WebsocketConnection connection({json.dumps(sample[0])}, {sample[1]});",
        ]
    return lines


def _unity(resolver: Resolver) -> list[str]:
    return [
        "// In place of transport.OpenAndRunInStage(sdk, …) or transport.OpenAndRunInSandbox(sdk):",
        f"await transport.Open({json.dumps(_game_address(resolver))});",
        "transport.Run(sdk);",
    ]


def _curl(resolver: Resolver) -> list[str]:
    channel, asked = resolver.channel(), resolver.asked_profile
    # By its name, as a secret of the profile cannot be named on a command line.
    options = ["--profile", asked[0]] if asked else []
    options += ["--url", resolver.url(), "--client-id", resolver.client_id()]
    options += ["--channel", channel] if channel else []
    token = join(["extcli", "token", "mint" if secret_lookup.secret_at(resolver) else "sandbox", "--header", *options])
    return [f'curl -sS -H "$({token})" {quote(f"{resolver.url()}/v1/e/vote?id=default")}']


def _env(resolver: Resolver) -> list[str]:
    values = {
        "EXTCLI_PROFILE": resolver.asked_profile[0] if resolver.asked_profile else None,
        "EXTCLI_URL": resolver.url(),
        "EXTCLI_CLIENT_ID": resolver.client_id(),
        "EXTCLI_CHANNEL": resolver.channel(),
    }
    lines = [f"export {name}={quote(value)}" for name, value in values.items() if value]
    if socket := resolver.told_socket():
        lines.append(f"export EXTCLI_WS_URL={quote(socket.value)}")
    elif resolver.variable("EXTCLI_WS_URL"):
        # It belongs to the service of the environment; beside another one's address it would lead elsewhere.
        lines.append("unset EXTCLI_WS_URL")
    return lines


_LINES: dict[Kind, Callable[[Resolver], list[str]]] = {
    Kind.JS: _js,
    Kind.CPP: _cpp,
    Kind.UNITY: _unity,
    Kind.CURL: _curl,
    Kind.ENV: _env,
}


def _game_address(resolver: Resolver) -> str:
    """Where a game connects: the path that its library would ask for, at this service."""
    if told := resolver.told_socket():
        return told.value
    base = resolver.ws_url().removesuffix("/ws")
    return f"{base}/{_PROTOCOL}/{percent_encoded(resolver.client_id(), safe='')}"


def _sample_host(address: str) -> tuple[str, int] | None:
    """Host with path, and port, for a transport that speaks TLS to all but `localhost`; `None` if that is no way."""
    from extcli.api.http import is_loopback

    parts = urlsplit(address)
    rest = address.partition("://")[2]
    if parts.scheme == "wss":
        return rest, parts.port or 443
    if not is_loopback(parts.hostname or ""):
        return None
    port = parts.port or 80
    return f"localhost:{port}{parts.path}", port


def _script_text(text: str) -> str:
    """A string of JavaScript that can stand between script tags."""
    return json.dumps(text).replace("<", "\\u003c").replace("'", "\\u0027")
