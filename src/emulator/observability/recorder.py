"""Who is told of every request, to keep count of them."""

from __future__ import annotations

from typing import Protocol

from emulator.errors import ServiceError


class Recorder(Protocol):
    """Nothing here waits or fails. `seconds` are those from the whole head of a request to its answer."""

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """An endpoint, by its declared path, has answered."""
        ...

    def replied(self, action: str, status: int, seconds: float) -> None:
        """A request over the socket has been answered; `action` is empty for one that the service does not have."""
        ...

    def refused(self, error: ServiceError) -> None:
        """Something was refused, by a limit or for another reason."""
        ...

    def storage(self, *, answers: bool) -> None:
        """Storage was used, and did or did not do what it was to do."""
        ...
