"""A recorded request in other forms: a line for curl, a command of extcli, a test for pytest. No I/O.

No form has a token: shells get one from `extcli token sandbox` when they run the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from keyword import iskeyword
from typing import Any, Final

from emulator.contract.shell import posix as quote
from emulator.core.callers import Caller, Role, opaque_id_of
from emulator.core.journal import FRAME, HIDDEN, MAX_BODY, REQUEST, Entry
from emulator.core.wire.refusals import invalid_word
from emulator.core.wire.url import SERVICE, parameters_of

_TABLE: Final = """
POST   vote                    vote cast {?id} --value {value}
POST   vote                    vote cast {?id} --value {value} --count {count}
GET    vote                    vote get {?id}
GET    vote_logs               vote logs {?id}
DELETE vote                    vote rm {?id}
GET    vote_config             vote config {?id}
GET    polls                   vote list
POST   rank                    rank submit {?id} --key={key}
GET    rank                    rank get {?id}
GET    rankings                rank list
DELETE rank                    rank rm {?id}
POST   accumulate              accumulate add {?id} {*}
GET    accumulate              accumulate get {?id}
GET    buffers                 accumulate list
POST   extension_state         state set extension {*}
POST   channel_state           state set channel {*}
POST   viewer_state            state set viewer {*}
POST   extension_viewer_state  state set extension-viewer {*}
POST   extension_hidden_state  state set hidden {*}
GET    extension_state         state get extension
GET    channel_state           state get channel
GET    viewer_state            state get viewer
GET    extension_viewer_state  state get extension-viewer
GET    extension_hidden_state  state get hidden
GET    all_state               state all
POST   extension_config        store-config set extension {*}
POST   channel_config          store-config set channel {*}
GET    extension_config        store-config get extension
GET    channel_config          store-config get channel
GET    all_config              store-config all
POST   json_store              json-store set {?id} {*}
GET    json_store              json-store get {?id}
GET    codes                   codes list
GET    codes/eligibility       codes eligible
POST   codes/redeem            codes redeem {prize}
POST   datastream              datastream send {*}
GET    curated_poll            trivia list
POST   curated_poll            trivia vote {question_id} {vote}
GET    curated_poll_leaderboard trivia leaderboard
POST   team_membership         trivia join
GET    team_membership         trivia team
GET    user_info               user info
"""
"""Method, path and command. `{name}` is a member of the body, `{?name}` a parameter, `{*}` the body as JSON.

