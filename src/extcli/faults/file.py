"""Puts the faults of a file in place of those of an emulator: all of them, or none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from extcli import bounded_json
from extcli.errors import Refused
from extcli.faults.options import in_options, members
from extcli.faults.schema import DOCUMENT
from extcli.reading.shapes import SHAPE_ERRORS
from extcli.tables.source import source

_PLACE = re.compile(r"faults\[\d+\]")


class Target(Protocol):
    """The service, or a namespace of it."""

    def replace_faults(self, faults: Sequence[Mapping[str, Any]]) -> Any:
        """Send the faults and return the answer. Raises `Refused`."""


def load_faults(path: str, environ: Mapping[str, str], service: Target) -> Any:
    """Send the faults of a TOML or JSON file and return the answer. Raises `UsageError` and `InvalidFile`.

    If the file or the service finds an error, nothing was changed.
    """
    opened = source(path)
    faults = [members(fault) for fault in opened.value(DOCUMENT, environ)["faults"]]
    try:
        return service.replace_faults(faults)
    except Refused as error:
        if details := _problems(error.body):
            raise opened.refused([in_options(detail, faults) for detail in details]) from None
        raise


def _problems(body: bytes) -> list[str]:
    """Return the details of an error answer that name a fault; none if it is about something else."""
    try:
        details = [error["detail"] for error in bounded_json.decoded(body)["errors"]]
    except SHAPE_ERRORS:
        return []
    return details if all(map(_PLACE.match, details)) else []
