"""Hints about names that are probably misspelt: for the journal, and for the header `X-Emulator-Hint`.

Only the sandbox gives hints, and they never change a body (ruling W4). A hint is looked for only where a response is
empty or refused, and where a name is used for the first time, so the usual request pays nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from emulator.core.bounded_cache import BoundedCache
from emulator.core.callers import EXTENSION_WRITERS, Caller, Role
from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.core.observability.request_context import give_hint

_SIMILAR: Final = 0.8
"""The share of characters that two words have in common, in order, if one may be a misspelling of the other."""
_SHORTEST: Final = 4
"""Characters of a word that may be misspelt: `rock` and `rack` differ on purpose."""
_LONGEST: Final = 64
_MAX_LENGTH: Final = 300
"""Characters of a hint."""
_PLACEHOLDER: Final = re.compile(
    r"(?:^|.*[-_.:/ (])U?(?:undefined|null|NULL|NaN|None|nil)(?:[-_.:/ )].*|$)"  # an empty variable, in text
    r"|.*(?:\[object \w+\]|\{.*\}|<.+>|\$\(.+\)|%\w+%|%\(\w+\)s)"  # anywhere
    r"|(?:\[[A-Za-z_ -]+\]|%[a-z]|:[A-Za-z_]+|\$[A-Z][A-Z0-9_]+|\$\w*[iI][dD]"
    r"|(?i:(?:your[-_ ]?)?(?:client|channel|user|poll|broadcaster|extension|app)[-_ ]?id"
    r"|your[-_ ]?(?:\w+[-_ ])?(?:id|here)|x{3,32}|change[-_]?me|placeholder))$",
    re.DOTALL,
)
_KEPT: Final = 100
"""Names that are kept of one kind, extension and channel."""
_GROUPS: Final = 500
_CLIENTS: Final = 200

_WHAT: Final = {"poll": "poll", "rank": "ranking", "accumulate": "buffer", "json_store": "JSON store"}
"""The words for the kinds of keys that have hints."""

_TRACKED: Final = ("poll",)
"""The kinds whose services report each new name, so that kept names are all there are."""

NamesOf = Callable[[Key], Awaitable[Iterable[str]]]
"""Returns names in use of the kind, extension and channel of a key."""


@lru_cache(maxsize=4096)
def _words_and_digits(name: str) -> tuple[list[str], list[str]]:
    folded = name.casefold()
    return re.findall(r"[^\W\d_]+", folded), re.findall(r"\d+", folded)


def is_misspelling(name: str, other: str) -> bool:
    """Whether one of two names may be a misspelling of the other. Names that differ in digits are numbered on purpose.

    Two names are compared word by word: `team-red` and `team-blue` differ on purpose.
    """
    if name == other or max(len(name), len(other)) > _LONGEST:
        return False
    (words, digits), (others, other_digits) = _words_and_digits(name), _words_and_digits(other)
    if digits != other_digits:
        return False
    if "".join(words) == "".join(others):
        return True
    pairs = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    return len(words) == len(others) and all(
        min(map(len, pair)) >= _SHORTEST and SequenceMatcher(None, *pair).ratio() >= _SIMILAR for pair in pairs
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the first name of which this one may be a misspelling; empty if there is none."""
    length, first, last, letters = len(name), name[:1].casefold(), name[-1:].casefold(), set(name.casefold())
    for other in known:
        if abs(len(other) - length) > 2 or (other[:1].casefold() != first and other[-1:].casefold() != last):
            continue  # most names end here: comparing texts takes microseconds
        if len(letters ^ set(other.casefold())) > 2 * 2:  # two other characters on each side
            continue
        if is_misspelling(name, other):
            return other
    return ""


def placeholder_hint(what: str, text: str) -> str:
    """Return the hint about an id that is probably a variable without a value, or a template that was not filled."""
    if text[1:].isdigit() or not _PLACEHOLDER.match(text[:_MAX_LENGTH]):  # most ids are numbers; the pattern is slow
        return ""
    return _safe(f"the {what} {text[:_LONGEST]} looks like a placeholder: put the value in its place")


def _safe(text: str) -> str:
    """Return a client's text in a form that a header can carry: cut to a limit, with escapes for unprintable
    characters.
    """
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text[:_MAX_LENGTH])


def hint(text: str) -> str:
    """Give the current request a hint, unless it has one; return it as it is shown."""
    shown = _safe(text)
    give_hint(shown)
    return shown


