"""The links stored on this machine: a refresh token per service, client id and channel. No access token is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import filelock
import msgspec
import platformdirs

from extcli import atomic_file
from extcli.errors import UsageError

_LOCK_SECONDS = 10.0
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Link:
    """A stored link: the right to act for a channel until the refresh token expires."""

    service: str
    """The URL of the service."""
    socket: str
    """The WebSocket address that issued the refresh token. It is sent nowhere else."""
    client_id: str
    channel_id: str
    refresh: str = field(repr=False)
    since: int
    """When the PIN was exchanged, in Unix ms."""
    until: int | None = None
    """When the refresh token expires, in Unix ms; `None` if it has no `exp`."""

    @property
    def key(self) -> Key:
        """The key of a link: service, client id and channel. A new link replaces a stored one with its key."""
        return self.service, self.client_id, self.channel_id


class LinkStore:
    """The file of links. A lock makes changes by several processes safe."""

    def __init__(self, directory: Path | None) -> None:
        """`directory` defaults to the platform's directory for state."""
        self.directory = directory or platformdirs.user_state_path("extcli", appauthor=False)
        self.path = self.directory / "links.json"

    def all(self) -> list[Link]:
        """Return every link, in the order of their keys."""
        return sorted(self._read().values(), key=lambda link: link.key)

    def find(self, *, service: str, socket: str, client_id: str, channel_id: str | None = None) -> list[Link]:
        """Return the links to a channel, or to all channels."""
        return [
            link
            for link in self.all()
            if (link.service, link.socket, link.client_id) == (service, socket, client_id)
            and channel_id in (None, link.channel_id)
        ]

    def prepare(self) -> None:
        """Raise `UsageError` if links cannot be stored. Call it before a PIN is used up."""
        self._change(lambda links: None)

    def add(self, link: Link) -> None:
        """Store a link. A stored link with its key is replaced."""

        def put(links: dict[Key, Link]) -> None:
            links[link.key] = link

        self._change(put)

    def renew(self, link: Link, refresh: str, until: int | None) -> None:
        """Replace the refresh token of a link, unless another process has replaced or deleted the link."""

        def put(links: dict[Key, Link]) -> None:
            if links.get(link.key) == link:
                links[link.key] = replace(link, refresh=refresh, until=until)

        self._change(put)

    def delete(self, link: Link, *, even_if_newer: bool = False) -> None:
        """Delete a link. If another process has stored a newer token for it, the link stays, unless `even_if_newer`."""

        def drop(links: dict[Key, Link]) -> None:
            stored = links.get(link.key)
            if stored and (even_if_newer or stored.refresh == link.refresh):
                del links[link.key]

        self._change(drop)

    def _change(self, change: Callable[[dict[Key, Link]], None]) -> None:
        with self._translate_errors():
            if not self.directory.exists():
                self.directory.mkdir(parents=True, exist_ok=True, mode=_DIRECTORY_MODE)
            lock = filelock.FileLock(self.directory / "links.lock", timeout=_LOCK_SECONDS, mode=_FILE_MODE)
            with lock:
                before = self._read()
                after = dict(before)
                change(after)
                if after != before:
                    text = json.dumps({"links": [asdict(link) for link in after.values()]}, indent=2)
                    atomic_file.replace(self.path, f"{text}\n", keep_mode=False)

    def _read(self) -> dict[Key, Link]:
        with self._translate_errors():
            try:
                text = self.path.read_bytes()
            except FileNotFoundError:
                return {}
        try:
            links = msgspec.json.decode(text, type=dict[str, list[Link]])["links"]
        except (msgspec.MsgspecError, KeyError, RecursionError):
            # The cause is not chained, as it could quote a token.
            raise UsageError(
                f"{self.path} is damaged",
                why="it does not have the format that extcli writes",
                fix="repair it, or delete it and link again with `extcli pin login`",
            ) from None
        return {link.key: link for link in links}

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except filelock.Timeout:
            raise UsageError(
                f"{self.path} has been locked for {_LOCK_SECONDS:g} s",
                fix="wait for the other extcli to end, or end it",
            ) from None
        except OSError as error:
            raise UsageError(
                f"cannot store links in {self.directory}",
                why=error.strerror or "",
                fix="set EXTCLI_STATE_DIR to a directory that you can write",
            ) from None
