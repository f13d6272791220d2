"""A recorded request in other forms: a line for curl, a command of extcli, a test for pytest. No I/O.

No form has a token: shells get one from `extcli token sandbox` when they run the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from keyword import iskeyword
from typing import Any

import msgspec

from emulator.contract.shell import quote_posix as quote
from emulator.core.callers import Caller, Role, opaque_id_of
from emulator.core.journal import FRAME, HIDDEN, MAX_BODY, REQUEST, Entry
from emulator.core.wire.refusals import invalid_word
from emulator.core.wire.url import SERVICE, parameters_of

_OPTION_NAME = re.compile(r"\w[\w.-]*")
"""Names of members that an option can have."""


def is_cut(body: bytes, size: int) -> bool:
    """Whether the journal has only the beginning of a body of `size` bytes.

    A body in which a secret was hidden counts as complete.
    """
    return size > len(body) and (len(body) >= MAX_BODY or not body)


DEFAULT_URL = "http://127.0.0.1:8282"


def snippet_of(entry: Entry, form: str, url: str) -> str:
    """Return an entry as `curl`, `extcli` or `pytest`, for the service at a base URL. Raises `BadRequest`.

    A comment in it names missing parts: a secret, the rest of a long body, or the token of an unknown caller.
    """
    make = SNIPPET_FORMS.get(form)
    if make is None:
        raise invalid_word("as", form, f"one of {', '.join(SNIPPET_FORMS)}")
    if entry.kind != REQUEST and not (entry.kind == FRAME and form == "extcli"):
        needed = "extcli, the only form for a frame" if entry.kind == FRAME else f"a form; a {entry.kind} has no form"
        raise invalid_word("as", form, needed)
    notes = "".join(f"# {note}\n" for note in _missing_parts(entry, form))
    return f"{notes}{make(entry, url or DEFAULT_URL)}\n"


def _missing_parts(entry: Entry, form: str) -> list[str]:
    notes = []
    if is_cut(entry.request, entry.request_size):
        notes.append(f"the body is incomplete: the journal keeps the first 4 KiB of {entry.request_size:,} bytes")
    if HIDDEN.encode() in entry.request or HIDDEN in entry.path:
        notes.append(f"replace {HIDDEN} with the secret")
    path = entry.name.partition(" ")[2]
    if entry.caller is None and entry.status in (401, 403) and path.startswith(SERVICE):
        notes.append("the recorded request had no valid token, so this text sends no token")
    if form == "pytest" and entry.request and _decoded_json(entry.request) is None:
        notes.append("the body is left out: it is not JSON, or it is null, and a test can send neither")
    if form == "pytest" and entry.caller is not None and _needs_token(entry.caller):
        notes.append(f"the caller's opaque id was {entry.caller.opaque_id!r}; a test can choose only the user id")
    return notes


def _curl(entry: Entry, url: str) -> str:
    text = entry.request.decode(errors="replace")
    before = f"{_print_command(text)} | " if "\0" in text else ""
    words = [f"{before}curl --silent --show-error --fail-with-body --request", _method(entry)]
    if entry.caller is not None:
        words += ["--header", f'"$({_token_command(entry.caller, url)} --header)"']
    if entry.request:
        words += ["--header 'content-type: application/json'"]
        words += ["--data-binary @-"] if before else ["--data-raw", quote(text)]
    return " ".join([*words, "--globoff", quote(url + entry.path)])


def _extcli(entry: Entry, url: str) -> str:
    if entry.kind == FRAME:
        return " ".join(["extcli", *map(quote, _frame_words(entry)), *_identity_options(entry.caller, url)])
    path = entry.path.removeprefix(SERVICE)
    path = f"{SERVICE}{path}" if path.startswith("-") else path
    words = ["extcli api", _method(entry), quote(path), *([] if entry.caller else ["--no-auth"])]
    before, fields = "", _json_fields(entry)
    for name, value in fields.items():
        words += ["-f", quote(f"{name}={value}")]
    if entry.request and not fields:
        before = f"{_print_command(entry.request.decode(errors='replace'))} | "
        words.append("--input -")
    if entry.caller is not None and _needs_token(entry.caller):
        before += f'EXTCLI_TOKEN="$({_token_command(entry.caller, url)})" '
        identity = ["--url", quote(url), "--client-id", quote(entry.caller.client_id)]
    else:
        identity = _identity_options(entry.caller, url)
    return before + " ".join([*words, *identity])


def _json_fields(entry: Entry) -> dict[str, str]:
    """Return the JSON of each member of a body; empty if only the body as it was sent means the same."""
    if len(entry.request) != entry.request_size:
        return {}
    try:
        members = msgspec.json.decode(entry.request, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    if not all(map(_OPTION_NAME.fullmatch, members)):
        return {}
    return {name: bytes(value).decode() for name, value in members.items()}


def _pytest(entry: Entry, url: str) -> str:
    caller = entry.caller
    if caller is None or not entry.path.startswith(SERVICE):
        raise invalid_word(
            "as", "pytest", f"a form of this entry: a test needs a request below {SERVICE} with a valid token"
        )
    name = entry.name.partition(" ")[2].removeprefix(SERVICE)
    query = parameters_of(entry.path.partition("?")[2])
    arguments = [repr(_method(entry)), repr(name)]
    if entry.request:
        arguments.append(repr(_decoded_json(entry.request)))
    odd = {}
    for key, value in query.items():
        if key.isidentifier() and not iskeyword(key):
            arguments.append(f"{key}={value!r}")
        else:
            odd[key] = value
    if odd:
        arguments.append(f"**{odd!r}")
    call = f"caller.request({', '.join(arguments)})"
    words = re.findall("[0-9a-z]+", entry.name.lower().replace(SERVICE, ""))
    lines = [f"def test_{'_'.join(words)}(extcli):", f"    caller = {_actor_expression(caller)}"]
    if entry.status >= 400:
        lines = ["import pytest", "from extcli.testing import Refused", "", "", *lines]
        lines += ["    with pytest.raises(Refused) as refused:", f"        {call}"]
        lines += [f"    assert refused.value.status == {entry.status}"]
        return "\n".join(lines)
    answer = _decoded_json(entry.response)
    if not entry.response or len(entry.response) < entry.response_size or HIDDEN in str(answer):
        return "\n".join([*lines, f"    {call}"])
    return "\n".join([*lines, f"    assert {call} == {answer!r}"])


SNIPPET_FORMS: Mapping[str, Callable[[Entry, str], str]] = {"curl": _curl, "extcli": _extcli, "pytest": _pytest}


def _print_command(text: str) -> str:
    """Return the command that prints a text. NUL is an escape of the format, as no argument can have it."""
    if "\0" not in text:
        return f"printf %s {quote(text)}"
    escaped = text.replace("\\", "\\\\").replace("%", "%%").replace("\0", "\\000")
    return f"printf -- {quote(escaped)}"


def _method(entry: Entry) -> str:
    return entry.name.partition(" ")[0]


def _decoded_json(body: bytes) -> Any:
    """Return a body as Python has it; `None` if it is not JSON."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _needs_token(caller: Caller) -> bool:
    """Whether `--as` cannot name the caller, because the token's opaque id does not follow from its user id."""
    if caller.role is Role.BROADCASTER or (caller.spans_channels and not caller.user_id):
        return False
    return not caller.user_id or caller.opaque_id != opaque_id_of(caller.user_id)