class Hints:
    """The hints of one service.

    It remembers names that requests used, and checks with `names_of` that a name still exists before it suggests it.
    """

    def __init__(self, names_of: NamesOf, registered: Callable[[], Iterable[str]], *, is_on: bool) -> None:
        """`registered` returns the client ids of the extensions file; none without a file."""
        self.is_on = is_on
        """Whether this service gives hints. If not, each method does nothing."""
        self._names_of = names_of
        self._registered = registered
        self._groups: BoundedCache[Key, dict[str, str]] = BoundedCache(_GROUPS)
        """A name for each spelling without digits, by kind, extension and channel."""
        self._clients: BoundedCache[str, int] = BoundedCache(_CLIENTS)
        """How many tokens each unregistered client id has brought."""

    def forget(self) -> None:
        """Forget all names: the data was replaced."""
        self._groups.clear()

    def forget_clients(self) -> None:
        """Forget the counted tokens, at a reset."""
        self._clients.clear()

    def placeholder(self, what: str, *texts: str | None) -> str:
        """Return the hint about the first of these ids that is a placeholder, and give it to the current request."""
        for text in texts if self.is_on else ():
            if found := placeholder_hint(what, text or ""):
                return hint(found)
        return ""

    def token_placeholder(self, caller: Caller) -> str:
        """Return the hint about a placeholder in a token, and give it to the current request; empty for none."""
        return (
            self.placeholder("channel", caller.channel_id)
            or self.placeholder("user id", caller.user_id)
            or self.placeholder("opaque user id", caller.opaque_id)
        )

    def query(self, caller: Caller, query: Mapping[str, str]) -> None:
        """Give a hint about a placeholder among the ids of a query, or a channel that is ignored."""
        for name, value in query.items():
            if name.endswith("id"):
                self.placeholder(f"parameter {name}", value)
        if "channel_id" in query and not caller.spans_channels:
            self.other_channel(caller, query["channel_id"])

    async def hint_if_absent(self, key: Key) -> None:
        """Give a hint if nothing is stored under this key, but something is stored under a similar key."""
        await self._hint_if_similar(key, "there is no {what} {name}; did you mean {near}?", is_new=False)

    async def new_name(self, key: Key) -> None:
        """Give a hint if this key is new, and a similar key exists."""
        await self._hint_if_similar(key, "{name} is a new {what}; did you mean {near}?", is_new=True)

    async def _hint_if_similar(self, key: Key, text: str, *, is_new: bool) -> None:
        what = _WHAT[key.kind]
        if not self.is_on or self.placeholder(what, key.name):
            return
        if near := await self._similar_name(key, is_new=is_new):
            hint(text.format(what=what, name=key.name, near=near))

    def know(self, key: Key) -> None:
        """Remember a name that is in use from now on, if names of its kind, extension and channel are remembered."""
        known = self._groups.get(key._replace(name="", user="")) if self.is_on else None
        if known is not None:
            _keep(known, key.name)
        self.placeholder(_WHAT[key.kind], key.name)

    async def _similar_name(self, key: Key, *, is_new: bool) -> str:
        group = key._replace(name="", user="")
        known = self._groups.get(group) if key.kind in _TRACKED else None
        with suppress(EngineError):  # the request has its response
            if known is None:
                names = await self._names_of(group)
                known = self._groups[group] = {}
                for name in names:
                    if name != key.name:
                        _keep(known, name)
            same = known.get(_spelling_of(key.name))
            if same == key.name:
                return ""
            near = nearest(key.name, known.values() if same is None else (same,))
            if is_new:
                _keep(known, key.name)
            if not near or near in await self._names_of(group):
                return near
            self._groups.pop(group)  # it has expired or was deleted
        return ""

    def event(self, event: str, others: Callable[[], Iterable[str]], what: str) -> None:
        """Give a hint if `others` lack an event, but contain a similar one.

        The hint says `what` before the similar name.
        """
        known = dict.fromkeys(others() if self.is_on else (event,))
        if not self.placeholder("event", event) and event not in known and (near := nearest(event, known)):
            hint(f"{what} {event}; did you mean {near}?")

    def default_event(self, event: str) -> None:
        """Give a hint that the request named no event, so that this default event was sent."""
        if self.is_on:
            hint(f"the request has no event, so it sent the event {event}")

    def client(self, client_id: str) -> str:
        """Return the hint about a client id, and give it to the current request; empty if there is none.

        If extensions are registered, any other client id is unknown. Otherwise the client id that has sent fewer tokens
        is.
        """
        if not self.is_on:
            return ""
        if found := self.placeholder("client id", client_id):
            return found
        registered = self._registered()
        if registered:
            near = "" if client_id in registered else nearest(client_id, registered)
        else:
            tokens = self._clients.get(client_id) or 0
            near = nearest(client_id, (each for each, count in self._clients.items() if count > tokens))
        return hint(f"the client id {client_id} is not known; did you mean {near}?") if near else ""

    def hint_wrong_key(self, words: str) -> str:
        """Give the current request the hint about the key of its token, and return it; empty if nothing is known."""
        return hint(words and f"the token is signed with {words}")

    def count_token(self, client_id: str) -> None:
        """Count a token that a request with this client id has sent."""
        if self.is_on:
            self._clients[client_id] = (self._clients.get(client_id) or 0) + 1

    def other_channel(self, caller: Caller, channel_id: str) -> None:
        """Give a hint if the request and the token name different channels, because most roles ignore it."""
        if self.is_on and channel_id != (caller.channel_id or ""):
            own = caller.channel_id or "which has none"
            others = " and ".join(role for role in Role if role in EXTENSION_WRITERS)
            where = f"the role {caller.role} acts in the channel of its token, {own}"
            hint(f"channel_id={channel_id} is ignored: {where}; only the roles {others} may name another")


def _spelling_of(name: str) -> str:
    """Return a name without digits and in lower case, for comparisons."""
    return re.sub(r"\d+", "", name).casefold()


def _keep(known: dict[str, str], name: str) -> None:
    """Remember a name, unless it differs from a remembered one only in digits and case."""
    if known.setdefault(_spelling_of(name), name) is name and len(known) > _KEPT:
        del known[next(iter(known))]
