"""The links stored on this machine: a refresh token per service, client id and channel. No access token is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import msgspec
import platformdirs

from extcli import atomic_file
from extcli.errors import UsageError

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

    def prepare(self) -> None:
        """Raise `UsageError` if links cannot be stored. Call it before a PIN is used up."""
        with self._changing():
            pass

    def add(self, link: Link) -> None:
        """Store a link. A stored link with its key is replaced."""
        with self._changing() as links:
            links[link.key] = link

    def renew(self, link: Link, refresh: str, until: int | None) -> None:
        """Replace the refresh token of a link, unless another process has replaced or deleted the link."""
        with self._changing() as links:
            if links.get(link.key) == link:
                links[link.key] = replace(link, refresh=refresh, until=until)

    def delete(self, link: Link, *, even_if_newer: bool = False) -> None:
        """Delete a link. If another process has stored a newer token for it, the link stays, unless `even_if_newer`."""
        with self._changing() as links:
            stored = links.get(link.key)
            if stored and (even_if_newer or stored.refresh == link.refresh):
                del links[link.key]

    @contextmanager
    def _changing(self) -> Iterator[dict[Key, Link]]:
        """Yield the links, and write them when the block ends if it has changed them. Raises `UsageError`."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise self._unusable(error) from None
        with atomic_file.edit_lock(self.path):
            before = self._read()
            after = dict(before)
            yield after
            if after != before:
                text = json.dumps({"links": [asdict(link) for link in after.values()]}, indent=2)
                atomic_file.replace_text(self.path, f"{text}\n", keep_mode=False)

    def _read(self) -> dict[Key, Link]:
        try:
            links = msgspec.json.decode(self.path.read_bytes(), type=dict[str, list[Link]])["links"]
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise self._unusable(error) from None
        except (msgspec.MsgspecError, KeyError, RecursionError):
            # The cause is not chained, as it could quote a token.
            fix = "repair it, or delete it and link again with `extcli pin login`"
            raise UsageError(f"{self.path} is damaged", fix=fix) from None
        return {link.key: link for link in links}

    def _unusable(self, error: OSError) -> UsageError:
        fix = "set EXTCLI_STATE_DIR to a directory that you can write"
        return UsageError(f"cannot store links in {self.directory}", why=error.strerror or "", fix=fix)
