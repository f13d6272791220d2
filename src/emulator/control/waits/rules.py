"""Conditions: how a query names them, which value they read, and when they are met. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec

from emulator.contract.kinds import are_equal_json
from emulator.control.journal import rules as journal
from emulator.core.changes import MAX_KEPT
from emulator.core.clock import MINUTE
from emulator.core.keys import Key
from emulator.core.wire.refusals import checked_text, invalid_parameter, invalid_word, missing_parameter
from emulator.features.kinds import Kind, Measured, Subject

MAX_TIMEOUT = MINUTE
DEFAULT_TIMEOUT = 5_000
"""In ms."""
_MAX_LENGTH = 4 * 1024
"""Characters in an id or a path."""
MISSING = object()
"""Stands for a value that is not there."""
_NUMBER = re.compile(r"(?P<exactly>=?)(?P<number>-?[0-9]{1,15})")


class Comparison(NamedTuple):
    """Compares the actual value with the wanted one."""

    text: str
    """The condition in words, such as `at least 3`."""
    accepts: Callable[[Any], bool]
    number: int = 0
    """The wanted number; 0 if the comparison is not with a number."""


def at_least(number: int) -> Comparison:
    """Return the comparison that accepts this number or more."""
    return Comparison(f"at least {number}", lambda found: bool(found >= number), number)


def equal_to(value: Any) -> Comparison:
    """Return the comparison that accepts an equal JSON value.

    Numbers are equal by value, objects whatever the order of their members.
    """
    return Comparison(
        msgspec.json.encode(value).decode(), lambda found: found is not MISSING and are_equal_json(found, value)
    )


ANY_VALUE = Comparison("any value", lambda found: found is not MISSING)
"""Accepts any value that exists."""


def parse_comparison(name: str, text: str, *, lowest: int | None = 0) -> Comparison:
    """Parse `3`, which means at least three, or `=3`, exactly three. Raises `BadRequest` naming the parameter.

    At least 0 is refused, because that is always true.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        needed = "a number such as 3, for at least 3, or =3, for exactly 3"
        raise invalid_parameter(name, text, needed)
    number = int(match["number"])
    if lowest is not None and number < lowest:
        raise invalid_parameter(name, number, f"{lowest} or more")
    if match["exactly"]:
        return Comparison(f"exactly {number}", lambda found: bool(found == number), number)
    if number == lowest:
        problem = f"at least {number} is always true; ={number} means exactly {number}"
        raise invalid_parameter(name, number, f"a higher number; ={number} means exactly {number}", problem)
    return at_least(number)


_COMMON_PARAMETERS = frozenset({"for", "id", "client_id", "channel_id", "timeout", "since"})
FILTERS = frozenset(journal.FILTERS) - _COMMON_PARAMETERS
"""Parameters that select entries of the journal, besides the client id and the channel."""
_UNSTORED_SUBJECTS = (
    Subject("broadcast", "event", frozenset({"count"}), is_stored=False),
    Subject("sockets", "socket", frozenset({"count"}), "connected", needs_client=False),
    Subject("journal", "", frozenset({"count", *FILTERS}), "*", needs_client=False),
)
"""Subjects of conditions that are not stored."""


def subjects_of(kinds: Iterable[Kind]) -> Mapping[str, Subject]:
    """Return the subjects of conditions by name."""
    stored = [kind.waits_for for kind in kinds if kind.waits_for]
    return {each.name: each for each in (*stored, *_UNSTORED_SUBJECTS)}


class Check(NamedTuple):
    """One comparison of a condition. A condition is met when all its comparisons hold."""

    name: str
    """The name in a response. Its first word is the parameter that asks for it."""
    wanted: Comparison
    read: Callable[[Measured], Any]
    """Returns the value to compare, or `MISSING`."""


def _read_count(measured: Measured) -> int:
    return sum(measured.counts.values())


def _read_sum(measured: Measured) -> int:
    return sum(int(value) * votes for value, votes in measured.counts.items())


def _count_of(key: str, measured: Measured) -> int:
    return measured.counts.get(key, 0)


def _read_content(measured: Measured) -> Any:
    return MISSING if measured.content is None else msgspec.json.decode(measured.content)


@dataclass(frozen=True)
class Condition:
    """The condition that a caller waits for."""

    subject: Subject
    id: str
    client_id: str
    channel: str | None
    """`None` for all channels together."""
    user: str
    since: int | None
    """The mark after which changes count; `None` for all that there is."""
    checks: tuple[Check, ...]

    @property
    def kind(self) -> str:
        """The kind of changes that may meet the condition."""
        return self.subject.kind or self.id

    def concerns(self, key: Key) -> bool:
        """Whether a change of this key may meet the condition."""
        named = not self.subject.is_named or key.name == self.id
        shared = self.subject.shared
        is_shared = not key.channel and shared is not None and self.id.startswith(shared)
        here = self.channel is None or key.channel == self.channel or is_shared
        return named and here and key.owner in ("", self.client_id)

    def wanted(self) -> dict[str, str]:
        """The wanted values in words, by the name of each check."""
        return {check.name: check.wanted.text for check in self.checks}

    def values(self, measured: Measured) -> dict[str, Any]:
        """Return the actual values, by the name of each check, without those that are missing."""
        found = ((check.name, check.read(measured)) for check in self.checks)
        return {name: value for name, value in found if value is not MISSING}

    def is_met(self, found: Mapping[str, Any]) -> bool:
        return all(check.wanted.accepts(found.get(check.name, MISSING)) for check in self.checks)


