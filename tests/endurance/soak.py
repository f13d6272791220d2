"""Memory, open files and tasks under a long load: `make soak MINUTES=30`.

Runs `extcli serve` with data in a file. 200,000 users vote in 500 polls at half of the highest rate. A cycle takes a
minute, in which the clock advances two days; polls are defined and expire; PINs are made and used; games connect,
subscribe and leave; namespaces are opened and dropped; and stores, rankings, buffers and broadcasts are written. At its
end nothing is open, and the service is measured.

Over the last two thirds, memory must grow by less than 1 % in 10 minutes, and open files and tasks must stay the same.
Exits 1 if not. Writes `soak.json` into `benchmarks/results`, or the folder in the second argument. After
an hour it also has the ratio of goal 17, which `make bench-docs` takes from there into the documents.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import select
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from common import CLIENT_ID, argument, start_extcli
from crowd import Socket
from report import RESULTS, Row, store
from soak_load import CHANNELS, POLLS, USERS, Load, channel_of, token

STEPS, STEP = 12, 4.5
"""Steps of a cycle, and the seconds of one. The votes go on throughout."""
ADVANCE = 4 * 3_600_000
"""By which the clock advances in each step, in ms."""
NEW_POLLS = 5 * CHANNELS
"""Polls that a cycle adds, while it leaves as many alone."""
GAMES = 10
"""Connections that each step opens."""
EARLY, LATE = 10, 60
"""The minutes that goal 17 compares."""
MOST = 1.0
"""Percent that memory may grow in 10 minutes."""


@dataclass
class Sample:
    """The service at the end of a cycle."""

    minutes: float
    memory_mib: float
    files: int
    tasks: int
    sockets: int
    votes: int
    failed_votes: int
    p99_ms: float
    data_mib: float


class Service:
    """`extcli serve` as a process, and the calls of its clients other than votes."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.data = folder / "soak.db"
        self.address = start_extcli(stack, "--data", f"sqlite://{self.data}", core=None).address
        self.games: list[Socket] = []
        self.namespaces: list[str] = []

    def call(self, method: str, path: str, body: Any = None, header: str = "") -> bytes:
        """Send one request over a new connection, and return the body of its response, which must be 2xx."""
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Authorization": header} if header else {})
            response = connection.getresponse()
            found = response.read()
            assert 200 <= response.status < 300, f"{method} {path}: {response.status} {found!r}"
            return found
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Return the metrics without labels."""
        text = self.call("GET", "/_emulator/metrics").decode()
        return {name: float(value) for name, value in re.findall(r"(?m)^(\w+) (\S+)$", text)}

    def define(self, poll: int) -> None:
        """Define a poll that would close long after it has expired."""
        config = {"prompt": "?", "options": list("abcde"), "endsIn": 300 * 86_400}
        self.call("POST", "/v1/e/vote_config", {"id": f"p{poll}", "config": config}, _broadcaster(poll))

    def connect(self, number: int) -> None:
        """Open a game's connection, authenticate it by a PIN, and subscribe."""
        pin = json.loads(self.call("POST", "/v1/e/link/pin", {}, _broadcaster(number)))["pin"]
        game = Socket(self.address, path=f"/0.2.0/{CLIENT_ID}")
        game.finish_handshake()
        game.send(_frame("authenticate", data={"client_id": CLIENT_ID, "pin": pin}))
        reply = game.message()
        assert b'"errors"' not in reply, reply
        game.send(
            _frame("subscribe", "state", {"topic_id": "channel"}),
            _frame("subscribe", "event", {"topic_id": "soak"}),
            _frame("subscribe", "poll", {"topic_id": f"p{number}"}),
        )
        self.games.append(game)

    def drain(self) -> None:
        """Read what the games have received."""
        while ready := select.select(self.games, [], [], 0)[0]:
            for game in ready:
                game.receive()

    def write(self, number: int) -> None:
        """Advance the clock, and write everything that is not a vote, in the service and in a new namespace."""
        self.call("POST", "/_emulator/clock", {"advance": ADVANCE})
        for game in self.games:  # the service closes connections that neither answer pings nor send anything
            game.send(_frame("get", "state", {"state_id": "channel"}))
        header = _broadcaster(number)
        viewer = token(role="viewer", user_id=str(number), channel_id=channel_of(number))
        self.call("POST", "/v1/e/broadcast", {"topic": "soak", "event": "soak", "data": {"n": number}}, header)
        self.call("POST", "/v1/e/channel_state", {"n": number}, header)
        self.call("POST", "/v1/e/viewer_state", {"n": number}, viewer)
        self.call("POST", f"/v1/e/rank?id=r{number}", {"key": "a"}, viewer)
        self.call("POST", f"/v1/e/accumulate?id=b{number}", {"n": number}, viewer)
        self.call("POST", f"/v1/e/json_store?id=j{number}", {"n": number}, header)
        self.call("POST", f"/v1/e/vote?id=short{number}", {"value": 1}, viewer)
        self.call("DELETE", f"/v1/e/vote?id=short{number}", header=header)
        self.call("POST", f"/_ns/soak{number}/v1/e/vote", {"value": 1}, viewer)
        self.call("POST", f"/_ns/soak{number}/v1/e/link/pin", {}, header)
        self.namespaces.append(f"soak{number}")

    def leave(self) -> None:
        """Close all connections, drop all namespaces, and return when the service has noticed."""
        for game in self.games:
            game.close()
        self.games.clear()
        for name in self.namespaces:
            self.call("DELETE", f"/_ns/{name}")
        self.namespaces.clear()
        deadline = time.monotonic() + 20
        while self.metrics()["emulator_sockets"]:
            assert time.monotonic() < deadline, "connections stay open"
            time.sleep(0.1)


