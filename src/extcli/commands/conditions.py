"""The conditions of `extcli wait CONDITION`, which `extcli expect CONDITION` checks at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from extcli.cli import argument, option
from extcli.cli.json_input import parse_json_or_text
from extcli.cli.option_groups import with_journal_filters
from extcli.commands.stores import CONFIG, STATE, scope_argument
from extcli.config.settings import DEFAULT_USER
from extcli.output.sanitize import compact
from extcli.session import Session

_COUNT_SYNTAX = "N means at least N; =N means exactly N."

Since = Annotated[int | None, option("--since MARK", "Count only changes after this mark, from `extcli wait mark`.")]


def _count_option(things: str) -> Any:
    return option("--count N|=N", f"{things}: {_COUNT_SYNTAX}", show_default=False)


@dataclass(frozen=True)
class Condition:
    """What to wait for: a subject of `GET /_emulator/wait`, its id and the other parameters."""

    subject: str
    id: str
    """`*` for all."""
    parameters: Mapping[str, Any]
    """`None` for those that are not given."""
    has_scope: bool = True
    """Whether it is about one extension and channel."""


def poll(
    session: Session,
    poll: str = argument("ID", "The poll's id.", "default"),
    count: str | None = _count_option("Number of votes"),
    value: list[str] | None = option("--value V=N", "Votes for V: 0=2 is at least two votes for 0, 0==2 exactly two."),
    total: str | None = option("--sum N|=N", f"The sum of all values: {_COUNT_SYNTAX}"),
    since: Since = None,
) -> Condition:
    """Wait for the votes of a poll, by default for at least one vote.

    \b
    Examples:
      extcli wait poll lunch --count 1
      extcli wait poll lunch --value 3=1 --value 4==0
    """
    values = ",".join(value) if value else None
    return Condition("poll", poll, {"count": count, "value": values, "sum": total, "since": since})


def rank(
    session: Session,
    ranking: str = argument("ID", "The ranking's id.", "default"),
    key: str | None = option("--key TEXT", "Count only this answer."),
    score: str | None = option("--score N|=N", f"Users who gave the answer of --key: {_COUNT_SYNTAX}"),
    count: str | None = _count_option("Users who gave any answer"),
    since: Since = None,
) -> Condition:
    """Wait for the answers of a ranking, by default for at least one answer.

    Example: extcli wait rank colour --key blue --score 1
    """
    return Condition("rank", ranking, {"key": key, "score": score, "count": count, "since": since})


def accumulate(
    session: Session,
    buffer: str = argument("ID", "The buffer's id.", "default"),
    count: str | None = _count_option("Number of entries"),
    latest: str | None = option("--latest JSON", "The value of the newest entry, as JSON."),
    since: Since = None,
) -> Condition:
    """Wait for the entries of a buffer, by default for at least one entry.

    Example: extcli wait accumulate ratings --latest '{"stars": 5}'
    """
    return Condition("accumulate", buffer, {"count": count, "latest": _as_json(latest, "--latest"), "since": since})


Path = Annotated[str | None, option("--path POINTER", "A JSON pointer: /teams/0/score. Default: the whole store.")]
Equals = Annotated[str | None, option("--equals JSON", "The value to expect there. Default: any value.")]


def state(
    session: Session,
    scope: str = scope_argument(STATE),
    path: Path = None,
    equals: Equals = None,
    user: str = option("--user ID", "The user whose viewer store is read.", DEFAULT_USER),
    since: Since = None,
) -> Condition:
    """Wait for a state store to have a value.

    With --since, the store must also have been written after that mark.

    Example: extcli wait state channel --path /round --equals 4
    """
    wanted = _value_parameters(path, equals, since)
    return Condition("store", STATE[scope].path, {**wanted, "user": user if "viewer" in scope else None})


def store_config(
    session: Session, scope: str = scope_argument(CONFIG), path: Path = None, equals: Equals = None, since: Since = None
) -> Condition:
    """Wait for a config store to have a value.

    With --since, the store must also have been written after that mark.

    Example: extcli wait store-config channel --path /theme --equals dark
    """
    return Condition("store", CONFIG[scope].path, _value_parameters(path, equals, since))


def json_store(
    session: Session,
    store: str = argument("ID", "The store's id.", "default"),
    path: Path = None,
    equals: Equals = None,
    since: Since = None,
) -> Condition:
    """Wait for a JSON store to have a value.

    With --since, the store must also have been written after that mark.

    Example: extcli wait json-store highscore --path /score --equals 4
    """
    return Condition("json_store", store, _value_parameters(path, equals, since))


def _value_parameters(path: str | None, equals: str | None, since: int | None) -> dict[str, Any]:
    return {"path": path, "equals": _as_json(equals, "--equals"), "since": since}


def pin(
    session: Session,
    event: str = argument("issued|used|revoked", "The event: a PIN is issued or used, or a link is revoked."),
    count: str | None = _count_option("Number of events"),
    since: Since = None,
) -> Condition:
    """Wait for a PIN to be issued or used, or a link to end.

    Example: extcli wait pin issued
    """
    return Condition("pin", event, {"count": count, "since": since})


def _count_condition(subject: str, things: str) -> Callable[..., Condition]:
    """Return the condition about how many things of a kind there are."""

    def condition(session: Session, count: str | None = _count_option("How many"), since: Since = None) -> Condition:
        return Condition(subject, "*", {"count": count, "since": since})

    condition.__doc__ = f"""Wait for {things}, by default for at least one.

    With --since, counts only what was added after the mark.

    Example: extcli wait {subject} --count 1
    """
    return condition


def broadcast(
    session: Session,
    event: str = argument("EVENT", "The event's name."),
    count: str | None = _count_option("Number of broadcasts"),
    since: Since = None,
) -> Condition:
    """Wait for broadcasts of an event, by default for at least one broadcast.

    Whispers and broadcasts to any target count too.

    Example: extcli wait broadcast round --count 1
    """
    return Condition("broadcast", event, {"count": count, "since": since})


@with_journal_filters
def journal(
    session: Session,
    endpoint: str = argument("ENDPOINT", "Such as POST /v1/e/vote, /v1/e/vote, a socket action or a topic.", "*"),
    count: str | None = _count_option("Number of entries"),
    since: int | None = option("--since NUMBER", "Count only entries after this number, as `extcli logs` shows it."),
    *,
    query: dict[str, str | None],
) -> Condition:
    """Wait for entries of the journal, by default for at least one entry.

    All channels and extensions count, unless you pass --channel or --client-id. Entries
    that the journal has already dropped do not count.

    \b
    Examples:
      extcli wait journal 'POST /v1/e/vote' --status 200 --count 1
      extcli wait journal --status 5xx --count =0
    """
    return Condition("journal", endpoint, {**query, "count": count, "since": since}, has_scope=False)


def sockets(
    session: Session,
    topic: str = argument("TOPIC", "A topic such as poll:ID, or `page`, or `connected`; see above.", "connected"),
    count: str | None = _count_option("Number of sockets"),
) -> Condition:
    """Wait for open sockets or for subscribers of a topic, by default for at least one.

    The topics of games are poll:ID, event:NAME, state:channel, state:extension, config:channel,
    config:extension, authentication, transaction and datastream. `page` counts the pages of the
    channel, and `connected` counts all connections.

    Example: extcli wait sockets page --count 1
    """
    return Condition("sockets", topic, {"count": count})


CONDITIONS: Mapping[str, Callable[..., Condition]] = {
    "poll": poll,
    "rank": rank,
    "accumulate": accumulate,
    "state": state,
    "store-config": store_config,
    "json-store": json_store,
    "pin": pin,
    "link": _count_condition("link", "channels that games are linked to"),
    "trivia": _count_condition("trivia", "trivia questions of the extension"),
    "purchase": _count_condition("purchase", "outstanding purchases of a channel"),
    "sockets": sockets,
    "broadcast": broadcast,
    "journal": journal,
}


def _as_json(text: str | None, option: str) -> str | None:
    return None if text is None else compact(parse_json_or_text(text, option))
