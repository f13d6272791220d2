"""The journal of one service: its latest responses, socket frames and deliveries. Only the sandbox has one.

It is a ring. All rings of a process share one budget of bytes. No token, PIN, code or secret enters it:
`observability/masking.py` removes them before `add`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from operator import attrgetter
from sys import getsizeof
from typing import ParamSpec

from msgspec import Struct

from emulator.core.callers import Caller
from emulator.core.changes import Watchable
from emulator.core.clock import Clock
from emulator.core.errors import Facts, Forbidden, Refused, refusal

P = ParamSpec("P")
HIDDEN = "[hidden]"
"""Stands for a secret."""
MAX_BODY = 4 * 1024
"""Bytes of a body that an entry keeps."""
_ENTRY_OVERHEAD = 900
"""Bytes that an entry takes besides its texts, with a caller of its own: measured."""

_FREED_SHARE = 64
"""The share of a full budget that is freed at once."""

REQUEST = "request"
"""The kind of a response to an HTTP request."""
FRAME = "frame"
"""The kind of a reply to a message that came over a socket."""
CLOSE = "close"
"""The name of the last frame of a socket that the service closes because of an error or a limit."""
DELIVERY = "delivery"
"""The kind of a message to the subscribers of a topic."""


@refusal(Forbidden, "No journal", "docs: Journal", "The service keeps no journal",
         "Start `extcli serve` without --journal 0.")  # fmt: skip
def no_journal() -> Facts:
    return Facts("the service keeps no journal: it runs with --journal 0", "a service with --journal 0", "a journal")


def is_probe(request_id: str) -> bool:
    """Return whether a request is a probe: one that a tool makes for its own purposes, not for its user's."""
    return request_id.startswith("probe-")


class Entry(Struct, gc=False):  # without references to other containers, the garbage collector need not visit them
    """One response, reply or delivery."""

    kind: str
    at: int
    """Unix ms by the service's clock, when it was complete. Set by `Journal.add`."""
    offset: int
    """Milliseconds that this clock was ahead of the system time. Set by `Journal.add`."""
    id: str = ""
    """The request id; of a frame, with the number of the frame after a slash."""
    caller: Caller | None = None
    name: str = ""
    """The method and the declared path of an endpoint, the action of a frame, or the topic of a delivery."""
    path: str = ""
    """The path and query as sent, without secrets; of a delivery, the client id and channel of the topic, joined by a
    slash."""
    status: int = 0
    """The status of the response; of a close, its code."""
    seconds: float = 0.0
    request: bytes = b""
    """The first `MAX_BODY` bytes of what was sent."""
    request_size: int = 0
    """Bytes of the whole."""
    response: bytes = b""
    """The first `MAX_BODY` bytes of the response, or of what was delivered."""
    response_size: int = 0
    """Bytes of the whole; 0 if it was streamed."""
    reason: str = ""
    """The reason of a refusal, as `ServiceError.reason`."""
    detail: str = ""
    """Its explanation, as `ServiceError.detail`."""
    production: str = ""
    """The verdict of production: the header `X-Emulator-Production`; empty if its response is the same."""
    recipients: str = ""
    """The first recipients of a delivery, one per line."""
    delivered: int = 0
    dropped: int = 0
    """Recipients whose connection was closed, or has more unread than it may."""
    socket: int = 0
    """The number of the socket of a frame."""
    fault: str = ""
    """The id of the fault that acted on it; empty if none did."""
    hint: str = ""
    """What the caller probably meant: the header `X-Emulator-Hint`; empty if nothing is known."""
    number: int = 0
    """Its mark: later entries have higher ones. Set by `Journal.add`."""

    refused: Refused | None = None
    """Why it was refused, if a declared refusal did, without secrets."""
    size: int = 0
    """The bytes that it takes, about. Set by `Journal.add`."""

    @property
    def is_probe(self) -> bool:
        """Whether the entry belongs to a probe: a request that a tool made for itself. Listings leave probes out."""
        return is_probe(self.id)


