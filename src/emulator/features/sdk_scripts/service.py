"""The scripts, read once for all services of the process."""

from __future__ import annotations

from functools import cache
from pathlib import Path


class Scripts:
    """What pages load from here. Each script finds the service by the address that it was loaded from."""

    def sdk(self) -> bytes:
        """Leads the published SDK to the service."""
        return _read("sdk.js")

    def platform_helper(self) -> bytes:
        """Stands in for the platform's helper in a frame."""
        return _read("platform-helper.js")


@cache
def _read(name: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes()
