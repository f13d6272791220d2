"""What audiences of different sizes need: arithmetic on assumptions and on measured figures.

`page.py` writes the tables of `docs/scaling.md` with it; `python benchmarks/scaling.py` prints them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from report import Row, load_measurements, rounded

AUDIENCES = (10_000, 1_000_000, 20_000_000)
"""Viewers of one channel, who vote in one poll."""
WINDOWS = (60, 30)
"""Seconds in which a poll is open."""
VOTING_SHARE = 0.5
"""Share of the viewers who vote."""
PEAK = 3.0
"""Rate in the busiest second of a window divided by the average: most votes come early."""
READS_PER_VIEWER = 2
"""Requests when a page shows a poll: its results and the state of the channel."""
LISTENING_SHARE = 1.0
"""Share of the viewers whose page keeps a socket open for updates."""
UPDATE_INTERVAL = 5
"""Seconds between two updates of one poll for pages (ruling B5)."""
UPDATE_BYTES = 700
"""Bytes of one update for a page, with its headers down to IP."""
SOCKETS_PER_PROCESS = 10_000
"""Default of `--max-sockets`."""
SOCKET_KIB = 7.1
"""Memory of an idle socket in KiB, which `benchmarks/sockets.py` prints."""
VOTE_BYTES = 220
"""Bytes of one vote in the file, with its index and the ids of its voter."""
NETWORK = 10
"""Gbit/s of one site."""
LOAD = 0.6
"""Share of its measured rate that anything is planned for."""


@dataclass(frozen=True)
class Rates:
    """Measured figures of one process, on one core."""

    votes: float
    """First votes per second that one node on Redis has processor time for."""
    reads: float
    """Reads of a poll per second."""
    redis: float
    """First votes per second that one Redis has processor time for."""
    deliveries: float
    """Texts per second that one process has processor time to send to sockets."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Rates:
        """Take the figures from the rows; raises `LookupError` if a measurement is missing."""
        found = list(rows)
        return cls(
            votes=1e6 / figure(found, "cores", "nodes µs per first vote"),
            reads=figure(found, "13", "GET vote per s"),
            redis=1e6 / figure(found, "cores", "Redis µs per first vote"),
            deliveries=1e6 / figure(found, "8", "service: processor µs per delivery"),
        )


def figure(rows: Iterable[Row], goal: str, name: str) -> float:
    """Return the first figure of a goal with this text in its name."""
    for row in rows:
        for each, value in row.figures.items():
            if row.goal == goal and name in each:
                return value
    raise LookupError(f"goal {goal} has no figure {name}: run `make bench` and `make bench-docs`")


@dataclass(frozen=True)
class Need:
    """What one poll needs."""

    viewers: int
    window: int
    """Seconds."""
    rates: Rates

    @property
    def votes_per_second(self) -> float:
        """In the busiest second."""
        return self.viewers * VOTING_SHARE / self.window * PEAK

    @property
    def reads_per_second(self) -> float:
        """In the busiest second. Pages show the poll when it opens."""
        return self.viewers * READS_PER_VIEWER / self.window * PEAK

    @property
    def sockets(self) -> float:
        return self.viewers * LISTENING_SHARE

    @property
    def deliveries_per_second(self) -> float:
        return self.sockets / UPDATE_INTERVAL

    @property
    def gigabits_per_second(self) -> float:
        """Outgoing updates."""
        return self.deliveries_per_second * UPDATE_BYTES * 8 / 1e9

    @property
    def busy(self) -> dict[str, float]:
        """Processes of the service that each kind of work keeps fully busy in the busiest second."""
        return {
            "votes": self.votes_per_second / self.rates.votes,
            "reads": self.reads_per_second / self.rates.reads,
            "updates": self.deliveries_per_second / self.rates.deliveries,
        }

    @property
    def processes(self) -> dict[str, int]:
        """Processes to plan for each kind of work, and to hold all sockets."""
        planned = {name: ceil(share / LOAD) for name, share in self.busy.items()}
        return {**planned, "sockets": ceil(self.sockets / SOCKETS_PER_PROCESS)}

    @property
    def redis_busy(self) -> float:
        """Votes in the busiest second divided by what one Redis records; a poll cannot be divided over several."""
        return self.votes_per_second / self.rates.redis

    @property
    def socket_gib(self) -> float:
        """Memory of all sockets."""
        return self.sockets * SOCKET_KIB / 2**20

    @property
    def stored_gib(self) -> float:
        """Votes of this poll in the file or in Redis."""
        return self.viewers * VOTING_SHARE * VOTE_BYTES / 2**30


def limits(window: int, rates: Rates) -> list[tuple[int, str]]:
    """Return the largest audience that each part serves, and the part; the smallest first."""
    one = Need(1, window, rates)  # every need is in proportion to the viewers
    found = [
        (LOAD / sum(one.busy.values()), "one process answers votes and reads, and sends updates"),
        (SOCKETS_PER_PROCESS / LISTENING_SHARE, "one process holds the sockets, with the default `--max-sockets`"),
        (LOAD / one.redis_busy, "one Redis records the votes of a poll"),
        (LOAD * NETWORK / one.gigabits_per_second, f"a network of {NETWORK} Gbit/s carries the updates"),
    ]
    return sorted((round(viewers), part) for viewers, part in found)


def report(rows: Iterable[Row]) -> str:
    """Return the tables as Markdown."""
    try:
        rates = Rates.of(rows)
    except LookupError as error:
        return f"Not measured yet: {error.args[0]}."
    measured = (
        f"Measured, per second: one process records {rates.votes:,.0f} first votes on Redis, answers\n"
        f"{rates.reads:,.0f} reads, or sends {rates.deliveries:,.0f} updates. One Redis records {rates.redis:,.0f}\n"
        f"first votes.\n"
    )
    lines = [
        measured,
        "| Viewers | Window | Votes/s | Reads/s | Processes for votes | Processes for reads | Redis busy |",
        "|---|---|---|---|---|---|---|",
    ]
    for viewers in AUDIENCES:
        for window in WINDOWS:
            need = Need(viewers, window, rates)
            processes = need.processes
            lines.append(
                f"| {viewers:,} | {window} s | {need.votes_per_second:,.0f} | {need.reads_per_second:,.0f} | "
                f"{processes['votes']:,} | {processes['reads']:,} | {need.redis_busy:,.0%} |"
            )
    lines += [
        "",
        "| Viewers | Sockets | Processes for sockets | Updates/s | Processes for updates | Bandwidth | "
        "Memory of sockets | Stored votes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for viewers in AUDIENCES:
        need = Need(viewers, WINDOWS[0], rates)
        lines.append(
            f"| {viewers:,} | {need.sockets:,.0f} | {need.processes['sockets']:,} | "
            f"{need.deliveries_per_second:,.0f} | {need.processes['updates']:,} | "
            f"{rounded(need.gigabits_per_second)} Gbit/s | {rounded(need.socket_gib)} GiB | "
            f"{rounded(need.stored_gib)} GiB |"
        )
    lines += ["", f"| With a window of {WINDOWS[0]} s | Viewers at most |", "|---|---|"]
    lines += [f"| {part} | {rounded(viewers)} |" for viewers, part in limits(WINDOWS[0], rates)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(row for result in load_measurements() for row in result.rows))
