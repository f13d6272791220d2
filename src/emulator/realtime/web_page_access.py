"""Decides which topics a page may subscribe to, and until when (ruling B7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.errors import ServiceError
from emulator.core.keys import NEVER, Key
from emulator.core.observability.metrics import Metrics, answerable
from emulator.core.scheduler import Callback, Scheduler
from emulator.realtime.refusals import no_credential, other_topic

WEB_PAGE: Final = "page"
"""The kind of the topics of pages."""
SUBSCRIBE: Final = "pusher:subscribe"
ANY_USER: Final = "\t"
"""The user of the topics with the whispers to every user. No user has this id: targets of whispers are printable."""


class Subscription(NamedTuple):
    """A page's subscription to one Pusher channel."""

    topics: tuple[Key, ...] = ()
    """The topic of the channel, then the topics of whispers; empty if the channel can carry no messages."""
    caller: Caller | None = None
    credential: str = ""
    """The credential that verified the caller."""
    ends_at: int = NEVER
    """When the caller's token expires, in Unix ms."""


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

    async def identify(self, credential: str, address: str) -> Subscription | ServiceError:
        """Return the caller that a page's credential identifies, or the error if the credential is invalid."""
        try:
            caller = await self.verify(credential, address)
        except ServiceError as error:
            return error
        except Exception as failure:  # else the page would get no reply
            return answerable(failure, SUBSCRIBE, self.recorder)
        ends_at = NEVER if caller.expires_at is None else caller.expires_at + self._leeway
        return Subscription((), caller, credential, ends_at)

    def subscription(self, topic: Key | None, bearer: Subscription) -> Subscription:
        """Return the access of a page to a topic. Raises `Unauthorized` and `Forbidden`.

        Without a caller, a page of the sandbox receives the whispers to every user.
        """
        caller = bearer.caller
        if not self.is_open:
            if caller is None:
                raise no_credential()
            own = topic is not None and topic.owner == caller.client_id
            if topic is None or not own or topic.channel not in ("", caller.channel_id):
                raise other_topic()
        if topic is None:
            return bearer
        users = [ANY_USER] if caller is None else sorted(filter(str.isprintable, caller.ids))
        return bearer._replace(topics=(topic, *(topic._replace(user=user) for user in users)))

    def has_expired(self, subscription: Subscription) -> bool:
        """Whether the token of a subscription has expired."""
        return subscription.ends_at <= self._clock.now()

    def watch(self, page: object, subscriptions: Iterable[Subscription], callback: Callback) -> None:
        """Run `callback` when the first of a page's tokens expires. It replaces the page's earlier callback."""
        ends_at = min((each.ends_at for each in subscriptions), default=NEVER)
        if ends_at < NEVER:
            self._scheduler.schedule(page, ends_at, callback)
        else:
            self._scheduler.cancel(page)