def _identity_options(caller: Caller | None, url: str) -> list[str]:
    """Return the options that make a command act as the caller."""
    words = ["--url", quote(url)]
    if caller is None:
        return words
    # A broadcaster owns the channel, so `--as` needs no user.
    user = f":{caller.user_id}" if caller.user_id and caller.role is not Role.BROADCASTER else ""
    words += ["--client-id", quote(caller.client_id), "--as", quote(f"{caller.role}{user}")]
    return [*words, "--channel", quote(caller.channel_id)] if caller.channel_id else words


def _token_command(caller: Caller, url: str) -> str:
    """Return the `extcli` command that prints a token for the caller."""
    words = ["extcli token sandbox --output plain", *_identity_options(caller, url)]
    if _needs_token(caller):
        words += ["--opaque", quote(caller.opaque_id)]
    return " ".join(words)


def _actor_expression(caller: Caller) -> str:
    user = f", {caller.user_id!r}" if caller.user_id and caller.role is not Role.BROADCASTER else ""
    return f"extcli.actor({str(caller.role)!r}{user}, channel={caller.channel_id or ''!r})"


def _frame_words(entry: Entry) -> list[str]:
    """Return the `extcli` command that sends a recorded socket frame.

    Raises `BadRequest` if the frame is not a request.
    """
    frame = _decoded_json(entry.request)
    if not isinstance(frame, dict) or not isinstance(frame.get("action"), str):
        raise invalid_word("as", "extcli", "a form of this frame, which is not a request")
    params, data = frame.get("params"), frame.get("data")
    target = params.get("target") if isinstance(params, dict) else None
    words = [frame["action"], *([target] if isinstance(target, str) else [])]
    options = ["--data", json.dumps(data)] if data is not None else []
    if any(each.startswith("-") for each in words):
        raise invalid_word(
            "as", "extcli", "a form of this frame, whose action or target begins with '-', as options do"
        )
    return ["socket", "send", *words, *options]
