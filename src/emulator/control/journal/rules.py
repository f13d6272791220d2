"""Which entries a query selects. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from emulator.contract.parity import outcome_of, rule_of
from emulator.core.callers import Role
from emulator.core.journal import DELIVERY, FRAME, REQUEST, Entry
from emulator.core.wire.refusals import invalid_parameter

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
KINDS: Final = (REQUEST, FRAME, DELIVERY)
ORDERS: Final = ("newest", "oldest")
ALTERNATIVES: Final = frozenset({"status", "method", "role", "kind", "production"})
"""Those that take several values, joined with commas: an entry has one of them."""
PAGING: Final = ("since", "before", "limit", "order")
ANY: Final = "any"
"""As `production`: any difference."""
_MAX_LENGTH: Final = 1_024
"""Characters in a value."""
_NUMBER: Final = re.compile("[0-9]{1,15}")
_STATUS: Final = re.compile("[1-5]xx|[1-9][0-9]{2,3}|none")

Matches = Callable[[Entry], bool]


@dataclass(frozen=True)
class Page:
    """Which part of the journal a query reads."""

    since: int | None
    """Only entries with a higher number; `None` for all."""
    before: int | None
    """Only entries with a lower number; `None` for all."""
    limit: int
    newest_first: bool


def check_names(query: Mapping[str, str], *allowed: str) -> None:
    """Raise `BadRequest` for an unknown parameter: a misspelled filter would select everything."""
    if unknown := sorted(query.keys() - set(allowed)):
        known = ", ".join(allowed)
        raise invalid_parameter(unknown[0], query[unknown[0]], f"one of {known}", f"is unknown; use {known}")


def page_of(query: Mapping[str, str]) -> Page:
    """Return the page that a query reads: newest first, or oldest first with `since`. Raises `BadRequest`."""
    since, before = number_of(query, "since"), number_of(query, "before")
    limit = query.get("limit") or str(DEFAULT_LIMIT)
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_LIMIT:
        raise invalid_parameter("limit", limit, f"within 1 to {MAX_LIMIT}")
    order = query.get("order") or (ORDERS[0] if since is None else ORDERS[1])
    if order not in ORDERS:
        raise invalid_parameter("order", order, f"one of {', '.join(ORDERS)}")
    return Page(since, before, int(limit), order == ORDERS[0])


def number_of(query: Mapping[str, str], name: str) -> int | None:
    """Return a number of 0 or more, `None` if absent. Raises `BadRequest` naming the parameter."""
    text = query.get(name, "")
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise invalid_parameter(name, text, "a whole number of 0 or more")
    return int(text)


def matches_of(query: Mapping[str, str]) -> Matches:
    """Return the predicate for the entries that a query selects.

    Raises `BadRequest`. Requests that extcli made for itself are selected only with `probes` or `id`.
    """
    checks = [_CHECKS[name](value) for name in FILTERS if name != "probes" and (value := query.get(name, ""))]
    probes = query.get("probes", "")
    if probes not in ("", "true", "false"):
        raise invalid_parameter("probes", probes, "one of true, false")
    if probes != "true" and not query.get("id"):
        checks.append(lambda entry: not entry.is_probe)
    for name in FILTERS:
        if len(query.get(name, "")) > _MAX_LENGTH:
            raise invalid_parameter(
                name, query[name], f"at most {_MAX_LENGTH} characters", f"has over {_MAX_LENGTH} characters"
            )
    return checks[0] if len(checks) == 1 else lambda entry: all(check(entry) for check in checks)


def _status(text: str) -> Matches:
    wanted = text.split(",")
    for each in wanted:
        if not _STATUS.fullmatch(each):
            raise invalid_parameter("status", each, "a status such as 403, 4xx or none; join several with commas")
    classes = {int(each[0]) for each in wanted if each.endswith("xx")}
    single = {int(each) for each in wanted if each.isdigit()}
    selects_unanswered = "none" in wanted

    def matches(entry: Entry) -> bool:
        if entry.status == 0:
            return selects_unanswered and entry.kind != DELIVERY
        return entry.status in single or (entry.status < 1_000 and entry.status // 100 in classes)

    return matches


def _path(text: str) -> Matches:
    return lambda entry: text in entry.path or text in entry.name


def _method(text: str) -> Matches:
    wanted = tuple(f"{each} " for each in text.upper().split(","))
    return lambda entry: entry.kind == REQUEST and entry.name.startswith(wanted)


def _role(text: str) -> Matches:
    wanted = set(text.split(","))
    if unknown := sorted(wanted - set(Role)):
        raise invalid_parameter("role", unknown[0], f"one of {', '.join(Role)}")
    return lambda entry: entry.caller is not None and entry.caller.role in wanted


def _client_id(text: str) -> Matches:
    def matches(entry: Entry) -> bool:
        if entry.kind == DELIVERY:
            return entry.path.startswith(f"{text}/")
        return entry.caller is not None and entry.caller.client_id == text

    return matches


def _channel_id(text: str) -> Matches:
    def matches(entry: Entry) -> bool:
        if entry.kind == DELIVERY:
            return entry.path.endswith(f"/{text}")
        return entry.caller is not None and entry.caller.channel_id == text

    return matches


def _user(text: str) -> Matches:
    return lambda entry: entry.caller is not None and text in (entry.caller.user_id, entry.caller.opaque_id)


def _kind(text: str) -> Matches:
    wanted = text.split(",")
    for each in wanted:
        if each not in KINDS:
            raise invalid_parameter("kind", each, f"one of {', '.join(KINDS)}")
    return lambda entry: entry.kind in wanted


def _id(text: str) -> Matches:
    return lambda entry: entry.id == text or entry.id.startswith(f"{text}/")


def _production(text: str) -> Matches:
    wanted = set(text.split(","))

    def matches(entry: Entry) -> bool:
        if not entry.production:
            return False
        return ANY in wanted or outcome_of(entry.production) in wanted or rule_of(entry.production) in wanted

    return matches


def _search(text: str) -> Matches:
    text = text.lower()

    def matches(entry: Entry) -> bool:
        caller = entry.caller
        ids = (caller.client_id, caller.user_id or "", caller.opaque_id) if caller else ()
        bodies = (body.decode(errors="replace") for body in (entry.request, entry.response))
        texts = (entry.id, entry.name, entry.path, entry.reason, entry.detail, entry.hint, entry.recipients)
        return any(text in each.lower() for each in (*texts, *ids, *bodies))

    return matches


_CHECKS: Final[Mapping[str, Callable[[str], Matches]]] = {
    "status": _status,
    "path": _path,
    "method": _method,
    "role": _role,
    "client_id": _client_id,
    "channel_id": _channel_id,
    "user": _user,
    "kind": _kind,
    "id": _id,
    "production": _production,
    "search": _search,
}
FILTERS: Final = (*_CHECKS, "probes")
"""The parameters that select entries."""
