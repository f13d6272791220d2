"""Many who write at once while something breaks, and the account of what became of each write.

crowd = Crowd()
crowd.prepare(served)
with crowd.writing(served):
    crowd.wait_for("acknowledged", 500)
    …break something…
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

from faults.writes import KINDS, HalfDone, Write
from support.service import CLIENT_ID, SECRET, Client, RunningService

ACKNOWLEDGED, REFUSED, UNKNOWN = "acknowledged", "refused", "unknown"
"""Answered 2xx; answered 503 with a word on when to try again; sent, and the connection died before its answer."""
_AGAIN_AFTER = 0.01
"""Seconds between two tries to reach a service that is not there."""


@dataclass
class Account:
    """What was found after the fault. A write is named by its kind and number."""

    acknowledged: int = 0
    found: int = 0
    """Of those."""
    refused: int = 0
    unknown: int = 0
    unknown_done: int = 0
    lost: list[str] = field(default_factory=list)
    """Acknowledged and not there."""
    refused_done: list[str] = field(default_factory=list)
    """Refused and there nevertheless, whole."""
    wrong: list[str] = field(default_factory=list)
    """Done twice, done by half, or never sent; and answers that are neither 2xx nor 503."""

    @property
    def faultless(self) -> bool:
        """Nothing acknowledged is lost, nothing refused was done, nothing was done twice or by half."""
        return not (self.lost or self.refused_done or self.wrong)

    def __str__(self) -> str:
        figures = f"acknowledged {self.acknowledged}, found {self.found}, lost {len(self.lost)}, refused {self.refused}"
        figures += f", unknown {self.unknown} (done {self.unknown_done})"
        return "; ".join([figures, *(self.lost + self.refused_done + self.wrong)[:10]])

    def shown(self, fault: str, back: float | None = None) -> Account:
        """Print what was seen in one line, for those who run a fault by hand; `back` is in seconds."""
        after = "" if back is None else f", back after {back * 1_000:.0f} ms"
        print(f"\n{fault}: {self}{after}")  # noqa: T201 - seen with -s only
        return self


class Crowd:
    """Writers of all `kinds` in turn; numbers are never used again, so one crowd may outlive several services."""

    def __init__(self, *kinds: Write, size: int = 8, **claims: Any) -> None:
        self._kinds = kinds or KINDS
        self._size = size
        self._claims = claims
        self._numbers = count()
        self._became: dict[str, dict[int, str]] = {kind.name: {} for kind in self._kinds}
        self._unexpected: list[str] = []
        self._changed = threading.Condition()
        self._counts: Counter[str] = Counter()
        self._stopping = threading.Event()

    def prepare(self, service: RunningService) -> None:
        """Do once what the writes need."""
        with Client(base_url=f"{service.url}/v1/e/") as http:
            for kind in self._kinds:
                kind.prepare(self._asking(http))

    @contextmanager
    def writing(self, service: RunningService) -> Iterator[None]:
        """Write as fast as is answered until the block ends; whoever finds nobody there tries again."""
        self._stopping.clear()
        threads = [threading.Thread(target=self._write, args=(service.url,)) for _ in range(self._size)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join(timeout=20)

    def wait_for(self, outcome: str, more: int = 1, within: float = 60) -> float:
        """Return when `more` writes had this outcome from now on; says how many seconds that took."""
        began = time.monotonic()
        with self._changed:
            enough = self._counts[outcome] + more
            assert self._changed.wait_for(lambda: self._counts[outcome] >= enough, within), (
                f"no {more} writes were {outcome} within {within} s: {dict(self._counts)} {self._unexpected[:3]}"
            )
        return time.monotonic() - began

    def named(self, outcome: str) -> set[str]:
        """The writes that had this outcome so far, as an account names them."""
        with self._changed:
            return {
                f"{kind} {n}" for kind, became in self._became.items() for n, each in became.items() if each == outcome
            }

    def account(self, service: RunningService) -> Account:
        """Read everything back and compare."""
        account = Account(wrong=list(self._unexpected))
        with Client(base_url=f"{service.url}/v1/e/") as http:
            for kind in self._kinds:
                self._settle(account, kind, self._asking(http))
        return account

    def _settle(self, account: Account, kind: Write, ask: Any) -> None:
        became = self._became[kind.name]
        try:
            found = kind.found(ask, became)
        except HalfDone as half:
            account.wrong.append(f"{kind.name}: {half}")
            found = Counter()
        by_outcome = {what: {n for n, each in became.items() if each == what} for what in set(became.values())}
        acknowledged, unknown = by_outcome.get(ACKNOWLEDGED, set()), by_outcome.get(UNKNOWN, set())
        refused = by_outcome.get(REFUSED, set())
        account.acknowledged += len(acknowledged)
        account.found += len(acknowledged & found.keys())
        account.refused += len(refused)
        account.unknown += len(unknown)
        account.unknown_done += len(unknown & found.keys())
        account.lost += [f"{kind.name} {number} lost" for number in sorted(acknowledged - found.keys())]
        account.refused_done += [f"{kind.name} {number} refused but done" for number in sorted(refused & found.keys())]
        account.wrong += [f"{kind.name} {number} done {times} times" for number, times in found.items() if times != 1]
        account.wrong += [f"{kind.name} {number} never sent" for number in found if number not in became]

    def _write(self, url: str) -> None:
        with Client(base_url=f"{url}/v1/e/") as http:
            ask = self._asking(http)
            while not self._stopping.is_set():
                number = next(self._numbers)
                kind = self._kinds[number % len(self._kinds)]
                self._send(kind, number // len(self._kinds), ask)

    def _send(self, kind: Write, number: int, ask: Any) -> None:
        try:
            answer = kind.send(ask, number)
        except httpx.ConnectError:
            self._stopping.wait(_AGAIN_AFTER)
            return  # nobody was there, so nothing was sent
        except httpx.TransportError:
            outcome = UNKNOWN
        else:
            outcome = _outcome(answer)
        with self._changed:
            self._became[kind.name][number] = outcome
            self._counts[outcome] += 1
            if outcome.startswith("answered"):
                self._unexpected.append(f"{kind.name} {number} {outcome}")
            self._changed.notify_all()

    def _asking(self, http: httpx.Client) -> Any:
        def ask(method: str, path: str, role: str, user: str = "", channel: str = "", **content: Any) -> httpx.Response:
            said = {"role": role, "user_id": user, "channel_id": channel, **self._claims}
            token = jwt.encode({name: value for name, value in said.items() if value}, SECRET)
            return http.request(method, path, headers={"Authorization": f"{CLIENT_ID} {token}"}, **content)

        return ask


def _outcome(answer: httpx.Response) -> str:
    if answer.is_success:
        return ACKNOWLEDGED
    is_for_now = answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and "retry-after" in answer.headers
    return REFUSED if is_for_now else f"answered {answer.status_code}"
