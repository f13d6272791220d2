"""Answers a shell that completes a command line: reads the line from variables, prints one candidate per line.

A line stays out of the arguments, because other users can see those. Names come from the profiles file and from a
running service, never with a secret or a stored token. A sandbox does not check signatures, so an unsigned token reads
its listings. A production service refuses it, and then there are no names. Only what one request needs is imported:
Typer or `config/resolver.py` would double the time. `shells/commands.json` has what Typer knows of the commands.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any

from extcli.config.flags import DEFAULT_CLIENT_ID, DEFAULT_URL, by_precedence, profiles_file

VARIABLE = "_EXTCLI_COMPLETE"
"""Names the shell. If it is set, the program completes instead of running a command."""
LINE = "_EXTCLI_LINE"
"""The command line up to the cursor."""
COMPLETE_FILES = 10
"""The exit code that makes the shell complete the name of a file."""
TIMEOUT_SECONDS = 0.5
"""How long the service may take. A local one takes some 20 ms; a busy machine may need ten times that."""
SHELLS = os.path.join(os.path.dirname(__file__), "shells")
"""The folder of the scripts, and of the table of commands."""

FILES, OPTIONS, COMMANDS, NOTHING = "files", "options", "commands", "-"
"""Kinds of words. Others are `polls` and the like, and choices such as `a|b`."""
LIVE_KINDS = ("polls", "rankings", "buffers", "sets", "namespaces", "profiles", "faults")
"""The kinds whose names are live."""
REST = "..."
"""After the kind of the last argument, if there may be many."""
SHARED = "*"
"""The entry with the options that every command shares and, among the options of a command, that it takes them."""

_YEAR_2100 = 4_102_444_800
"""The expiry of the token in Unix s, in the year 2100: the clock of an emulator may have been moved."""
_DEPLOYMENT_URL = re.compile(r"https://(?!(localhost|127\.0\.0\.1|\[::1\])(:|/|$))")
"""An address with TLS on another machine."""
_CURSOR = "\0"
"""Stands for the cursor, so that the word there is a word even if it is empty."""
_BASH_BREAKS = ":="
"""Where bash splits words: it replaces only what follows the last of these."""
_SPECIAL_CHARACTERS = {
    "zsh": re.compile(r"[\\:]"),
    "bash": re.compile(r"[^\w\-./,:=@%+]"),
    'bash"': re.compile(r'[$`"\\]'),
}
"""The characters that a shell interprets in a candidate; for bash after an open double quote, too."""

Candidates = list[tuple[str, str]]
"""Words with a description each, which may be empty."""
Table = Mapping[str, tuple[str, list[str], Mapping[str, str]]]
"""By the name of a command: its summary, the kinds of its arguments, and its options with the kinds of their values,
which are empty for flags.
"""


def complete(environ: Mapping[str, str]) -> int:
    """Print the candidates for the shell; returns the exit code. Prints nothing if anything fails."""
    line = CommandLine(read_table(), environ.get(LINE, ""))
    if line.kind == FILES:
        return COMPLETE_FILES
    shell = environ[VARIABLE].removeprefix("complete_")
    text = "".join(f"{each}\n" for each in shell_lines(shell, line, candidates(line, environ)))
    os.write(sys.stdout.fileno(), text.encode(errors="replace"))
    return 0


def read_table() -> Table:
    """Return the table of commands."""
    with open(os.path.join(SHELLS, "commands.json"), encoding="utf-8") as file:
        table: Table = json.load(file)
    return table


def candidates(line: CommandLine, environ: Mapping[str, str]) -> Candidates:
    """Return the candidates for the word at the cursor."""
    found: Candidates = []
    if line.kind == COMMANDS:
        found = [*line.verbs().items()]
    elif line.kind == OPTIONS:
        found = [(name, "") for name in sorted(line.options()) if name.startswith("--")]
    elif line.kind in LIVE_KINDS:
        found = live_names(line.kind, line.given, environ)
    elif line.kind not in (FILES, NOTHING):
        found = [(choice, "") for choice in line.kind.split("|")]
    matching = [(f"{line.option}{name}", about) for name, about in found if name.startswith(line.typed)]
    return [each for each in matching if each[0].isprintable()]


class CommandLine:
    """A command line up to the cursor: the word there, and the kind of words that may stand in its place."""

    def __init__(self, table: Table, text: str) -> None:
        self._table = table
        self.command = ""
        self.given: dict[str, str] = {}
        """The options with values before the cursor."""
        self._arguments = 0
        self._waiting = ""
        """The option whose value comes next; empty for none."""
        self._has_ended = False
        """Whether `--` has ended the options."""
        words, self.quote = split_words(text)
        *before, self.typed = words
        """The text before the cursor, without the option's name in `--option=value`."""
        self.option = ""
        """`--option=` if the value follows in the same word, otherwise empty."""
        while before and "=" in before[0]:
            before.pop(0)  # an assignment before the program's name
        for word in before[1:]:
            self._read(word)
        self.kind = self._kind() or NOTHING

    def verbs(self) -> dict[str, str]:
        """Return the verbs of a noun, or the nouns, with their summaries; none if the command has no verbs."""
        start = f"{self.command} " if self.command else ""
        inside = {name[len(start) :]: about for name, (about, *_) in self._table.items() if name.startswith(start)}
        return {name: about for name, about in inside.items() if name not in ("", SHARED) and " " not in name}

    def options(self) -> dict[str, str]:
        """Return the options of the command, with the kinds of their values."""
        _, _, own = self._table.get(self.command, ("", [], {}))
        return {**own, **(self._table[SHARED][2] if SHARED in own else {})}

    def _read(self, word: str) -> None:
        if self._waiting:
            self.given[self._waiting], self._waiting = word, ""
        elif self._has_ended or not word.startswith("-") or word == "-":
            if self.verbs():
                self.command = f"{self.command} {word}".strip()
            else:
                self._arguments += 1
        elif word == "--":
            self._has_ended = True
        else:
            name, equals, value = word.partition("=")
            if equals:
                self.given[name] = value
            elif self.options().get(name):
                self._waiting = name

    def _kind(self) -> str | None:
        """Return the kind of the word at the cursor; nothing if the command has no word there."""
        if not self._waiting and not self._has_ended and self.typed.startswith("-"):
            name, equals, value = self.typed.partition("=")
            if not equals:
                return OPTIONS
            self._waiting, self.typed, self.option = name, value, f"{name}="
        if self._waiting:
            return self.options().get(self._waiting)
        if self.verbs():
            return COMMANDS
        _, kinds, _ = self._table.get(self.command, ("", [], {}))
        if self._arguments < len(kinds):
            return kinds[self._arguments].removesuffix(REST)
        return kinds[-1].removesuffix(REST) if kinds and kinds[-1].endswith(REST) else None