class JournalBudget:
    """The bytes that all journals of a process may take together.

    Beyond the budget, the largest journal loses its oldest entries. So a quiet namespace keeps its latest entries next
    to a busy one.
    """

    def __init__(self, max_size: int) -> None:
        """`max_size` is in bytes; 0 keeps no entries."""
        self.max_size = max_size
        self.size = 0
        self._journals: set[Journal] = set()
        """Those with entries."""

    def set_journal_size(self, journal: Journal, size: int) -> None:
        """Record that the entries of a journal now take `size` bytes."""
        self.size += size - journal.size
        journal.size = size
        (self._journals.add if size else self._journals.discard)(journal)

    def make_room(self) -> None:
        """Remove the oldest entries of the largest journal.

        They are a little more than are over the budget, since there may be thousands of journals to compare.
        """
        largest = max(self._journals, key=attrgetter("size"))
        while largest.size and self.size > self.max_size - self.max_size // _FREED_SHARE:
            largest.forget_oldest()


class Journal(Watchable):
    """The latest entries, oldest first, as many as the budget leaves it."""

    def __init__(self, budget: JournalBudget, clock: Clock | None = None) -> None:
        super().__init__()
        self.clock = clock or Clock()
        self.budget = budget
        self.is_on = budget.max_size > 0
        """Whether entries are kept. Callers check it before they build one."""
        self.mark = 0
        """The number of the latest entry."""
        self.size = 0
        """Bytes of all entries, about. The budget sets it."""
        self._entries: deque[Entry] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Add an entry without secrets, at the present time, and forget old ones beyond the budget."""
        clock, budget = self.clock, self.budget
        entry.at, entry.offset = clock.now(), clock.offset
        self.mark = entry.number = self.mark + 1
        self._entries.append(entry)
        entry.size = size = _entry_size(entry)
        budget.set_journal_size(self, self.size + size)
        while budget.size > budget.max_size:
            budget.make_room()
        if self._watches:
            self.wake()

    def record(self, make: Callable[P, Entry], *args: P.args, **named: P.kwargs) -> None:
        """Add the entry that `make` returns for these arguments. Does nothing if no entries are kept."""
        if self.is_on:
            self.add(make(*args, **named))

    def since(self, mark: int, limit: int) -> list[Entry]:
        """Return up to `limit` kept entries after the one numbered `mark`, oldest first."""
        first = self.mark - len(self._entries) + 1
        start = max(mark + 1, first)
        end = min(self.mark + 1, start + limit)
        # An index costs a deque little at its ends, and a step per 64 entries elsewhere.
        return [self._entries[number - first] for number in range(start, end)]

    def find_number(self, number: str) -> list[Entry]:
        """Return the kept entry with this number, or none: also if the text is no number."""
        if not number.isdecimal() or len(number) >= 16:
            return []
        wanted = int(number)
        return [entry for entry in self.since(wanted - 1, 1) if entry.number == wanted]

    def newest(self, limit: int | None = None) -> list[Entry]:
        """Return up to `limit` kept entries, or all, newest first.

        It is a list, since a caller may wait for other work while it reads them, and new entries arrive meanwhile.
        """
        return list(islice(reversed(self._entries), limit))

    def count_lost_since(self, mark: int) -> int:
        """Return how many entries after the one numbered `mark` are no longer kept."""
        return max(0, self.mark - mark - len(self._entries))

    def clear(self) -> None:
        """Forget all entries, at a reset or when the service closes. Marks continue from their last number."""
        self._entries.clear()
        self.budget.set_journal_size(self, 0)

    def forget_oldest(self) -> None:
        """Forget the oldest entry. There must be one."""
        self.budget.set_journal_size(self, self.size - self._entries.popleft().size)


def _entry_size(entry: Entry) -> int:
    bodies = len(entry.request) + len(entry.response)
    texts = filter(None, (entry.detail, entry.hint, entry.recipients, *(entry.refused or ())))
    return _ENTRY_OVERHEAD + bodies + getsizeof(entry.path) + sum(map(getsizeof, texts))


NO_JOURNAL = Journal(JournalBudget(0))
