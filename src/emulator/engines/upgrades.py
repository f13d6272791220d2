"""How an engine treats data of an older format."""

from __future__ import annotations

from typing import NamedTuple


class Upgrades(NamedTuple):
    """Whether an engine may raise the format of data when it opens, and when that is."""

    allowed: bool = True
    """If false, opening data of an older format raises `EngineError`."""
    now: int = 0
    """Unix ms, for the name of the backup that is made before."""
    ended: str = ""
    """What of earlier versions this version does not read, for the line of the log about the upgrade."""

    @property
    def note(self) -> str:
        """The end of that line."""
        return f"; {self.ended}" if self.ended else ""


UPGRADES = Upgrades()
