"""The faults of a namespace: failures that a test produces on purpose."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from extcli.api.control import Control
from extcli.errors import UsageError
from extcli.faults.options import members, problems
from extcli.testing.calls import document
from extcli.testing.operation import ModeT, Part, operation


class Faults(Part[ModeT]):
    """Adds and removes faults. They end with the namespace, and with `reset`."""

    def __init__(self, control: Control, *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._control = control

    @operation
    def add(
        self,
        match: str | None = None,
        *,
        id: str | None = None,
        event: str | None = None,
        role: str | None = None,
        user: str | None = None,
        client_id: str | None = None,
        channel: str | None = None,
        status: int | None = None,
        retry_after: int | None = None,
        delay: str | timedelta | None = None,
        drop: bool = False,
        reset: bool = False,
        truncate: int | None = None,
        stall: bool = False,
        close: int | None = None,
        lose: bool = False,
        double: bool = False,
        reorder: bool = False,
        times: int | None = None,
        share: float | None = None,
        seed: int | None = None,
        lasts: str | timedelta | None = None,
    ) -> dict[str, Any]:
        """Add a fault, and return it: `add("POST /v1/e/vote", status=503, times=3)`.

        The options are those of `extcli fault add`; `lasts` is `--for`. Raises `UsageError`, or `Refused` if the
        service finds an error.
        """
        given = {
            "match": match, "id": id, "event": event, "role": role, "user": user, "client_id": client_id,
            "channel": channel, "status": status, "retry_after": retry_after, "delay": _text(delay), "drop": drop,
            "reset": reset, "truncate": truncate, "stall": stall, "close": close, "lose": lose, "double": double,
            "reorder": reorder, "times": times, "share": share, "seed": seed, "for": _text(lasts),
        }  # fmt: skip
        options = {name: value for name, value in given.items() if value is not None and value is not False}
        for name, problem in problems(options, _named):
            raise UsageError(f"{_named(name)}: {problem}" if name in options else problem)
        return dict(document(self._control.add_fault(members(options))))

    @operation
    def list(self) -> list[dict[str, Any]]:
        """Return the faults, oldest first, with the number of their `hits`."""
        return [*document(self._control.list_faults())["faults"]]

    @operation
    def remove(self, id: str) -> None:
        """Remove one fault."""
        self._control.remove_fault(id)

    @operation
    def clear(self) -> None:
        """Remove all faults."""
        self._control.clear_faults()


def _named(option: str) -> str:
    return "lasts" if option == "for" else option


def _text(duration: str | timedelta | None) -> str | None:
    return f"{duration // timedelta(milliseconds=1)}ms" if isinstance(duration, timedelta) else duration
