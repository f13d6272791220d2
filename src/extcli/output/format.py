"""The formats that results are printed in."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    PLAIN = "plain"
    JSON = "json"
    JSONL = "jsonl"
    ENV = "env"
    """Lines for a shell. Only commands that describe a service have it."""
