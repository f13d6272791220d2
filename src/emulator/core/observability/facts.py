"""What services notice about names and records in a request: facts for `hints.py` and `parity.py`.

Those judge a request once it has its response, so a service needs neither.
"""

from __future__ import annotations

from emulator.core.keys import Key
from emulator.core.observability.request_context import current_request

NAMED = "named"
"""The request names this id, outside its query."""
ABSENT = "absent"
"""Nothing is stored under this key."""
NEW = "new"
"""Something is stored under this key for the first time."""
UNHEARD = "unheard"
"""Nothing listens to this event."""
UNSENT = "unsent"
"""A socket listens to this event, which need not have been sent before."""
DEFAULT_EVENT = "default event"
"""The request names no event, so it sends this one."""

READ = "read"
"""A record that the request reads, if it has not expired."""
READ_ALL = "read all"
"""The request reads all records of the kind and owner of this key."""
CHANGED = "changed"
"""A record of which the request has changed a part."""
REPLACED = "replaced"
"""A record that the request has replaced as a whole."""

CLIENT = "client id"
"""The kind of the key of a client id."""

_MAX_FACTS = 10_000
"""Facts of one request, about. A stream may go on for days."""


def notice(fact: str, *keys: Key) -> None:
    """Note a fact about each of these keys in the current request. Outside requests, do nothing."""
    context = current_request.get()
    if context is not None and context.id and len(context.facts) < _MAX_FACTS:
        for key in keys:
            context.facts[fact, key] = None