def _broadcaster(number: int) -> str:
    return token(role="broadcaster", user_id=channel_of(number), channel_id=channel_of(number))


def _frame(action: str, target: str = "", data: Any = None) -> bytes:
    params = {"request_id": 1, "target": target} if target else {"request_id": 1}
    return json.dumps({"action": action, "params": params, "data": data}).encode()


def cycle(service: Service, load: Load, number: int, rate: float, began: float) -> Sample:
    """Run one cycle, and return the service at its end."""
    first_poll = number * NEW_POLLS
    for poll in range(first_poll + POLLS - NEW_POLLS if number else 0, first_poll + POLLS):
        service.define(poll)
    load.start(first_poll, STEPS * STEP, rate)
    for step in range(STEPS):
        ends_at = time.monotonic() + STEP
        service.write(number * STEPS + step)
        for game in range(GAMES):
            service.connect(first_poll + step * GAMES + game)
        while (wait := ends_at - time.monotonic()) > 0:
            service.drain()
            time.sleep(min(wait, 0.2))
    votes = load.wait()
    service.leave()
    found = []
    for _ in range(10):  # a short task, such as a throttled update, may run during one
        time.sleep(0.2)
        found.append(service.metrics())
    return Sample(
        minutes=round((time.monotonic() - began) / 60, 2),
        memory_mib=round(found[-1]["process_resident_memory_bytes"] / 2**20, 2),
        files=int(min(each["process_open_fds"] for each in found)),
        tasks=int(min(each["emulator_tasks"] for each in found)),
        sockets=int(found[-1]["emulator_sockets"]),
        votes=votes.answered,
        failed_votes=votes.failed,
        p99_ms=round(votes.p99 * 1000, 2),
        data_mib=round(os.path.getsize(service.data) / 2**20, 1),
    )


def growth(samples: list[Sample]) -> float:
    """Return the growth of memory in percent per 10 minutes: the median of the slopes between any two samples."""
    slopes = [(b.memory_mib - a.memory_mib) / (b.minutes - a.minutes) for a, b in combinations(samples, 2)]
    return 1000 * statistics.median(slopes) / statistics.mean(each.memory_mib for each in samples)


def late_growth(samples: list[Sample]) -> float | None:
    """Return the memory after 60 minutes, divided by that after 10: each the median of the three samples around it.

    `None` if the load was shorter.
    """
    if samples[-1].minutes < LATE - 1:
        return None

    def memory_at(minute: int) -> float:
        nearest = sorted(samples, key=lambda each: abs(each.minutes - minute))[:3]
        return statistics.median(each.memory_mib for each in nearest)

    return memory_at(LATE) / memory_at(EARLY)


def goal_row(ratio: float) -> Row:
    """Return the row of goal 17."""
    return Row("17", "resident memory after 60 minutes of mixed load / after 10", [ratio], [], 1.02, 1.0, False)


def faults(samples: list[Sample]) -> list[str]:
    """Return what grows over these samples, and what failed."""
    found = []
    if (percent := growth(samples)) >= MOST:
        found.append(f"memory grows by {percent:.2f} % in 10 minutes; the limit is {MOST} %")
    for name in ("files", "tasks", "sockets"):
        values = [getattr(each, name) for each in samples]
        if min(values) != max(values):
            found.append(f"{name}: from {min(values)} to {max(values)}; the number must stay the same")
    if failed := sum(each.failed_votes for each in samples):
        found.append(f"{failed} votes failed")
    return found


def main() -> int:
    minutes = argument(1, 30)
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else RESULTS
    folder.mkdir(exist_ok=True)
    samples: list[Sample] = []
    with ExitStack() as stack:
        service = Service(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        load = Load(service.address)
        stack.callback(load.close)
        load.start(0, 5.0, math.inf)
        rate = load.wait().answered / 5 / 2
        began = time.monotonic()
        while len(samples) < 4 or time.monotonic() - began < minutes * 60:
            samples.append(cycle(service, load, len(samples), rate, began))
            print(samples[-1], file=sys.stderr, flush=True)
    settled = samples[len(samples) // 3 :]
    found = faults(settled)
    report = {
        "users": USERS,
        "polls": POLLS,
        "votes_per_second": round(rate),
        "memory_growth_percent_per_10_minutes": round(growth(settled), 3),
        "memory_after_60_minutes_per_memory_after_10": late_growth(samples),
        "faults": found,
        "samples": [asdict(each) for each in samples],
    }
    (folder / "soak.json").write_text(json.dumps(report, indent=1) + "\n")
    if (ratio := late_growth(samples)) is not None:
        store("soak.rows", [goal_row(ratio)])
    print(json.dumps({name: value for name, value in report.items() if name != "samples"}, indent=1))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