`extcli api` sends any other request unchanged.
"""

_INTEGERS: Final = frozenset({"value", "count", "prize"})
"""The members that a command sends as integers. It sends all others as texts."""
_DEFAULT: Final = "default"
"""The id that a command sends if it has none, as the service assumes it."""


def words_of(endpoint: str, query: Mapping[str, str], body: Any) -> list[str] | None:
    """Return the words of a command that sends this query and body to `POST /v1/e/…`, or `None` if there is none."""
    for line in filter(None, _TABLE.splitlines()):
        method, path, *words = line.split()
        if f"{method} {SERVICE}{path}" == endpoint:
            parameters, members = dict(query), dict(body) if isinstance(body, dict) else {}
            with suppress(KeyError):
                found = [_value(word, parameters, members, body) for word in words]
                is_sent = "{*}" in words or (not members and (body is None or isinstance(body, dict)))
                if is_sent and not parameters:
                    return found
    return None


def _value(word: str, parameters: dict[str, str], members: dict[str, Any], body: Any) -> str:
    """Return a word with the value in it, and take that out of the parameters or members.

    Raises `KeyError` for an absent value, and for one that would become an option.
    """
    before, brace, name = word.partition("{")
    name = name.removesuffix("}")
    if not brace:
        return word
    if name == "*":
        if not isinstance(body, dict | list):
            raise KeyError(name)
        return json.dumps(body, ensure_ascii=False)
    if name.startswith("?"):
        value: Any = parameters.pop(name[1:], "") or _DEFAULT
    else:
        value = members.pop(name)
        if type(value) is not (int if name in _INTEGERS else str) or value == "":
            raise KeyError(name)
    if not before and str(value).startswith("-"):
        raise KeyError(name)
    return f"{before}{value}"


def is_cut(body: bytes, size: int) -> bool:
    """Whether the journal has only the beginning of a body of `size` bytes.

    A body in which a secret was hidden counts as complete.
    """
    return size > len(body) and (len(body) >= MAX_BODY or not body)


DEFAULT_URL: Final = "http://127.0.0.1:8282"


def snippet_of(entry: Entry, form: str, url: str) -> str:
    """Return an entry as `curl`, `extcli` or `pytest`, for the service at a base URL. Raises `BadRequest`.

    A comment in it names missing parts: a secret, the rest of a long body, or the token of an unknown caller.
    """
    make = FORMS.get(form)
    if make is None:
        raise invalid_word("as", form, f"one of {', '.join(FORMS)}")
    if entry.kind != REQUEST and not (entry.kind == FRAME and form == "extcli"):
        needed = "extcli, the form of frames" if entry.kind == FRAME else f"a form of a {entry.kind}, which has none"
        raise invalid_word("as", form, needed)
    notes = "".join(f"# {note}\n" for note in _notes(entry, form))
    return f"{notes}{make(entry, url or DEFAULT_URL)}\n"


def _notes(entry: Entry, form: str) -> list[str]:
    notes = []
    if is_cut(entry.request, entry.request_size):
        notes.append(f"the body is incomplete: the journal keeps the first 4 KiB of {entry.request_size:,} bytes")
    if HIDDEN.encode() in entry.request or HIDDEN in entry.path:
        notes.append(f"replace {HIDDEN} by the secret")
    if entry.caller is None and entry.status in (401, 403) and entry.name.partition(" ")[2].startswith(SERVICE):
        notes.append("the request had no valid token, and neither has this")
    if form == "pytest" and entry.request and _json(entry.request) is None:
        notes.append("the body is left out: a test can send JSON only, and not null")
    if form == "pytest" and entry.caller is not None and _needs_token(entry.caller):
        notes.append(f"the opaque id was {entry.caller.opaque_id!r}; a test chooses user ids only")
    return notes


def _curl(entry: Entry, url: str) -> str:
    text = _text(entry.request)
    before = f"{_printed(text)} | " if "\0" in text else ""
    words = [f"{before}curl --silent --show-error --fail-with-body --request", _method(entry)]
    if entry.caller is not None:
        words += ["--header", f'"$({_token_command(entry.caller, url)} --header)"']
    if entry.request:
        words += ["--header 'content-type: application/json'"]
        words += ["--data-binary @-"] if before else ["--data-raw", quote(text)]
    return " ".join([*words, "--globoff", quote(url + entry.path)])


def _extcli(entry: Entry, url: str) -> str:
    if entry.kind == FRAME:
        return " ".join(["extcli", *map(quote, _frame_words(entry)), *_identity(entry.caller, url)])
    body = _json(entry.request)
    words = words_of(entry.name, _query(entry), body) if entry.caller is not None and _is_plain(entry) else None
    before = ""
    if words is not None and not any("\0" in each for each in words):  # which no argument can have
        command = " ".join(map(quote, words))
    else:
        path = entry.path.removeprefix(SERVICE)
        path = f"{SERVICE}{path}" if path.startswith("-") else path
        command = " ".join(["api", _method(entry), quote(path), *([] if entry.caller else ["--no-auth"])])
        if entry.request:
            before, command = f"{_printed(_text(entry.request))} | ", f"{command} --input -"
    if entry.caller is not None and _needs_token(entry.caller):
        before += f'EXTCLI_TOKEN="$({_token_command(entry.caller, url)})" '
        identity = ["--url", quote(url), "--client-id", quote(entry.caller.client_id)]
    else:
        identity = _identity(entry.caller, url)
    return f"{before}{' '.join(['extcli', command, *identity])}"


def _pytest(entry: Entry, url: str) -> str:
    caller = entry.caller
    if caller is None or not entry.path.startswith(SERVICE):
        raise invalid_word(
            "as", "pytest", f"a form of this entry; a test is of a request below {SERVICE} with a caller"
        )
    name, query = entry.name.partition(" ")[2].removeprefix(SERVICE), _query(entry)
    arguments = [repr(_method(entry)), repr(name)]
    if entry.request:
        arguments.append(repr(_json(entry.request)))
    named = {key: value for key, value in query.items() if key.isidentifier() and not iskeyword(key)}
    arguments += [f"{key}={value!r}" for key, value in named.items()]
    odd = {key: value for key, value in query.items() if key not in named}
    arguments += [f"**{odd!r}"] if odd else []
    call = f"caller.request({', '.join(arguments)})"
    lines = [f"def test_{_identifier(entry)}(extcli):", f"    caller = {_actor(caller)}"]
    if entry.status >= 400:
        lines = ["import pytest", "from extcli.testing import Refused", "", "", *lines]
        lines += ["    with pytest.raises(Refused) as refused:", f"        {call}"]
        lines += [f"    assert refused.value.status == {entry.status}"]
        return "\n".join(lines)
    answer = _json(entry.response)
    if not entry.response or len(entry.response) < entry.response_size or HIDDEN in str(answer):
        return "\n".join([*lines, f"    {call}"])
    return "\n".join([*lines, f"    assert {call} == {answer!r}"])


FORMS: Final[Mapping[str, Callable[[Entry, str], str]]] = {"curl": _curl, "extcli": _extcli, "pytest": _pytest}


def _printed(text: str) -> str:
    """Return the command that prints a text. NUL is an escape of the format, as no argument can have it."""
    if "\0" not in text:
        return f"printf %s {quote(text)}"
    escaped = text.replace("\\", "\\\\").replace("%", "%%").replace("\0", "\\000")
    return f"printf -- {quote(escaped)}"


def _method(entry: Entry) -> str:
    return entry.name.partition(" ")[0]


def _query(entry: Entry) -> dict[str, str]:
    return parameters_of(entry.path.partition("?")[2])


def _is_plain(entry: Entry) -> bool:
    """Whether the whole body is known, and is JSON or absent."""
    return len(entry.request) == entry.request_size and (not entry.request or _json(entry.request) is not None)


def _text(body: bytes) -> str:
    return body.decode(errors="replace")


def _json(body: bytes) -> Any:
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


def _identity(caller: Caller | None, url: str) -> list[str]:
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
    words = ["extcli token sandbox --output plain", *_identity(caller, url)]
    if _needs_token(caller):
        words += ["--opaque", quote(caller.opaque_id)]
    return " ".join(words)


def _actor(caller: Caller) -> str:
    user = f", {caller.user_id!r}" if caller.user_id and caller.role is not Role.BROADCASTER else ""
    return f"extcli.actor({str(caller.role)!r}{user}, channel={caller.channel_id or ''!r})"


def _identifier(entry: Entry) -> str:
    words = entry.name.lower().replace(SERVICE, "")
    return "_".join("".join(each if each.isascii() and each.isalnum() else " " for each in words).split())


def _frame_words(entry: Entry) -> list[str]:
    """Return the `extcli` command that sends a recorded socket frame.

    Raises `BadRequest` if the frame is not a request.
    """
    frame = _json(entry.request)
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