def split_words(line: str) -> tuple[list[str], str]:
    """Return the words, of which the last is unfinished, and the quote that is open in it."""
    for quote in ("", '"', "'"):
        with suppress(ValueError):  # another quote is open
            *words, last = shlex.split(f"{line}{_CURSOR}{quote}")
            return [*words, last.removesuffix(_CURSOR)], quote
    return [""], ""


def live_names(kind: str, given: Mapping[str, str], environ: Mapping[str, str]) -> Candidates:
    """Return names of this kind. No names if anything fails.

    `given` has the options on the command line.
    """
    found: dict[str, str] = {}

    def read() -> None:
        with suppress(Exception):  # completion never shows an error
            for name, about in _read_names(kind, given, environ):
                found.setdefault(name, about)

    worker = Thread(target=read, daemon=True)
    worker.start()
    worker.join(TIMEOUT_SECONDS)
    return list(found.items())


def _read_names(kind: str, given: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    profiles = _profiles(environ)
    if kind == "profiles":
        return ((name, str(profile.get("url", ""))) for name, profile in profiles["profiles"].items())
    service = _service(profiles, given, environ)
    if service is None:
        return iter(())
    url, authorization = service
    if kind == "namespaces":
        return ((name, "") for name in _get_json(url.partition("/_ns/")[0], "/_ns")["namespaces"])
    if kind == "faults":
        faults = _get_json(url, "/_emulator/faults")["faults"]
        return ((each["id"], f"{each['match']} {each['effect']}") for each in faults)
    return _code_sets(url, authorization) if kind == "sets" else _listed_names(url, authorization, kind)


def _service(
    profiles: Mapping[str, Any], given: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return the service that the command would call, as `config/resolver.py` finds it; `None` for production.

    The second text is the header `Authorization` of its listings.
    """
    named = given.get("--profile") or given.get("-p")
    chosen = named or environ.get("EXTCLI_PROFILE") or profiles.get("profile")
    profile = profiles["profiles"][chosen] if chosen else {}

    def setting(option: str, variable: str, key: str, default: str) -> str:
        first, second = by_precedence(environ.get(variable), profile.get(key), is_named=bool(named))
        return str(given.get(option) or first or second or default)

    url = setting("--url", "EXTCLI_URL", "url", DEFAULT_URL).rstrip("/")
    production = [each.get("url") for each in (profile, *profiles["profiles"].values()) if each.get("production")]
    if url in production or _DEPLOYMENT_URL.match(url):
        return None
    client_id = setting("--client-id", "EXTCLI_CLIENT_ID", "client_id", DEFAULT_CLIENT_ID)
    return url, f"{client_id} {_unsigned(setting('--channel', 'EXTCLI_CHANNEL', 'channel', ''))}"


def _code_sets(url: str, authorization: str) -> Iterator[tuple[str, str]]:
    """Return the indices and names of the code sets."""
    document = _get_json(url, "/v1/e/codes", authorization)
    names = document["names"] or []
    return zip(map(str, document.get("indices") or range(len(names))), names, strict=True)


def _listed_names(url: str, authorization: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the ids of at most 1,000 polls, rankings or buffers, with their channels."""
    for each in _get_json(url, f"/v1/e/{kind}?limit=1000", authorization)[kind]:
        yield each["id"], f"channel {each['channel_id']}" if each["channel_id"] else ""


def _unsigned(channel: str) -> str:
    """Return a token for the backend with an empty signature."""
    claims = {"exp": _YEAR_2100, "role": "backend", **({"channel_id": channel} if channel else {})}
    parts = [json.dumps(each).encode() for each in ({"alg": "HS256", "typ": "JWT"}, claims)]
    return ".".join([*(urlsafe_b64encode(each).decode().rstrip("=") for each in parts), "AA"])


def _get_json(url: str, path: str, authorization: str = "") -> Any:
    """Send a request and return the JSON of its response."""
    from extcli import bounded_json
    from extcli.api import connection

    response = connection.get(url, path, seconds=TIMEOUT_SECONDS, authorization=authorization)
    if response.status != 200:
        raise ValueError(response.status)
    return bounded_json.decoded(response.body)


def _profiles(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the profiles file; without one, no profiles."""
    file = profiles_file(environ)
    if not os.path.exists(file):
        return {"profiles": {}}
    from emulator.contract import user_files

    text = user_files.text(file, user_files.MAX_CONFIGURATION_BYTES)
    return {"profiles": {}, **user_files.parse_toml(text)}


def shell_lines(shell: str, line: CommandLine, found: Candidates) -> list[str]:
    """Return the candidates in the form that the script of this shell reads."""
    described = [(name, "".join(char if char.isprintable() else " " for char in about)) for name, about in found]
    if shell == "fish":
        return [f"{name}\t{about}" for name, about in described]
    if shell == "zsh":
        return [_escape(shell, name) + (f":{about}" if about else "") for name, about in described]
    if shell == "powershell":
        return [f"{name}\t{about or name}" for name, about in described]
    kept = 0 if line.quote else max(f"{line.option}{line.typed}".rfind(char) for char in _BASH_BREAKS) + 1
    if line.quote == "'":
        return [name[kept:].replace("'", "'\\''") for name, _ in found]
    return [_escape(f"{shell}{line.quote}", name[kept:]) for name, _ in found]


def _escape(place: str, text: str) -> str:
    return _SPECIAL_CHARACTERS[place].sub(lambda found: f"\\{found[0]}", text)
