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
from extcli.config.resolver import Sources
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


def lines_for(kind: Kind, sources: Sources) -> list[str]:
    """What to paste, line by line."""
    return _LINES[kind](sources)


def _js(sources: Sources) -> list[str]:
    url = sources.url()
    channel = _script_text(sources.channel() or DEFAULT_CHANNEL)
    return [
        "<!-- Before the SDK: leads its calls and its events to the service. Leave it out of what you upload. -->",
        f'<script src="{escape(url)}/_emulator/sdk.js"></script>',
        '<script src="medkit.umd.js"></script>',
        "<script>",
        "  const Muxy = window.Muxy.default;",
        "  // Without sdk.js, as in Node.js, .url() leads the calls there, and events are not heard.",
        f"  Muxy.debug(new Muxy.DebuggingOptions().url({_script_text(url)}).channelID({channel}));",
        f"  Muxy.setup({{ clientID: {_script_text(sources.client_id())} }});",
        "</script>",
    ]


def _cpp(sources: Sources) -> list[str]:
    address = _game_address(sources)
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


def _unity(sources: Sources) -> list[str]:
    return [
        "// In place of transport.OpenAndRunInStage(sdk, …) or transport.OpenAndRunInSandbox(sdk):",
        f"await transport.Open({json.dumps(_game_address(sources))});",
        "transport.Run(sdk);",
    ]


def _curl(sources: Sources) -> list[str]:
    channel, asked = sources.channel(), sources.asked_profile
    # By its name, as a secret of the profile cannot be named on a command line.
    options = ["--profile", asked[0]] if asked else []
    options += ["--url", sources.url(), "--client-id", sources.client_id()]
    options += ["--channel", channel] if channel else []
    token = join(["extcli", "token", "mint" if secret_lookup.secret_at(sources) else "sandbox", "--header", *options])
    return [f'curl -sS -H "$({token})" {quote(f"{sources.url()}/v1/e/vote?id=default")}']


def _env(sources: Sources) -> list[str]:
    values = {
        "EXTCLI_PROFILE": sources.asked_profile[0] if sources.asked_profile else None,
        "EXTCLI_URL": sources.url(),
        "EXTCLI_CLIENT_ID": sources.client_id(),
        "EXTCLI_CHANNEL": sources.channel(),
    }
    lines = [f"export {name}={quote(value)}" for name, value in values.items() if value]
    if socket := sources.told_socket():
        lines.append(f"export EXTCLI_WS_URL={quote(socket.value)}")
    elif sources.variable("EXTCLI_WS_URL"):
        # It belongs to the service of the environment; beside another one's address it would lead elsewhere.
        lines.append("unset EXTCLI_WS_URL")
    return lines


_LINES: dict[Kind, Callable[[Sources], list[str]]] = {
    Kind.JS: _js,
    Kind.CPP: _cpp,
    Kind.UNITY: _unity,
    Kind.CURL: _curl,
    Kind.ENV: _env,
}


def _game_address(sources: Sources) -> str:
    """Where a game connects: the path that its library would ask for, at this service."""
    if told := sources.told_socket():
        return told.value
    base = sources.ws_url().removesuffix("/ws")
    return f"{base}/{_PROTOCOL}/{percent_encoded(sources.client_id(), safe='')}"


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
