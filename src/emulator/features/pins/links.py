"""The links of channels. The tokens of games depend on them; a revocation or a retired secret ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from emulator.auth.refusals import ended_link
from emulator.auth.tokens import Tokens
from emulator.callers import Caller, Grant
from emulator.changes import Change, Commits
from emulator.clock import Clock
from emulator.engines.shapes import Documents, Key
from emulator.errors import ServiceError
from emulator.features.pins.rules import LINK_LIFETIME, Link, LinksRecord, link_key
from emulator.ids import NewId
from emulator.wire import json_codec


class Links:
    """The links of all channels. Each belongs to the secret that admitted it, and ends with it."""

    def __init__(self, documents: Documents, clock: Clock, tokens: Tokens, commits: Commits, new_id: NewId) -> None:
        self._documents = documents
        self._clock = clock
        self._tokens = tokens
        self._commits = commits
        self._new_id = new_id

    async def current(self, client_id: str, channel_id: str) -> list[Link]:
        """Return the channel's links that have not ended."""
        key, now = link_key(client_id, channel_id), self._clock.now()
        links = _unexpired((await self._documents.read([key], now=now)).get(key), now)
        return [link for link in links if self._tokens.is_admitted(client_id, link.grant)]

    async def find(self, client_id: str, channel_id: str, link_id: str) -> Link | None:
        """Return a link that has not ended, by its id."""
        return next((link for link in await self.current(client_id, channel_id) if link.id == link_id), None)

    async def of(self, caller: Caller, channel_id: str, *, use: bool = False) -> Link:
        """Return the link that the caller's token names.

        For a token that the extension signed, return the channel's link, created if missing. Raises `Unauthorized` if
        the token names a link that has ended.
        """
        return await self.renew(caller.client_id, channel_id, caller.grant, ended_link, use=use)

    async def renew(
        self, client_id: str, channel_id: str, grant: Grant, error: Callable[[], ServiceError], *, use: bool = True
    ) -> Link:
        """Restart the lifetime of the link that `grant` names.

        If it names none, use the link of its secret, created if missing.
        Raises `error` if the named link has ended. `use` records that a token was issued for it.
        """
        key, now = link_key(client_id, channel_id), self._clock.now()
        new = Link(self._new_id(), grant.secret, now, now + LINK_LIFETIME)

        def change(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            links = _unexpired(found.get(key), now)
            link = self._find(client_id, links, grant)
            if link is None:
                if grant.link:
                    raise error()
                link = new
                # Other secrets' links stay: a process that has not reloaded yet may not know those secrets.
                links = [*(each for each in links if each.secret != new.secret), new]
            link.until, link.is_used = now + LINK_LIFETIME, link.is_used or use
            return {key: json_codec.encode(LinksRecord(links))}

        written = await self._documents.update([key], change, now=now, expires_at=now + LINK_LIFETIME)
        link = self._find(client_id, _unexpired(written[key], now), grant)
        if link is None:  # the secret was retired during the write
            raise error()
        if link.id == new.id:
            await self._commits.committed(Change(key, "linked", at=now))
        return link

    async def end(self, client_id: str, channel_id: str) -> bool:
        """End all links of a channel, with their PINs, PIN tokens and refresh tokens.

        Return whether the channel had a link.
        """
        key = link_key(client_id, channel_id)
        ended = await self._documents.drop([key], now=self._clock.now()) > 0
        if ended:
            await self._commits.committed(Change(key, "cleared"))
        return ended

    def _find(self, client_id: str, links: Iterable[Link], grant: Grant) -> Link | None:
        for link in links:
            is_it = link.id == grant.link if grant.link else link.secret == grant.secret
            if is_it and self._tokens.is_admitted(client_id, link.grant):
                return link
        return None


def _unexpired(text: bytes | None, now: int) -> list[Link]:
    links = [] if text is None else msgspec.json.decode(text, type=LinksRecord).links
    return [link for link in links if now < link.until]
