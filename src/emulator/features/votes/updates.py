"""When subscribers of polls are told how they stand: at most once a second each, and when one begins or ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from emulator.clock import Clock
from emulator.engines.base import Key
from emulator.features.votes.definitions import Definition, next_turn
from emulator.features.votes.standing import Standing
from emulator.realtime.publisher import Publisher
from emulator.scheduling.scheduler import Scheduler
from emulator.scheduling.throttle import Throttle

PAUSE: Final = 1.0
"""Seconds of real time between two updates of one poll. A move of the clock ends it."""
_DEFINED: Final = "poll_definition"


class PollUpdates:
    """Watches polls for subscribers of this node, and tells other nodes when one here has changed."""

    def __init__(
        self,
        standing: Callable[[Key], Awaitable[Standing | None]],
        definition: Callable[[Key], Awaitable[Definition | None]],
        publisher: Publisher,
        scheduler: Scheduler,
        clock: Clock,
    ) -> None:
        self._standing = standing
        self._definition = definition
        self._publisher = publisher
        self._scheduler = scheduler
        self._clock = clock
        self._showing = Throttle(self._show, PAUSE)
        self._notifying = Throttle(publisher.notify, PAUSE)
        self._arming = Throttle(self._arm_defined, 0.0)
        publisher.on_notice("poll", self._note)
        publisher.on_notice(_DEFINED, lambda key: self._arming.ask(key._replace(kind="poll")))

    def changed(self, poll: Key) -> None:
        """A vote was taken, or the poll was stopped."""
        if self._publisher.is_single_node:
            self._note(poll)
        else:
            self._notifying.ask(poll)

    async def defined(self, poll: Key, definition: Definition) -> None:
        """The poll has another definition, and so begins and ends at other times."""
        if self._publisher.is_single_node:
            self._arm(poll, definition)
        else:
            await self._publisher.try_notify(poll._replace(kind=_DEFINED))

    async def watched(self, poll: Key) -> None:
        """Somebody subscribes to this poll: they are to hear when it begins and ends."""
        await self._arm_defined(poll)

    def cleared(self, poll: Key) -> None:
        """The poll is gone; nobody hears of it any more."""
        self._scheduler.cancel(poll)

    async def clock_moved(self) -> None:
        """Tell at once what was to be told after a pause."""
        await self._showing.hurry()

    def forget(self) -> None:
        """All polls are gone."""
        for pace in (self._showing, self._notifying, self._arming):
            pace.forget()

    async def close(self) -> None:
        """Tell nothing more."""
        for pace in (self._showing, self._notifying, self._arming):
            await pace.close()

    def _note(self, poll: Key) -> None:
        if self._publisher.has_subscribers(poll):
            self._showing.ask(poll)

    async def _show(self, poll: Key) -> None:
        standing = await self._standing(poll)
        if standing is not None:
            self._publisher.publish_locally(poll, "poll", standing)

    async def _arm_defined(self, poll: Key) -> None:
        definition = await self._definition(poll)
        if definition is not None:
            self._arm(poll, definition)

    def _arm(self, poll: Key, definition: Definition) -> None:
        """Wake when the poll next begins or ends."""
        turn = next_turn(definition, now=self._clock.now())
        if turn is None:
            self._scheduler.cancel(poll)
            return

        async def act() -> None:
            self._note(poll)
            await self._arm_defined(poll)

        self._scheduler.set(poll, turn, act)