def parse_condition(query: Mapping[str, str], subjects: Mapping[str, Subject]) -> Condition:
    """Return the condition that a query names. Raises `BadRequest` naming the parameter."""
    name = query.get("for", "")
    subject = subjects.get(name)
    if subject is None:
        raise invalid_word("for", name, f"one of {', '.join(subjects)}")
    _check_names(query, subject)
    id = query.get("id") or subject.id
    if not id:
        raise missing_parameter("id", f"one of {', '.join(subject.events)}" if subject.events else "the name")
    if subject.events and id not in subject.events:
        raise invalid_parameter("id", id, f"one of {', '.join(subject.events)}")
    client_id = query.get("client_id", "")
    if subject.needs_client and not client_id:
        raise missing_parameter("client_id", "the extension that the condition is about")
    for text in ("id", "client_id", "channel_id", "user"):
        if query.get(text):
            checked_text(query[text], _MAX_LENGTH, reason=f"Malformed {text} parameter", name=text)
    since = _parse_since(query, name)
    checks = tuple(_parse_checks(subject, query, since))
    if since is not None or not subject.is_stored:
        _check_countable(checks)
    return Condition(subject, id, client_id, query.get("channel_id") or None, query.get("user", ""), since, checks)


def _check_countable(checks: Iterable[Check]) -> None:
    """Refuse a count that the record of changes cannot reach."""
    for check in checks:
        number = check.wanted.number
        if check.name != "sum" and number > MAX_KEPT:
            parameter = check.name.partition(" ")[0]
            raise invalid_parameter(parameter, number, f"at most {MAX_KEPT}, because the service keeps no more changes")


def _check_names(query: Mapping[str, str], subject: Subject) -> None:
    """Refuse a parameter with no meaning: a misspelled one would change the condition."""
    if unknown := sorted(query.keys() - subject.parameters - _COMMON_PARAMETERS):
        known = ", ".join(sorted(subject.parameters))
        problem = f"does not apply to {subject.name}; use one of {known}"
        raise invalid_parameter(unknown[0], query[unknown[0]], f"one of {known}", problem)


def _parse_since(query: Mapping[str, str], subject: str) -> int | None:
    text = query.get("since", "")
    if not text:
        return None
    if subject == "sockets":
        problem = "does not apply to sockets, which counts the connections that are open now"
        raise invalid_parameter("since", text, "no since: sockets counts what is open now", problem)
    if not re.fullmatch("[0-9]{1,15}", text):
        raise invalid_parameter("since", text, "a mark: the number in the header X-Emulator-Mark of a response")
    return int(text)


def _parse_checks(subject: Subject, query: Mapping[str, str], since: int | None) -> Iterator[Check]:
    if "path" in subject.parameters and "equals" in subject.parameters:
        equals = query.get("equals", "")
        wanted = equal_to(_parse_json("equals", equals)) if equals else ANY_VALUE
        path = _checked_pointer(query.get("path", ""))
        yield Check(path or "document", wanted, partial(_read_at_pointer, path))
        if since is not None:
            yield Check("writes", at_least(1), _read_count)
        return
    if query.get("count"):
        yield Check("count", parse_comparison("count", query["count"]), _read_count)
    if query.get("sum"):
        yield Check("sum", parse_comparison("sum", query["sum"], lowest=None), _read_sum)
    if query.get("value"):
        yield from _parse_value_checks(query["value"])
    if query.get("score") and not query.get("key"):
        raise missing_parameter("key", "score counts the users with the answer that key names")
    if query.get("key"):
        key = query["key"]
        yield Check(f"score of {key}", parse_comparison("score", query.get("score") or "1"), partial(_count_of, key))
    if query.get("latest"):
        yield Check("latest", equal_to(_parse_json("latest", query["latest"])), _read_content)
    if not any(query.get(name) for name in ("count", "sum", "value", "key", "latest")):
        yield Check("count", at_least(1), _read_count)


def _parse_value_checks(text: str) -> Iterator[Check]:
    """Parse `0=2,1==3`: at least two votes for 0, and exactly three for 1."""
    for part in text.split(","):
        value, separator, number = part.partition("=")
        if not separator or not re.fullmatch(r"-?[0-9]{1,2}", value):
            raise invalid_parameter("value", part, "VALUE=COUNT: 0=2 means at least two votes for 0, 0==2 exactly two")
        value = str(int(value))
        yield Check(f"value {value}", parse_comparison("value", number), partial(_count_of, value))


def parse_timeout(text: str) -> int:
    """Return the timeout of a wait in ms, from its query. Raises `BadRequest`."""
    if not text:
        return DEFAULT_TIMEOUT
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) > MAX_TIMEOUT:
        raise invalid_parameter("timeout", text, f"0 to {MAX_TIMEOUT} ms")
    return int(text)


def _read_at_pointer(pointer: str, measured: Measured) -> Any:
    """Return the value at a JSON Pointer (RFC 6901) into the document, or `MISSING`."""
    document = _read_content(measured)
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and re.fullmatch("0|[1-9][0-9]{0,8}", name) and int(name) < len(document):
            document = document[int(name)]
        else:
            return MISSING
    return document


def _checked_pointer(text: str) -> str:
    if text and not text.startswith("/"):
        raise invalid_parameter("path", text, "a JSON pointer, such as /score or /teams/0/name")
    return checked_text(text, _MAX_LENGTH, reason="Malformed path parameter", name="path") if text else ""


def _parse_json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise invalid_parameter(name, text, "JSON; put a string in double quotes") from None
