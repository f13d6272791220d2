"""The shared options of one run. In a file of its own, because every command line reads it, `--help` too."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_PLACE = {
    "profile": "-p", "url": "--url", "client_id": "--client-id", "channel": "--channel", "acts_as": "--as",
    "token_file": "--token-file",
}  # fmt: skip


class Flags(NamedTuple):
    """The shared options as given; `None` where not given."""

    profile: str | None = None
    url: str | None = None
    client_id: str | None = None
    acts_as: str | None = None
    channel: str | None = None
    token_file: Path | None = None
    output: str | None = None
    timeout: str | None = None
    quiet: bool = False
    verbose: bool = False
    dry_run: str | None = None
    """`request` or `curl`: how to print requests instead of sending them."""
    query: str | None = None

    def over(self, outer: Flags) -> Flags:
        """Return these options; options that are not set are taken from those given before the command's name."""
        # An empty text counts as given; the command reports it.
        return self._replace(
            **{name: getattr(outer, name) for name, value in self._asdict().items() if value in (None, False)}
        )

    def words(self, *names: str) -> list[str]:
        """Return the given ones of these options, by default all that name the service and the caller, as words.

        With these, another command of extcli finds the same service.
        """
        given = ((_PLACE[name], getattr(self, name)) for name in names or _PLACE)
        return [word for option, value in given if value for word in (option, str(value))]
