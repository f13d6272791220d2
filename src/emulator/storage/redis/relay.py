"""Messages between processes, by Redis's publish and subscribe, on one channel for each namespace.

Messages that are published while the subscription is lost are not delivered.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any

from redis.asyncio.client import PubSub

from emulator.core.keys import Key
from emulator.storage.redis.client import TIMEOUT, Script, connect, engine_errors
from emulator.storage.redis.keys import USER_LAST
from emulator.storage.shapes import Relay

RETRY_AFTER = 0.3
"""Seconds between two attempts to subscribe."""
PING_AFTER = 5.0
"""Seconds without a message after which Redis is pinged."""
_log = logging.getLogger("emulator.engines")


class RedisRelay(Relay):
    is_local = False

    def __init__(self, namespace: Script, url: str, channel: str) -> None:
        self._namespace = namespace
        self._url = url
        self._channel = channel
        self._sender = uuid.uuid4().bytes
        self._task: asyncio.Task[None] | None = None

    async def publish(self, topic: Key, message: bytes) -> None:
        name = USER_LAST.text(topic).encode()
        packet = b"".join((self._sender, len(name).to_bytes(4, "big"), name, message))
        await self._namespace.run("publish", self._channel, packet)
        self._deliver(topic, message)

    async def open(self) -> None:
        """Close it also if this fails."""
        subscribed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._receive(subscribed))
        with engine_errors():
            await subscribed

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _deliver(self, topic: Key, message: bytes) -> None:
        for deliver in self._listeners:
            deliver(topic, message)

    async def _receive(self, subscribed: asyncio.Future[None]) -> None:
        """Deliver messages until cancelled. Ends if the first subscription fails, with its error in `subscribed`."""
        is_failing = False
        while True:
            try:
                async with asyncio.timeout(TIMEOUT) as limit, await connect(self._url) as redis:
                    subscription = redis.pubsub()
                    await subscription.subscribe(self._channel)
                    await subscription.get_message(timeout=None)  # the confirmation
                    limit.reschedule(None)
                    if not subscribed.done():
                        subscribed.set_result(None)
                    if is_failing:
                        _log.info("receiving messages from other processes again")
                    is_failing = False
                    while True:
                        message = await _next_message(subscription)
                        if message["type"] == "message":
                            self._deliver_packet(message["data"])
            except Exception as error:  # after any error it must try again, or messages would be lost from then on
                if not subscribed.done():
                    subscribed.set_exception(error)
                    return
                if not is_failing:
                    reason = str(error) or "Redis does not answer"
                    _log.warning("cannot receive messages from other processes: %s", reason)
                is_failing = True
            await asyncio.sleep(RETRY_AFTER)

    def _deliver_packet(self, packet: bytes) -> None:
        if packet[:16] == self._sender:
            return
        start = 20 + int.from_bytes(packet[16:20], "big")
        try:
            topic = USER_LAST.parse(packet[20:start])
        except (ValueError, TypeError):
            _log.warning("ignored a message of another program on the Redis channel %r", self._channel)
        else:
            self._deliver(topic, packet[start:])


async def _next_message(subscription: PubSub) -> Any:
    """Return the next message, also of another type. Raises `TimeoutError` if Redis does not reply to a ping."""
    message = await subscription.get_message(timeout=PING_AFTER)
    if message is None:
        await subscription.ping()
        message = await subscription.get_message(timeout=PING_AFTER)
    if message is None:
        raise TimeoutError
    return message
