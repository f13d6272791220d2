"""Hints about names that are probably misspelt: for the journal, and for the header `X-Emulator-Hint`.

Only the sandbox gives hints, and they never change a body (ruling W4). Services `notice` the names that they do not
have, or have for the first time. `Hints` looks for similar ones once the request has its response, so the usual request
pays nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from emulator.core.bounded_cache import BoundedCache
from emulator.core.callers import EXTENSION_WRITERS, Caller, Role
from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.core.observability.facts import ABSENT, CLIENT, DEFAULT_EVENT, NAMED, NEW, UNHEARD, UNSENT
from emulator.core.observability.request_context import RequestContext

_SIMILARITY = 0.8
"""The share of characters that two words have in common, in order, if one may be a misspelling of the other."""
_SHORTEST_WORD = 4
"""Characters of a word that may be misspelt: `rock` and `rack` differ on purpose."""
_MAX_NAME_LENGTH = 64
_MAX_ID_LENGTH = 300
"""Characters of an id that are searched for a placeholder."""
_PLACEHOLDER = re.compile(
    r"(?:^|.*[-_.:/ (])U?(?:undefined|null|NULL|NaN|None|nil)(?:[-_.:/ )].*|$)"  # an empty variable, in text
    r"|.*(?:\[object \w+\]|\{.*\}|<.+>|\$\(.+\)|%\w+%|%\(\w+\)s)"  # anywhere
    r"|(?:\[[A-Za-z_ -]+\]|%[a-z]|:[A-Za-z_]+|\$[A-Z][A-Z0-9_]+|\$\w*[iI][dD]"
    r"|(?i:(?:your[-_ ]?)?(?:client|channel|user|poll|broadcaster|extension|app)[-_ ]?id"
    r"|your[-_ ]?(?:\w+[-_ ])?(?:id|here)|x{3,32}|change[-_]?me|placeholder))$",
    re.DOTALL,
)
_MAX_CLIENTS = 200

_KIND_NAMES = {"rank": "ranking", "accumulate": "buffer", "json_store": "JSON store"}
"""The words for kinds of keys, where they are not the kinds themselves."""

_HINT_TEXTS = {
    ABSENT: "there is no {what} {name}; did you mean {near}?",
    NEW: "{name} is a new {what}; did you mean {near}?",
    UNHEARD: "nothing listens to {name}; did you mean {near}?",
    UNSENT: "no event {name} has been sent yet; did you mean {near}?",
}
_FACTS_WITH_HINTS = frozenset({NAMED, DEFAULT_EVENT, *_HINT_TEXTS})

ReadNames = Callable[[Key], Awaitable[Iterable[str]]]
"""Returns names that are in use where the name of this key is."""


@lru_cache(maxsize=4096)
def _words_and_digits(name: str) -> tuple[list[str], list[str]]:
    folded = name.casefold()
    return re.findall(r"[^\W\d_]+", folded), re.findall(r"\d+", folded)


def is_misspelling(name: str, other: str) -> bool:
    """Whether one of two names may be a misspelling of the other. Names that differ in digits are numbered on purpose.

    Two names are compared word by word: `team-red` and `team-blue` differ on purpose.
    """
    if name == other or max(len(name), len(other)) > _MAX_NAME_LENGTH:
        return False
    (words, digits), (others, other_digits) = _words_and_digits(name), _words_and_digits(other)
    if digits != other_digits:
        return False
    if "".join(words) == "".join(others):
        return True
    if len(words) != len(others):
        return False
    for word, second in zip(words, others, strict=True):
        if word == second:
            continue
        if min(len(word), len(second)) < _SHORTEST_WORD or SequenceMatcher(None, word, second).ratio() < _SIMILARITY:
            return False
    return True


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the first name of which this one may be a misspelling; empty if there is none."""
    length, letters = len(name), set(name.casefold())
    first, last = name[:1].casefold(), name[-1:].casefold()
    for other in known:  # most names end at one of the first checks: comparing texts takes microseconds
        if abs(len(other) - length) > 2:
            continue
        if other[:1].casefold() != first and other[-1:].casefold() != last:
            continue
        if len(letters ^ set(other.casefold())) > 2 * 2:  # two other characters on each side
            continue
        if is_misspelling(name, other):
            return other
    return ""


