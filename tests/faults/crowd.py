"""Many clients that write during a fault, and the account of each write.

crowd = Crowd()
crowd.prepare(served)
with crowd.writing(served):
    crowd.wait_for("acknowledged", 500)
    ...  # cause the fault
account = crowd.account(served)
assert account.faultless, account
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
import jwt

from faults.writes import KINDS, PartialWrite, Write
from support.service import CLIENT_ID, SECRET, Client, RunningService

ACKNOWLEDGED, REFUSED, UNKNOWN = "acknowledged", "refused", "unknown"
"""Answered with 2xx; answered with 503 and `Retry-After`; not answered because the connection died."""
_RETRY_DELAY = 0.01
"""Seconds between attempts to reach a dead service."""


@dataclass
class Account:
    """The writes that were found after the fault, each named by its kind and number."""

    acknowledged: int = 0
    found: int = 0
    """Acknowledged writes that are there."""
    refused: int = 0
    unknown: int = 0
    unknown_done: int = 0
    lost: list[str] = field(default_factory=list)
    """Acknowledged, but missing."""
    refused_done: list[str] = field(default_factory=list)
    """Refused, but done."""
    wrong: list[str] = field(default_factory=list)
    """Done twice, done in part, or never sent; and responses that are neither 2xx nor 503."""

    @property
    def faultless(self) -> bool:
        """Whether no acknowledged write is lost, no refused one was done, and none was done twice or in part."""
        return not (self.lost or self.refused_done or self.wrong)

    def __str__(self) -> str:
        figures = f"acknowledged {self.acknowledged}, found {self.found}, lost {len(self.lost)}, "
        figures += f"refused {self.refused} (done {len(self.refused_done)}), "
        figures += f"unknown {self.unknown} (done {self.unknown_done})"
        return "; ".join([figures, *(self.lost + self.refused_done + self.wrong)[:10]])

    def show(self, fault: str, back: float | None = None) -> Account:
        """Print the account in one line for `pytest -s`; `back` is the recovery time in seconds."""
        after = "" if back is None else f", back after {back * 1_000:.0f} ms"
        print(f"\n{fault}: {self}{after}")  # noqa: T201 - seen with -s only
        return self


class Crowd:
    """Clients that send writes of all `kinds` in turn. Numbers are unique, so a crowd can span several services."""

    def __init__(self, *kinds: Write, size: int = 8, **claims: Any) -> None:
        self._kinds = kinds or KINDS
        self._size = size
        self._claims = claims
        self._numbers = count()
        self._outcomes: dict[str, dict[int, str]] = {kind.name: {} for kind in self._kinds}
        self._unexpected: list[str] = []
        self._changed = threading.Condition()
        self._counts: Counter[str] = Counter()
        self._stopping = threading.Event()

    def prepare(self, service: RunningService) -> None:
        """Create what the writes need."""
        with Client(base_url=f"{service.url}/v1/e/") as http:
            for kind in self._kinds:
                kind.prepare(self._authorized(http))

    @contextmanager
    def writing(self, service: RunningService) -> Iterator[None]:
        """Write without pause until the block ends; retry while the service is down."""
        self._stopping.clear()
        threads = [threading.Thread(target=self._write, args=(service.url,)) for _ in range(self._size)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join(timeout=60)

    def wait_for(self, outcome: str, more: int = 1, within: float = 60) -> float:
        """Wait for `more` writes with this outcome; return the seconds that took."""
        started = time.monotonic()
        with self._changed:
            target = self._counts[outcome] + more
            assert self._changed.wait_for(lambda: self._counts[outcome] >= target, within), (
                f"no {more} writes were {outcome} within {within} s: {dict(self._counts)} {self._unexpected[:3]}"
            )
        return time.monotonic() - started

    def named(self, outcome: str) -> set[str]:
        """Return the names of the writes that had this outcome so far."""
        with self._changed:
            return {
                f"{kind} {n}"
                for kind, outcomes in self._outcomes.items()
                for n, each in outcomes.items()
                if each == outcome
            }

    def account(self, service: RunningService) -> Account:
        """Read everything back and compare it with the outcomes."""
        account = Account(wrong=list(self._unexpected))
        with Client(base_url=f"{service.url}/v1/e/") as http:
            for kind in self._kinds:
                self._check(account, kind, self._authorized(http))
        return account

    def _check(self, account: Account, kind: Write, ask: Any) -> None:
        outcomes = self._outcomes[kind.name]
        try:
            found = kind.found(ask, outcomes)
        except PartialWrite as error:
            account.wrong.append(f"{kind.name}: {error}")
            found = Counter()
        acknowledged, refused, unknown = (
            {number for number, each in outcomes.items() if each == outcome}
            for outcome in (ACKNOWLEDGED, REFUSED, UNKNOWN)
        )
        account.acknowledged += len(acknowledged)
        account.found += len(acknowledged & found.keys())
        account.refused += len(refused)
        account.unknown += len(unknown)
        account.unknown_done += len(unknown & found.keys())
        account.lost += [f"{kind.name} {number} lost" for number in sorted(acknowledged - found.keys())]
        account.refused_done += [f"{kind.name} {number} refused but done" for number in sorted(refused & found.keys())]
        account.wrong += [f"{kind.name} {number} done {times} times" for number, times in found.items() if times != 1]
        account.wrong += [f"{kind.name} {number} never sent" for number in found if number not in outcomes]

    def _write(self, url: str) -> None:
        with Client(base_url=f"{url}/v1/e/") as http:
            ask = self._authorized(http)
            while not self._stopping.is_set():
                number = next(self._numbers)
                kind = self._kinds[number % len(self._kinds)]
                self._send(kind, number // len(self._kinds), ask)

    def _send(self, kind: Write, number: int, ask: Any) -> None:
        try:
            answer = kind.send(ask, number)
        except httpx.ConnectError:
            self._stopping.wait(_RETRY_DELAY)
            return  # nothing was sent
        except httpx.TransportError:
            outcome = UNKNOWN
        else:
            outcome = _outcome(answer)
        with self._changed:
            self._outcomes[kind.name][number] = outcome
            self._counts[outcome] += 1
            if outcome.startswith("answered"):
                self._unexpected.append(f"{kind.name} {number} {outcome}")
            self._changed.notify_all()

    def _authorized(self, http: httpx.Client) -> Any:
        def ask(method: str, path: str, role: str, user: str = "", channel: str = "", **content: Any) -> httpx.Response:
            claims = {"role": role, "user_id": user, "channel_id": channel, **self._claims}
            token = jwt.encode({name: value for name, value in claims.items() if value}, SECRET)
            return http.request(method, path, headers={"Authorization": f"{CLIENT_ID} {token}"}, **content)

        return ask


def _outcome(answer: httpx.Response) -> str:
    if answer.is_success:
        return ACKNOWLEDGED
    is_retryable = answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and "retry-after" in answer.headers
    return REFUSED if is_retryable else f"answered {answer.status_code}"
