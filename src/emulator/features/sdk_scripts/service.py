"""Reads the scripts for pages, once per process."""

from __future__ import annotations

from functools import cache
from pathlib import Path


class Scripts:
    """The scripts as bytes. Each script finds the service by its own URL."""

    def sdk(self) -> bytes:
        """Return the script that connects the published SDK to the service."""
        return _read("sdk.js")

    def platform_helper(self) -> bytes:
        """Return the script that replaces the platform's helper."""
        return _read("platform-helper.js")


@cache
def _read(name: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes()
