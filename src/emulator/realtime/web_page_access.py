"""Decides which topics a page may subscribe to, and until when (ruling B7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.keys import Key
from emulator.core.observability.metrics import Metrics
from emulator.core.scheduler import Callback, Scheduler
from emulator.realtime.refusals import no_credential, other_topic

WEB_PAGE: Final = "page"
"""The kind of the topics of pages."""
ANY_USER: Final = "\t"
"""The user of the topics with the whispers to every user. No user has this id: targets of whispers are printable."""


class Subscription(NamedTuple):
    """A page's subscription to one Pusher channel."""

    topics: tuple[Key, ...] = ()
    """The topic of the channel, then the topics of whispers; empty if the channel can carry no messages."""
    caller: Caller | None = None
    credential: str = ""
    """The credential that verified the caller."""


def pusher_topic(client_id: str, channel_id: str) -> Key:
    """The topic of an extension's pages in one channel, or in all channels if `channel_id` is empty."""
    return Key(WEB_PAGE, client_id, "", channel_id)


def whisper_topic(client_id: str, channel_id: str, *user_ids: str) -> Key:
    """Return the topic of whispers to one user, given by all ids of the user.

    Pages that receive all whispers also get it.
    """
    return pusher_topic(client_id, channel_id)._replace(user="\n".join([*user_ids, ANY_USER]))


@dataclass(eq=False, repr=False)
class PusherAccess:
    """The rights of all pages of a service."""

    verify: Callable[[str, str], Awaitable[Caller]]
    """Verifies `<client id> <JWT>` from a network address. Raises `ServiceError`."""
    is_open: bool
    """Whether pages need no credential, as in the sandbox."""
    _clock: Clock
    _scheduler: Scheduler
    _leeway: int
    """Ms for which an expired token is still accepted."""
    recorder: Metrics
    """Counts failures of storage."""

    def subscription(self, topic: Key | None, caller: Caller | None, credential: str) -> Subscription:
        """Return the access of a page to a topic. Raises `Unauthorized` and `Forbidden`.

        Without a caller, a page of the sandbox receives the whispers to every user.
        """
        if not self.is_open:
            if caller is None:
                raise no_credential()
            own = topic is not None and topic.owner == caller.client_id
            if topic is None or not own or topic.channel not in ("", caller.channel_id):
                raise other_topic()
        if topic is None:
            return Subscription((), caller, credential)
        users = [ANY_USER] if caller is None else sorted(filter(str.isprintable, caller.ids))
        return Subscription((topic, *(topic._replace(user=user) for user in users)), caller, credential)

    def has_expired(self, subscription: Subscription) -> bool:
        """Whether the token of a subscription has expired."""
        until = self._expiry_of_subscription(subscription)
        return until is not None and until <= self._clock.now()

    def watch(self, page: object, subscriptions: Any, callback: Callback) -> None:
        """Run `callback` when the first of a page's tokens expires. It replaces the page's earlier callback."""
        ends = [until for each in subscriptions if (until := self._expiry_of_subscription(each)) is not None]
        if ends:
            self._scheduler.schedule(page, min(ends), callback)
        else:
            self._scheduler.cancel(page)

    def _expiry_of_subscription(self, subscription: Subscription) -> int | None:
        caller = subscription.caller
        if caller is None or caller.expires_at is None:
            return None
        return caller.expires_at + self._leeway
