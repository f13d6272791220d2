"""Answers a shell that completes a command line: reads the line from variables, prints one candidate per line.

A line stays out of the arguments, because other users can see those. Names come from the profiles file and from a
running service, never with a secret or a stored token. A sandbox does not check signatures, so an unsigned token reads
its listings. A production service refuses it, and then there are no names. Only what one request needs is imported:
`config/resolver.py` would double the time.
"""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple

from extcli.completion import words
from extcli.config.precedence import DEFAULT_CLIENT_ID, DEFAULT_URL, by_precedence, profiles_file

SECONDS = 0.12
"""How long the service may take. With the start of Python, the response then comes within 200 ms."""
_FAR = 4_102_444_800
"""The expiry of the token in Unix s, in the year 2100: the clock of an emulator may have been moved."""
_DEPLOYMENT = re.compile(r"https://(?!(localhost|127\.0\.0\.1|\[::1\])(:|/|$))")
"""An address with TLS on another machine."""

_END = "0"
"""The cursor of the first page, and `next` of the last."""


def names_of(kind: str, given: Mapping[str, str], environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return names of this kind with a description each, which may be empty. No names if anything fails.

    `given` has the options on the command line.
    """
    found: dict[str, str] = {}

    def read() -> None:
        with suppress(Exception):  # completion never shows an error
            for name, about in _read(kind, given, environ):
                found.setdefault(name, about)

    worker = Thread(target=read, daemon=True)
    worker.start()
    worker.join(SECONDS)
    return list(found.items())


def _read(kind: str, given: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    profiles = _profiles(environ)
    if kind == "profiles":
        return ((name, str(profile.get("url", ""))) for name, profile in profiles["profiles"].items())
    service = _service(profiles, given, environ)
    if service is None:
        return iter(())
    if kind == "namespaces":
        return ((name, "") for name in _get(service.url.partition("/_ns/")[0], "/_ns")["namespaces"])
    if kind == "faults":
        faults = _get(service.url, "/_emulator/faults")["faults"]
        return ((each["id"], f"{each['match']} {each['effect']}") for each in faults)
    return _sets(service) if kind == "sets" else _listed_names(service, kind)


class _Service(NamedTuple):
    """The service that the command line names, with the client id and channel of its listings."""

    url: str
    client_id: str
    channel: str

    @property
    def authorization(self) -> str:
        return f"{self.client_id} {_unsigned(self.channel)}"


def _service(profiles: Mapping[str, Any], given: Mapping[str, str], environ: Mapping[str, str]) -> _Service | None:
    """Return the service that the command would call, as `config/resolver.py` finds it; `None` for production."""
    named = given.get("--profile") or given.get("-p")
    chosen = named or environ.get("EXTCLI_PROFILE") or profiles.get("profile")
    profile = profiles["profiles"][chosen] if chosen else {}

    def setting(option: str, variable: str, key: str, default: str) -> str:
        first, second = by_precedence(environ.get(variable), profile.get(key), is_named=bool(named))
        return str(given.get(option) or first or second or default)

    url = setting("--url", "EXTCLI_URL", "url", DEFAULT_URL).rstrip("/")
    production = [each.get("url") for each in (profile, *profiles["profiles"].values()) if each.get("production")]
    if url in production or _DEPLOYMENT.match(url):
        return None
    client_id = setting("--client-id", "EXTCLI_CLIENT_ID", "client_id", DEFAULT_CLIENT_ID)
    return _Service(url, client_id, setting("--channel", "EXTCLI_CHANNEL", "channel", ""))


def _sets(service: _Service) -> Iterator[tuple[str, str]]:
    """Return the indices and names of the code sets."""
    document = _get(service.url, "/v1/e/codes", service.authorization)
    names = document["names"] or []
    return zip(map(str, document.get("indices") or range(len(names))), names, strict=True)


def _listed_names(service: _Service, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the ids of the polls, rankings or buffers, with their channels, page by page."""
    cursor, authorization = _END, service.authorization
    while True:
        page = _get(service.url, f"/v1/e/{kind}?limit=1000&cursor={cursor}", authorization)
        for each in page[kind]:
            yield each["id"], f"channel {each['channel_id']}" if each["channel_id"] else ""
        if (cursor := page["next"]) == _END:
            return


def _unsigned(channel: str) -> str:
    """Return a token for the backend with an empty signature."""
    claims = {"exp": _FAR, "role": "backend", **({"channel_id": channel} if channel else {})}
    parts = [json.dumps(each).encode() for each in ({"alg": "HS256", "typ": "JWT"}, claims)]
    return ".".join([*(urlsafe_b64encode(each).decode().rstrip("=") for each in parts), "AA"])


def _get(url: str, path: str, authorization: str = "") -> Any:
    """Send a request and return the JSON of its response."""
    from extcli import bounded_json
    from extcli.api import local_http

    response = local_http.get(url, path, seconds=SECONDS, authorization=authorization)
    if response.status != 200:
        raise ValueError(response.status)
    return bounded_json.decoded(response.body)


def _profiles(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the profiles file; without one, no profiles."""
    file = profiles_file(environ)
    if not os.path.exists(file):
        return {"profiles": {}}
    from emulator.contract import user_files

    text = user_files.text(file, user_files.CONFIGURATION)
    return {"profiles": {}, **user_files.decoded(text)}


VARIABLE = "_EXTCLI_COMPLETE"
"""Names the shell. If it is set, the program completes instead of running a command."""
LINE = "_EXTCLI_LINE"
"""The command line up to the cursor."""
COMPLETE_FILES = 10
"""The exit code that makes the shell complete the name of a file."""
_BREAKS = ":="
"""Where bash splits words: it replaces only what follows the last of these."""


def complete(environ: Mapping[str, str]) -> int:
    """Print the candidates for the shell; returns the exit code. Prints nothing if anything fails."""
    shell = environ[VARIABLE].removeprefix("complete_")
    line = environ.get(LINE, "")
    if shell == "powershell":  # Typer's script has variables of its own
        line = environ.get("_TYPER_COMPLETE_ARGS", "")
        line += " " * (not environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE"))
    kind, found = candidates(line, environ) if line else (words.NOTHING, [])
    if kind == words.FILES:
        return COMPLETE_FILES
    text = "".join(f"{each}\n" for each in written(shell, line, found))
    os.write(sys.stdout.fileno(), text.encode(errors="replace"))
    return 0


def candidates(line: str, environ: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """Return the kind of the word at the cursor, and its candidates with a description each."""
    with open(os.path.join(os.path.dirname(__file__), "commands.txt"), encoding="utf-8") as file:
        table = words.read_table(file.read())
    asked = words.words_at_end(table, line)
    if asked is None:
        return words.NOTHING, []
    found: list[tuple[str, str]]
    if asked.kind == words.COMMANDS:
        found = list(words.commands_in(table, asked.command).items())
    elif asked.kind == words.OPTIONS:
        found = [(name, "") for name in words.options_of(table, asked.command)]
    elif asked.kind in (words.FILES, words.NOTHING):
        found = []
    elif asked.kind in LIVE:
        found = names_of(asked.kind, asked.given, environ)
    else:
        found = [(choice, "") for choice in asked.kind.split("|")]
    matching = [(f"{asked.option}{name}", about) for name, about in found if name.startswith(asked.typed)]
    return asked.kind, [each for each in matching if each[0].isprintable()]


LIVE = ("polls", "rankings", "buffers", "sets", "namespaces", "profiles", "faults")
"""The kinds whose names are live."""


def written(shell: str, line: str, found: list[tuple[str, str]]) -> list[str]:
    """Return the candidates in the form that the script of this shell reads."""
    if shell == "fish":
        return [f"{name}\t{_one_line(about)}" for name, about in found]
    if shell == "zsh":
        return _zsh(found)
    if shell == "powershell":
        return [f"{name}:::{_one_line(about) or ' '}" for name, about in found]
    _, typed, quote = words.split(line)
    kept = 0 if quote else max(typed.rfind(char) for char in _BREAKS) + 1
    escape = _ESCAPED_IN.get(quote, _escaped_for_bash)
    return [escape(name[kept:]) for name, _ in found]


def _zsh(found: list[tuple[str, str]]) -> list[str]:
    backslash = "\\"
    escaped = [(name.replace(backslash, backslash * 2).replace(":", f"{backslash}:"), about) for name, about in found]
    return [f"{name}:{_one_line(about)}" if about else name for name, about in escaped]


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _escaped_for_bash(text: str) -> str:
    """Escape the characters that bash interprets outside quotes."""
    return "".join(char if char.isalnum() or char in "-_./,:=@%+" else f"\\{char}" for char in text)


def _in_single_quotes(text: str) -> str:
    """Escape single quotes for a text between single quotes."""
    return text.replace("'", "'\\''")


def _in_double_quotes(text: str) -> str:
    """Escape the characters that bash interprets between double quotes."""
    return "".join(f"\\{char}" if char in '$`"\\' else char for char in text)


_ESCAPED_IN = {"'": _in_single_quotes, '"': _in_double_quotes}
"""How bash is kept from interpreting a name, by the quote that is open before it."""
