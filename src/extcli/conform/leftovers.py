"""Removes what a probe wrote. Data that no call can remove expires: buffers, empty stores, users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from extcli.conform.calls import Caller, Reply
from extcli.conform.target import PREFIX
from extcli.errors import CliError

STORES = {
    "config/channel": "channel_config",
    "config/extension": "extension_config",
}
VIEWER_STORES = ("viewer_state", "extension_viewer_state")
CHANNEL_STORES = ("channel_state", "channel_config")
EXTENSION_STORES = ("extension_state", "extension_config", "extension_hidden_state")

_GONE = (200, 404)
"""The statuses of a removal after which nothing is left."""


class Callers(Protocol):
    """The callers of the probe's channel."""

    @property
    def admin(self) -> Caller: ...
    @property
    def broadcaster(self) -> Caller: ...
    @property
    def extension_admin(self) -> Caller: ...


class Leftovers:
    """What one probe has written, with the calls that remove it."""

    def __init__(self, at: Callers) -> None:
        self._at = at
        self._removals: dict[tuple[str, str], Callable[[], Reply]] = {}
        self._is_removing = False

    def wrote(self, caller: Caller, path: str, query: Mapping[str, Any], body: Any) -> None:
        """Note a call that has succeeded, or may have."""
        where = urlsplit(path)
        name = where.path.strip("/").removeprefix("v1/e/")
        in_path = {name: values[0] for name, values in parse_qs(where.query).items()}
        name = STORES.get(name, name)
        members = body if isinstance(body, dict) else {}
        id = str(query.get("id") or in_path.get("id") or members.get("id") or "default")
        match name:
            case "vote" | "vote_config":
                self.poll(id)
            case "rank":
                self._add(f"ranking {id}", lambda: self._clear("rank", id))
            case "codes":
                self._add("codes", lambda: self._at.admin.delete("codes"))
            case "curated_poll_edit":
                self._add(f"question {id}", lambda: self._at.admin.delete("curated_poll_edit", {"id": id}))
            case "json_store":
                self._add(f"json_store {id}", lambda: self._at.admin.post("json_store", {}, id=id))
            case "validate_pin" | "link/pin" | "gamelink/pin" | "gamelink/token" | "pin":
                self.link()
            case _ if name in VIEWER_STORES:
                self._add(f"{name} of a {caller.role}", lambda: caller.post(name, {}), str(caller.authorization))
            case _ if name in CHANNEL_STORES:
                self.store(name)
            case _ if name in EXTENSION_STORES:
                self._add(name, lambda: self._at.extension_admin.post(name, {}))

    def wrote_over_socket(self, action: str, target: str, data: Mapping[str, Any]) -> None:
        """Note a request of a game that has succeeded, or may have."""
        if action == "create" and target == "poll":
            self.poll(str(data.get("poll_id", "default")))
            self.store("channel_state")
        elif action in ("set", "patch") and target in ("state", "config"):
            self.store(f"channel_{target}")
        elif action == "authenticate" and ("pin" in data or "jwt" in data):
            self.link()

    def poll(self, id: str) -> None:
        """Note that a poll was written."""
        self._add(f"poll {id}", lambda: self._clear("vote", id))

    def store(self, name: str) -> None:
        """Note that a store of the channel was written."""
        self._add(name, lambda: self._at.broadcaster.post(name, {}))

    def link(self) -> None:
        """Note that the channel was linked."""
        self._add("links", lambda: self._at.broadcaster.delete("pin"))

    def _clear(self, path: str, id: str) -> Reply:
        """Delete in all channels what only this probe can have made; an id that others use, in its own channel only."""
        own = id.removeprefix("global-").startswith(PREFIX)
        return (self._at.extension_admin if own else self._at.admin).delete(path, id=id)

    def _add(self, what: str, removal: Callable[[], Reply], owner: str = "") -> None:
        if not self._is_removing:
            self._removals[what, owner] = removal

    def remove(self) -> list[str]:
        """Remove everything, the latest first. Returns what could not be removed."""
        self._is_removing = True
        failed = []
        for (what, _), removal in reversed(self._removals.items()):
            try:
                is_gone = removal().status in _GONE
            except CliError:
                is_gone = False
            if not is_gone:
                failed.append(what)
        self._removals.clear()
        return failed