@lru_cache(maxsize=4096)  # the channel, and the ids of a poll's voters, come again and again
def placeholder_hint(what: str, text: str) -> str:
    """Return the hint about an id that is probably a variable without a value, or a template that was not filled."""
    if text[1:].isdigit() or not _PLACEHOLDER.match(text[:_MAX_ID_LENGTH]):  # most ids are numbers; the pattern is slow
        return ""
    return f"the {what} {text[:_MAX_NAME_LENGTH]} looks like a placeholder; replace it with the value"


@dataclass(eq=False, repr=False)
class Hints:
    """The hints of one service, which judge each request once it has its response."""

    _read_names: Mapping[str, ReadNames]
    """Reads, by fact, the names among which a similar one is looked for."""
    _registered: Callable[[], Collection[str]]
    """Returns the client ids of the extensions file; none without a file."""
    _: KW_ONLY
    is_on: bool
    """Whether this service gives hints."""

    def __post_init__(self) -> None:
        self.clients: BoundedCache[str, tuple[int, str]] = BoundedCache(_MAX_CLIENTS)
        """How many tokens each client id has brought, and the hint about it."""

    async def judge_request(self, context: RequestContext) -> None:
        """Give a request the hint about its token or client id; if there is none, about the names that it met."""
        if found := self._caller_hint(context):
            context.hint = ""
            context.give_hint(found)
        for fact, key in context.facts:
            if fact in _FACTS_WITH_HINTS and not context.hint:
                what = _KIND_NAMES.get(key.kind, key.kind)
                context.give_hint(placeholder_hint(what, key.name) or await self._fact_hint(fact, what, key))

    def judge_query(self, context: RequestContext, caller: Caller, query: Mapping[str, str]) -> None:
        """Give a hint about a placeholder among the ids of a query, or a channel that is ignored."""
        for name, value in query.items():
            if name.endswith("id"):
                context.give_hint(placeholder_hint(f"parameter {name}", value))
        channel_id, own = query.get("channel_id"), caller.channel_id or ""
        if channel_id not in (None, own) and not caller.spans_channels:
            others = " and ".join(role for role in Role if role in EXTENSION_WRITERS)
            where = f"the role {caller.role} acts in the channel of its token, {own or 'but the token has none'}"
            context.give_hint(f"channel_id={channel_id} is ignored: {where}; only {others} may choose a channel")

    async def _fact_hint(self, fact: str, what: str, key: Key) -> str:
        """Return the hint that a fact is; empty if it needs a similar name, and there is none."""
        if fact == DEFAULT_EVENT:
            return f"the request names no event, so the service sent the event {key.name}"
        if fact in _HINT_TEXTS:
            with suppress(EngineError):  # the request has its response
                names = dict.fromkeys(await self._read_names[fact](key))
                if (fact == NEW or key.name not in names) and (near := nearest(key.name, names)):
                    return _HINT_TEXTS[fact].format(what=what, name=key.name, near=near)
        return ""

    def _caller_hint(self, context: RequestContext) -> str:
        """Return the hint about a token or a client id; empty if there is none."""
        caller = context.caller
        named = ""
        for _, key in context.facts:  # a generator would take three times as long
            if key.kind == CLIENT:
                named = key.name
                break
        client_id = named or (caller.client_id if caller else "")
        count, found = self.clients.get(client_id) or (0, "")
        if named or (client_id and not count):
            found = placeholder_hint("client id", client_id) or self._unknown_client_hint(client_id, count)
            if caller is not None:
                self.clients[client_id] = count + 1, found
        if caller is None:
            return found
        return (
            caller.hint
            or found
            or placeholder_hint("channel", caller.channel_id or "")
            or placeholder_hint("user id", caller.user_id or "")
            or placeholder_hint("opaque user id", caller.opaque_id)
        )

    def _unknown_client_hint(self, client_id: str, count: int) -> str:
        """Return the hint about a client id that has sent `count` tokens.

        If extensions are registered, any other client id is unknown. Otherwise the client id that has sent fewer tokens
        is.
        """
        known = self._registered()
        if not known:
            known = [each for each, (other, _) in self.clients.items() if other > count]
        near = "" if client_id in known else nearest(client_id, known)
        return f"the client id {client_id} is not known; did you mean {near}?" if near else ""
