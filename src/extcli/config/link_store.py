"""The links kept on this machine: a refresh token per service, client id and channel. Access tokens are never kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import filelock
import platformdirs

from extcli.errors import CliError, UsageError

_LOCKED_SECONDS = 10.0
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600


@dataclass(frozen=True, slots=True)
class Link:
    """That this machine may act for a channel, until its refresh token ends."""

    service: str
    """The URL of the service."""
    socket: str
    """The address that handed the token out, and the only one that it may be sent to."""
    client_id: str
    channel_id: str
    refresh: str = field(repr=False)
    since: int
    """When the PIN was entered, in ms."""
    until: int | None = None
    """When the refresh token ends, in ms, if it says so."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Of two links of one place the later one counts."""
        return self.service, self.client_id, self.channel_id


class LinkStore:
    """The file of links. What changes it takes a lock, so that two shells lose nothing to each other."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory or platformdirs.user_state_path("extcli", appauthor=False)
        self.path = self.directory / "links.json"

    def all(self) -> list[Link]:
        """Every link, in the order of their places; none where nothing was ever kept."""
        return sorted(self._read().values(), key=lambda link: link.place)

    def find(self, *, service: str, socket: str, client_id: str, channel_id: str | None = None) -> list[Link]:
        """The links that would serve there; without a channel, those of all."""
        return [
            link
            for link in self.all()
            if (link.service, link.socket, link.client_id) == (service, socket, client_id)
            and channel_id in (None, link.channel_id)
        ]

    def prepare(self) -> None:
        """Raise `UsageError` now rather than when there is something to lose: that nothing can be kept here."""
        self._change(lambda links: None)

    def keep(self, link: Link) -> None:
        """Keep a new link, in the place of an older one."""

        def put(links: dict[tuple[str, str, str], Link]) -> None:
            links[link.place] = link

        self._change(put)

    def renew(self, link: Link, refresh: str, until: int | None) -> None:
        """Put a new refresh token in the place of the one it was had for.

        Nothing changes if that is not there any more: another process has linked anew, or forgotten the link.
        """

        def put(links: dict[tuple[str, str, str], Link]) -> None:
            if links.get(link.place) == link:
                links[link.place] = replace(link, refresh=refresh, until=until)

        self._change(put)

    def forget(self, link: Link, *, whatever: bool = False) -> None:
        """Drop a link, unless another process has a newer token in its place; `whatever` is there, with it."""

        def drop(links: dict[tuple[str, str, str], Link]) -> None:
            kept = links.get(link.place)
            if kept and (whatever or kept.refresh == link.refresh):
                del links[link.place]

        self._change(drop)

    def _change(self, change: Callable[[dict[tuple[str, str, str], Link]], None]) -> None:
        with self._usable():
            if not self.directory.exists():
                self.directory.mkdir(parents=True, exist_ok=True, mode=_DIRECTORY_MODE)
            lock = filelock.FileLock(self.directory / "links.lock", timeout=_LOCKED_SECONDS, mode=_FILE_MODE)
            with lock:
                before = self._read()
                after = dict(before)
                change(after)
                if after != before:
                    self._write(after)

    def _read(self) -> dict[tuple[str, str, str], Link]:
        with self._usable():
            try:
                text = self.path.read_bytes()
            except FileNotFoundError:
                return {}
        try:
            links = [_link_of(entry) for entry in json.loads(text)["links"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            # No cause is chained: it could quote a token.
            raise UsageError(
                f"{self.path} is damaged",
                why="it is not what extcli writes there",
                fix="mend it, or delete it and link again with `extcli pin login`",
            ) from None
        return {link.place: link for link in links}

    def _write(self, links: dict[tuple[str, str, str], Link]) -> None:
        """A reader finds the old file or the new one, and never a part."""
        text = json.dumps({"links": [asdict(link) for link in links.values()]}, indent=2)
        descriptor, name = mkstemp(prefix=".links-", dir=self.directory)  # with mode 0600
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(f"{text}\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except filelock.Timeout:
            fix = "wait for the other extcli to end, or end it"
            raise CliError(f"{self.path} is in use by another extcli for too long", fix=fix) from None
        except OSError as error:
            raise UsageError(
                f"no links can be kept in {self.directory}",
                why=error.strerror or "",
                fix="set EXTCLI_STATE_DIR to a directory of yours",
            ) from None


def _link_of(entry: Any) -> Link:
    link = Link(**{each.name: entry[each.name] for each in fields(Link) if each.name in entry})
    texts = (link.service, link.socket, link.client_id, link.channel_id, link.refresh)
    until = 0 if link.until is None else link.until
    if not all(isinstance(text, str) for text in texts) or not all(type(at) is int for at in (link.since, until)):
        raise TypeError
    return link
