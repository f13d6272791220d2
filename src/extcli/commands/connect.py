"""`extcli connect`: prints the lines that point a client at the service, each quoted for where it is pasted."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from html import escape
from pathlib import Path
from urllib.parse import quote as percent_encoded
from urllib.parse import urlsplit

from emulator.contract.shell import join_words, quote_powershell
from emulator.contract.shell import quote_posix as quote
from extcli.cli import argument, flag, shared
from extcli.config.resolver import Resolver
from extcli.config.settings import DEFAULT_CHANNEL
from extcli.config.urls import is_loopback
from extcli.errors import UsageError
from extcli.output.format import Format
from extcli.output.printer import View
from extcli.output.sanitize import visible
from extcli.session import Session

_LIBRARY_VERSION = "0.2.0"
"""The version that the library for games puts into the path; the service accepts any."""

_TEMPLATES = Path(__file__).with_name("clients")

_LINES_VIEW = View(
    table=lambda document: "\n".join(visible(line) for line in document["lines"]),
    rows=lambda document: [[visible(line)] for line in document["lines"]],
)


Writer = Callable[[Resolver], str]
"""Returns the text that `connect` prints for a kind of client."""


class ClientKind(StrEnum):
    """A kind of client."""

    JS = "js"
    NODE = "node"
    CPP = "cpp"
    UNITY = "unity"
    PYTHON = "python"
    CSHARP = "csharp"
    CURL = "curl"
    ENV = "env"
    POWERSHELL = "powershell"
    NODE_TEST = "node-test"
    NODE_TYPES = "node-types"
    PLAYWRIGHT = "playwright"
    TESTCONTAINERS = "testcontainers"
    COMPOSE = "compose"
    GITHUB = "github"


@partial(shared, has_env=True)
def connect(
    session: Session,
    client: ClientKind = argument("CLIENT", "The kind of client, as described above."),
    signs: bool = flag("--sign", "With python, node or csharp: print the code that signs a token."),
) -> None:
    """Print the lines that point a client at the service. Sends nothing.

    js is for pages with the published SDK, node for a Node.js backend with Muxy's addresses in its
    code, and cpp and unity for games that use GameLink's libraries. curl prints a first request;
    env and powershell set variables for other extcli commands. The lines contain --url, --client-id
    and --channel.

    With --sign, python, node and csharp print code for your backend, which signs its tokens.

    For tests: node-test prints a module for Node.js's test runner, Vitest and Jest, and playwright
    a module with fixtures. testcontainers, compose and github print files that start the service.
    For TypeScript, node-types prints the types of that module; with --sign, of the signing code.

    \b
    Examples:
      extcli connect js
      extcli connect node > emulator.cjs && node -r ./emulator.cjs backend.js
      extcli connect node-test > tests/extcli.mjs
      extcli connect node-types > tests/extcli.d.mts
      extcli connect python --sign > sign.py
      extcli connect unity --url http://127.0.0.1:8282/_ns/blue
      eval "$(extcli connect env --channel 777)"
    """
    if session.output.format is Format.ENV and client is not ClientKind.ENV:
        raise UsageError(f"`connect {client}` does not support -o env", fix="`extcli connect env` does")
    writers = SIGNING_WRITERS if signs else WRITERS
    if client not in writers:
        problem = f"there is no code that signs a token for {client}" if signs else f"`connect {client}` needs --sign"
        raise UsageError(problem, fix=f"use {' or '.join(f'`connect {each} --sign`' for each in SIGNING_WRITERS)}")
    text = writers[client](session.resolver)
    session.output.show_value({"client": client, "lines": text.removesuffix("\n").split("\n")}, _LINES_VIEW)


def _page_lines(resolver: Resolver) -> str:
    url, channel = escape(resolver.url()), escape(resolver.channel() or DEFAULT_CHANNEL)
    return f"""\
<!-- Before the SDK: points its calls and its events at the service. Do not upload this line. -->
<script src="{url}/_emulator/sdk.js" data-channel-id="{channel}"></script>
<script src="medkit.umd.js"></script>
<script>
  const Muxy = window.Muxy.default;
  Muxy.setup({{ clientID: {_javascript_string(resolver.client_id())} }});
</script>
"""


def _template_writer(name: str) -> Writer:
    """Return a writer of this file in `clients/`."""
    return lambda resolver: fill_template((_TEMPLATES / name).read_text("utf-8"), resolver)


def template_settings(resolver: Resolver) -> dict[str, str]:
    """Return the settings that templates contain, by their words in capitals."""
    channel = resolver.channel() or DEFAULT_CHANNEL
    return {"SERVICE": resolver.url(), "CLIENT_ID": resolver.client_id(), "CHANNEL": channel}


def fill_template(text: str, resolver: Resolver) -> str:
    """Return a template whose quoted words in capitals are settings."""
    for word, value in template_settings(resolver).items():
        text = text.replace(f"'{word}'", _javascript_string(value))
    return text


def _cpp_lines(resolver: Resolver) -> str:
    address = _game_address(resolver)
    text = f"""\
