"""A line of input with its request."""

from __future__ import annotations

from dataclasses import dataclass

from extcli.api.client import Call
from extcli.bulk.input_lines import Line


@dataclass(slots=True)
class Job:
    """A line ready to send."""

    line: Line
    call: Call
    authorization: str
