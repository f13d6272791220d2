"""Explains refusals: which rule, what the caller had, what was needed, and what to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from emulator.features.explanations.cases import Case, Refusal
from emulator.features.explanations.data_cases import DATA
from emulator.features.explanations.facts import facts_of
from emulator.features.explanations.input_cases import INPUT
from emulator.features.explanations.socket_cases import CLOSES, OTHER_CLOSE, SOCKETS
from emulator.features.explanations.subjects import rules_about
from emulator.features.explanations.texts import Explanation, shortened

TABLE: Final = (*INPUT, *DATA, *SOCKETS)
"""All kinds of refusals. Of one reason, the first case whose detail matches counts."""
_SHORT: Final = 60
"""Characters of a body that is shown as it is."""
_FIRST_CLOSE_CODE: Final = 1000
"""Higher statuses are the codes of closed sockets, and their details the reasons."""


def explain(refusal: Refusal) -> Explanation | None:
    """Return why a request was refused, without the text of the rule; `None` for an unknown kind of refusal."""
    if refusal.status >= _FIRST_CLOSE_CODE:
        return next(_explained((*CLOSES, OTHER_CLOSE), refusal))
    return next(_explained(_CASES.get(refusal.reason, ()), refusal), None)


def what_was_sent(refusal: Refusal) -> str:
    """Return the field that the detail begins with and its value, or a short body; empty if unknown."""
    field, colon, _ = refusal.detail.partition(": ")
    field = field if colon else ""
    value = _sent(refusal, field)
    return f"{field} {value}" if value else _short_body(refusal, field)


def _explained(table: Iterable[Case], refusal: Refusal) -> Iterator[Explanation]:
    for case in table:
        if found := re.search(case.detail, refusal.detail, re.DOTALL):
            values = values_of(refusal, found.groupdict())
            texts = (case.rule, case.title, case.held, case.needed, case.next_step)
            yield Explanation(*(shortened(text.format_map(values)) for text in texts))


def explain_close(reason: str) -> Explanation | None:
    """Return why a socket was closed with this reason; `None` for an unknown reason."""
    return next(_explained(CLOSES, Refusal(0, "", reason)), None)


def values_of(refusal: Refusal, groups: Mapping[str, str | None]) -> dict[str, str]:
    """Return the values for the texts of a case, by name. `groups` are those of its pattern, which come first."""
    named = {name: refusal.detail if text is None else text for name, text in groups.items()}
    rule, _ = rules_about(refusal.name or refusal.path)
    return {
        "name": refusal.name or "this request",
        "path": refusal.path or "this path",
        "detail": refusal.detail,
        "rule": rule,
        **_about_field(refusal),
        **named,
    }


def _about_field(refusal: Refusal) -> dict[str, str]:
    """Return the field that the detail names, what it held and what was needed."""
    facts = facts_of(refusal.detail)
    value = _sent(refusal, facts.field)
    sent = f"{facts.field} {value}" if value else ""
    return {
        "field": facts.field or "the body",
        "sent": sent or "another value",
        "held": sent or facts.held or _short_body(refusal, facts.field) or refusal.detail,
        "needed": facts.needed or "what /schema/openapi.json of the service describes",
    }


def _sent(refusal: Refusal, field: str) -> str:
    """Return the value of a field as it was sent, as JSON; empty if unknown."""
    query = dict(parse_qsl(refusal.path.partition("?")[2]))
    if field in query:
        return msgspec.json.encode(query[field]).decode()
    try:
        value: Any = msgspec.json.decode(refusal.body) if refusal.body and field else None
        for member in re.findall(r"[\w$-]+", field) if value is not None else ():
            value = value[int(member)] if isinstance(value, list) else value[member]
    except (msgspec.MsgspecError, KeyError, IndexError, ValueError, TypeError, RecursionError):
        return ""
    return "" if value is None else msgspec.json.encode(value).decode()


def _short_body(refusal: Refusal, field: str) -> str:
    """Return the body if the refusal is about all of it and it is short; else an empty text."""
    body = refusal.body.decode(errors="replace")
    return f"the body {body}" if body and not field and len(body) <= _SHORT else ""


_CASES: Final[dict[str, list[Case]]] = {}
for _case in TABLE:
    for _each in _case.reasons:
        _CASES.setdefault(_each, []).append(_case)
