"""The command of `extcli` that sends a request. No I/O.

`docs/cli.md` lists a command for each operation. Here are those whose arguments follow from the request; for any other,
`extcli api` sends it unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_TABLE: Final = """
POST   vote                    vote cast {?id} --value {value} [--count {count}]
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

A part in brackets is left out if its member is absent.
"""

_INTEGERS: Final = frozenset({"value", "count", "prize"})
"""The members that a command sends as integers. It sends all others as texts."""
_DEFAULT: Final = "default"
"""The id that a command sends if it has none, as the service assumes it."""


def _rows() -> Iterator[tuple[str, list[str]]]:
    for line in filter(None, _TABLE.splitlines()):
        method, path, *words = line.split()
        yield f"{method} /v1/e/{path}", words


_COMMANDS: Final = dict(_rows())


def words_of(endpoint: str, query: Mapping[str, str], body: Any) -> list[str] | None:
    """Return the words of a command that sends this body and query to `POST /v1/e/…`, or `None` if there is none."""
    words = _COMMANDS.get(endpoint)
    if words is None:
        return None
    left = dict(body) if isinstance(body, dict) else {} if body is None else None
    parameters = dict(query)
    try:
        found = list(_fill_words(words, parameters, left, body))
    except KeyError:
        return None
    has_body = "{*}" in words
    return None if parameters or (left and not has_body) or (left is None and not has_body) else found


def _fill_words(
    words: list[str], parameters: dict[str, str], members: dict[str, Any] | None, body: Any
) -> Iterator[str]:
    """Yield the words with the values in them, and take those out of the dicts.

    Raises `KeyError` for an absent value, and for one that would become an option.
    """
    is_left_out = False
    for at, word in enumerate(words):
        if word.startswith("["):
            name = words[at + 1].strip("{}]")
            is_left_out = name not in (members or {})
            word = word[1:]
        last, word = word.endswith("]"), word.removesuffix("]")
        if not is_left_out:
            value = _value(word, parameters, members, body)
            if value.startswith("-") and not word.startswith("-") and not words[at - 1].lstrip("[").startswith("-"):
                raise KeyError(word)  # an argument that the command would take for an option
            yield value
        is_left_out = is_left_out and not last


def _value(word: str, parameters: dict[str, str], members: dict[str, Any] | None, body: Any) -> str:
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
        value = (members or {}).pop(name)
        if type(value) is not (int if name in _INTEGERS else str) or value == "":
            raise KeyError(name)
    if not before and str(value).startswith("-"):  # it would be an option
        raise KeyError(name)
    return f"{before}{value}"
