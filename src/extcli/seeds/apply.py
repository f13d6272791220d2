"""Puts a seed into a running service."""

from __future__ import annotations

from typing import Any, Protocol

from extcli import bounded_json
from extcli.errors import Refused, UnexpectedAnswer
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.seeds.reader import Seed


class Target(Protocol):
    """The service, or a namespace of it."""

    def apply_seed(self, document: bytes) -> Any:
        """Send the document and return the answer. Raises `Refused`."""


def apply(seed: Seed, service: Target) -> dict[str, Any]:
    """Put a seed into a service, write the files with refresh tokens, and return what the service counted.

    Raises `InvalidFile` if the service found errors; then nothing was changed.
    """
    try:
        answer = service.apply_seed(seed.body)
    except Refused as error:
        if details := _problems(error.body):
            raise seed.refused(details) from None
        raise
    try:
        result: dict[str, Any] = document_of(answer, {"counts": dict, "links": [{"refresh": str}]})
        seed.save_tokens([link.pop("refresh") for link in result["links"]])
    except SHAPE_ERRORS as error:
        raise UnexpectedAnswer(answer) from error
    return result


def _problems(body: bytes) -> list[str]:
    """Return the problems with a seed in the body of an error answer; none if the answer is about something else."""
    try:
        document = bounded_json.decoded(body)
        is_about_seed = document["reason"] in ("Invalid seed", "Invalid body")
        return [error["detail"] for error in document["errors"]] if is_about_seed else []
    except SHAPE_ERRORS:
        return []