// For your own transport: use this in place of the scheme and the address that the library returns.
const std::string address = {json.dumps(address)};
"""
    if sample := _address_for_examples(address):
        host, port = sample
        text += f"""\
// For WebsocketConnection of the library's examples: it takes a host and a port, without ws://.
WebsocketConnection connection({json.dumps(host)}, {port});
"""
    return text


def _unity_lines(resolver: Resolver) -> str:
    return f"""\
// In place of transport.OpenAndRunInStage(sdk, …) or transport.OpenAndRunInSandbox(sdk):
await transport.Open({json.dumps(_game_address(resolver))});
transport.Run(sdk);
"""


def _curl_command(resolver: Resolver) -> str:
    channel, chosen = resolver.channel(), resolver.named_profile
    # The profile by name, since its secret must not appear on a command line.
    options = ["--profile", chosen[0]] if chosen else []
    options += ["--url", resolver.url(), "--client-id", resolver.client_id()]
    options += ["--channel", channel] if channel else []
    verb = "mint" if resolver.find_secret() else "sandbox"
    token = join_words(["extcli", "token", verb, "--header", *options], quote)
    return f'curl -sS -H "$({token})" {quote(f"{resolver.url()}/v1/e/vote?id=default")}'


def _environment(resolver: Resolver) -> dict[str, str]:
    """Return the variables that point other commands at the service; an empty one is to be removed."""
    values = {
        "EXTCLI_PROFILE": resolver.named_profile[0] if resolver.named_profile else None,
        "EXTCLI_URL": resolver.url(),
        "EXTCLI_CLIENT_ID": resolver.client_id(),
        "EXTCLI_CHANNEL": resolver.channel(),
    }
    named = {name: value for name, value in values.items() if value}
    if socket := resolver.configured_ws_url():
        named["EXTCLI_WS_URL"] = socket.value
    elif resolver.variable("EXTCLI_WS_URL"):
        # The variable belongs to the service of the environment, not to the one named here.
        named["EXTCLI_WS_URL"] = ""
    return named


def shell_variables(resolver: Resolver) -> str:
    """Return lines for a POSIX shell that point other commands at the service."""
    variables = _environment(resolver).items()
    return "\n".join(f"export {name}={quote(value)}" if value else f"unset {name}" for name, value in variables)


def _powershell_variables(resolver: Resolver) -> str:
    variables = _environment(resolver).items()
    return "\n".join(f"$env:{name} = {quote_powershell(value) if value else '$null'}" for name, value in variables)


WRITERS: dict[ClientKind, Writer] = {
    ClientKind.JS: _page_lines,
    ClientKind.NODE: _template_writer("node.cjs"),
    ClientKind.CPP: _cpp_lines,
    ClientKind.UNITY: _unity_lines,
    ClientKind.CURL: _curl_command,
    ClientKind.ENV: shell_variables,
    ClientKind.POWERSHELL: _powershell_variables,
    ClientKind.NODE_TEST: _template_writer("node-test.mjs"),
    ClientKind.NODE_TYPES: _template_writer("node-test.d.mts"),
    ClientKind.PLAYWRIGHT: _template_writer("playwright.mjs"),
    ClientKind.TESTCONTAINERS: _template_writer("testcontainers.mjs"),
    ClientKind.COMPOSE: _template_writer("compose.yaml"),
    ClientKind.GITHUB: _template_writer("github.yml"),
}
SIGNING_WRITERS: dict[ClientKind, Writer] = {
    ClientKind.PYTHON: _template_writer("sign.py.template"),
    ClientKind.NODE: _template_writer("sign.mjs"),
    ClientKind.NODE_TYPES: _template_writer("sign.d.mts"),
    ClientKind.CSHARP: _template_writer("Sign.cs"),
}


def _game_address(resolver: Resolver) -> str:
    """Return the address of the socket with the path that the library for games requests."""
    if told := resolver.configured_ws_url():
        return told.value
    base = resolver.ws_url().removesuffix("/ws")
    return f"{base}/{_LIBRARY_VERSION}/{percent_encoded(resolver.client_id(), safe='')}"


def _address_for_examples(address: str) -> tuple[str, int] | None:
    """Return host with path, and port, for the examples' transport; it uses TLS for every host but `localhost`.

    `None` if that transport cannot reach the address.
    """
    parts = urlsplit(address)
    if parts.scheme == "wss":
        return address.partition("://")[2], parts.port or 443
    if not is_loopback(parts.hostname or ""):
        return None
    port = parts.port or 80
    return f"localhost:{port}{parts.path}", port


def _javascript_string(text: str) -> str:
    """Return a JavaScript string literal that is safe between script tags."""
    return json.dumps(text).replace("<", "\\u003c").replace("'", "\\u0027")
