"""Which entries a query selects. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from emulator.contract.parity import outcome_of, rule_of
from emulator.core.callers import Role
from emulator.core.journal import DELIVERY, FRAME, REQUEST, Entry
from emulator.core.wire.refusals import invalid_parameter

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000
KINDS = (REQUEST, FRAME, DELIVERY)
ORDERS = ("newest", "oldest")
ANY = "any"
"""As `production`: any difference. As `reason`: any refusal."""
_MAX_LENGTH = 1_024
"""Characters in a value."""
_NUMBER = re.compile("[0-9]{1,15}")
_STATUS = re.compile("[1-5]xx|[1-9][0-9]{2,3}|none")

EntryPredicate = Callable[[Entry], bool]


def check_parameter_names(query: Mapping[str, str], *allowed: str) -> None:
    """Raise `BadRequest` for an unknown parameter: a misspelled filter would select everything."""
    if unknown := sorted(query.keys() - set(allowed)):
        known = ", ".join(allowed)
        raise invalid_parameter(unknown[0], query[unknown[0]], f"one of {known}", f"is unknown; use {known}")


def limit_of(query: Mapping[str, str]) -> int:
    """Return how many entries a page has at most. Raises `BadRequest`."""
    limit = query.get("limit") or str(DEFAULT_LIMIT)
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_LIMIT:
        raise invalid_parameter("limit", limit, f"within 1 to {MAX_LIMIT}")
    return int(limit)


def is_newest_first(query: Mapping[str, str]) -> bool:
    """Return the order of a page: newest first, or oldest first with `since`. Raises `BadRequest`."""
    order = query.get("order") or ORDERS[1 if query.get("since") else 0]
    if order not in ORDERS:
        raise invalid_parameter("order", order, f"one of {', '.join(ORDERS)}")
    return order == ORDERS[0]


def number_of(query: Mapping[str, str], name: str) -> int | None:
    """Return a number of 0 or more, `None` if absent. Raises `BadRequest` naming the parameter."""
    text = query.get(name, "")
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise invalid_parameter(name, text, "a whole number of 0 or more")
    return int(text)


def predicate(query: Mapping[str, str]) -> EntryPredicate:
    """Return the predicate for the entries that a query selects.

    Raises `BadRequest`. Requests that extcli made for itself are selected only with `probes` or `id`.
    """
    given = {name: query[name] for name in FILTERS if query.get(name)}
    for name, text in given.items():
        if len(text) > _MAX_LENGTH:
            problem = f"has over {_MAX_LENGTH} characters"
            raise invalid_parameter(name, text, f"at most {_MAX_LENGTH} characters", problem)
    checks = [FILTERS[name].read(text) for name, text in given.items()]
    if not given.keys() & {"probes", "id"}:
        checks.append(_matches_probes("false"))
    return checks[0] if len(checks) == 1 else lambda entry: all(check(entry) for check in checks)


def _parse_words(name: str, text: str, known: Collection[str]) -> set[str]:
    """Return the words of a text that are joined with commas. Raises `BadRequest` for an unknown one."""
    wanted = set(text.split(","))
    if unknown := sorted(wanted - set(known)):
        raise invalid_parameter(name, unknown[0], f"one of {', '.join(known)}")
    return wanted


def _matches_status(text: str) -> EntryPredicate:
    wanted = text.split(",")
    for each in wanted:
        if not _STATUS.fullmatch(each):
            raise invalid_parameter("status", each, "a status such as 403, 4xx or none; join several with commas")

    def matches(entry: Entry) -> bool:
        if entry.status == 0:
            return "none" in wanted and entry.kind != DELIVERY
        return str(entry.status) in wanted or f"{entry.status // 100}xx" in wanted

    return matches


def _matches_path(text: str) -> EntryPredicate:
    return lambda entry: text in entry.path or text in entry.name


def _matches_method(text: str) -> EntryPredicate:
    wanted = tuple(f"{each} " for each in text.upper().split(","))
    return lambda entry: entry.kind == REQUEST and entry.name.startswith(wanted)


def _matches_role(text: str) -> EntryPredicate:
    wanted = _parse_words("role", text, list(Role))
    return lambda entry: entry.caller is not None and entry.caller.role in wanted


def _matches_client_id(text: str) -> EntryPredicate:
    return lambda entry: _client_and_channel(entry)[0] == text


def _matches_channel(text: str) -> EntryPredicate:
    return lambda entry: _client_and_channel(entry)[1] == text


def _client_and_channel(entry: Entry) -> tuple[str, str | None]:
    """Return the client id and channel of the caller, or of the topic of a delivery."""
    if entry.kind == DELIVERY:
        client_id, _, channel_id = entry.path.partition("/")
        return client_id, channel_id
    return (entry.caller.client_id, entry.caller.channel_id) if entry.caller else ("", "")


def _matches_user(text: str) -> EntryPredicate:
    return lambda entry: entry.caller is not None and text in (entry.caller.user_id, entry.caller.opaque_id)


def _matches_kind(text: str) -> EntryPredicate:
    wanted = _parse_words("kind", text, KINDS)
    return lambda entry: entry.kind in wanted


def _matches_id(text: str) -> EntryPredicate:
    return lambda entry: entry.id == text or entry.id.startswith(f"{text}/")


def _matches_production(text: str) -> EntryPredicate:
    wanted = set(text.split(","))

    def matches(entry: Entry) -> bool:
        found = entry.production
        return bool(found) and not wanted.isdisjoint((ANY, outcome_of(found), rule_of(found)))

    return matches


def _matches_reason(text: str) -> EntryPredicate:
    return lambda entry: bool(entry.reason) and text in (ANY, entry.reason)


def _matches_search(text: str) -> EntryPredicate:
    text = text.lower()

    def matches(entry: Entry) -> bool:
        texts = [entry.id, entry.name, entry.path, entry.reason, entry.detail, entry.hint, entry.recipients]
        if caller := entry.caller:
            texts += [caller.client_id, caller.user_id or "", caller.opaque_id]
        texts += [body.decode(errors="replace") for body in (entry.request, entry.response)]
        return any(text in each.lower() for each in texts)

    return matches


def _matches_probes(text: str) -> EntryPredicate:
    _parse_words("probes", text, ("true", "false"))
    return lambda entry: text == "true" or not entry.is_probe


class Filter(NamedTuple):
    """A parameter that selects entries."""

    meaning: str
    read: Callable[[str], EntryPredicate]
    """Returns the predicate for a value of the parameter. Raises `BadRequest`."""
    has_alternatives: bool = False
    """Whether it takes several values, joined with commas: an entry has one of them."""


_STATUS_TEXT = "A status such as 403 or 4xx, or `none` if a fault prevented the response. Join several with commas."
_PRODUCTION_TEXT = "Verdict: `refuse`, `unknown`, `differ`, `any` or a rule such as `stage`. Join several with commas."
FILTERS: Mapping[str, Filter] = {
    "status": Filter(_STATUS_TEXT, _matches_status, has_alternatives=True),
    "path": Filter("A part of the path, of the action or of the topic.", _matches_path),
    "method": Filter("The HTTP method. Join several with commas.", _matches_method, has_alternatives=True),
    "role": Filter("The role of the caller. Join several with commas.", _matches_role, has_alternatives=True),
    "client_id": Filter("The extension of the caller, or of the topic of a delivery.", _matches_client_id),
    "channel_id": Filter("The channel of the caller, or of the topic of a delivery.", _matches_channel),
    "user": Filter("The user id or opaque id of the caller.", _matches_user),
    "kind": Filter(f"{', '.join(KINDS)}. Join several with commas.", _matches_kind, has_alternatives=True),
    "id": Filter("A request id. The id of a handshake selects all frames of the socket.", _matches_id),
    "production": Filter(_PRODUCTION_TEXT, _matches_production, has_alternatives=True),
    "reason": Filter("The `reason` in the body of a refusal, or `any` for all refusals.", _matches_reason),
    "search": Filter("A text in the path, bodies, caller or refusal; case does not matter.", _matches_search),
    "probes": Filter("`true` includes extcli's own requests; their ids begin with `probe-`.", _matches_probes),
}
"""The parameters that select entries."""
