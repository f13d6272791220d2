"""The part that sends REST calls: episodes of calls with data of their own, on each engine, sandbox and production."""

from __future__ import annotations

import json
import random
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from twin.calls import Call, Calls
from twin.comparing import Comparison, Difference
from twin.control import Control
from twin.credentials import DAY, EXTENSIONS, HOUR, MINUTE, SECOND, client_id
from twin.host import START, Clock, Pair, Setup
from twin.report import Report
from twin.wire import Response, Wire

CALLS = 125
"""Calls of an episode, without those that compare what it left behind."""
APART = 400 * DAY
"""Between the starts of two episodes: longer than every lifetime, so that nothing of others is left."""
CONNECTIONS = 3
SHOWN = 6
"""Steps that are shown of what led to a difference."""
READS = ["vote_logs?id=rps", "vote?id=rps", "polls", "rankings", "rank?id=q1", "rank?id=rps", "buffers",
         "accumulate?id=default", "all_state", "all_config", "codes", "curated_poll", "user_ids", "json_store?id=a",
         "curated_poll_leaderboard"]  # fmt: skip
"""What an admin reads at the end of an episode."""
UNSORTED = ("/contents/pins", "/ui/pins", "/ui/namespaces")
"""Lists that are sorted by random digests, or by real time."""
QUOTING = ("/_emulator/journal", "/_emulator/journal/entry", "/_emulator/journal/stream")
"""Texts that quote earlier responses, and differ where they differ."""
REPEATING = "/_emulator/ui/requests"
"""A page that quotes earlier responses. After a listed difference it is not compared."""
_DELIVERY = b'"kind":"delivery"'
_ARRIVAL = re.compile(rb'(?<="number":)[0-9]+|(?<=\\"timestamp\\":)[0-9]+')
"""The number of an entry, and the time in a delivery."""
_PAGE = re.compile(r" /_emulator(/|/rig|/ui(/.*)?)?$")
_EXPLAINED = re.compile(r"(?:rule|next_step): .*", re.DOTALL)
"""What entries of the journal have of an explanation."""
_ROWS = ".response.text.rows"
"""A list of contents in the journal. It is compared by itself, because its order may not count."""
CONTENTS = ["/_emulator/snapshot?keys=true", "/_emulator/contents", "/_emulator/journal?limit=100", "/_emulator/parity"]
"""What the control API says at the end of an episode."""
_CAPTURED = {name: re.compile(rb'"' + name.encode() + rb'": ?"([^"]{1,2000})"') for name in ("pin", "token", "next")}


class Episode:
    """A run of calls on one channel of one extension. It depends on the seed, the setup and its number alone."""

    def __init__(self, pair: Pair, clock: Clock, setup: Setup, seed: int, number: int, report: Report) -> None:
        self.pair, self.clock, self.number, self.report = pair, clock, number, report
        self.part = f"rest {setup}"
        self.again = f"make twin SEED={seed} ARGS='--only rest --setup \"{setup}\" --episode {number}'"
        chosen = self.random = random.Random(f"{seed} {setup} {number}")
        name, channel = client_id(number), str(1_000 + number)
        in_namespace = not setup.production and chosen.random() < 0.7
        prefix = f"/_ns/episode-{number}" if in_namespace else ""
        self.calls = Calls(chosen, name, client_id(number + EXTENSIONS // 2), channel, prefix)
        self.control = None if setup.production else Control(chosen, self.calls, name, channel)
        self.comparison = Comparison(*pair)
        self.captured: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._ahead = 0
        """Milliseconds that the control API has moved the service's clock; tokens follow it."""
        self._listed: set[str] = set()
        """The values that differed so far, old and new."""
        self.steps: deque[str] = deque(maxlen=SHOWN)
        self.wires = [[Wire(host.port) for host in pair] for _ in range(CONNECTIONS)]
        clock.set(START + number * APART)

    def run(self) -> None:
        """Send the calls of the episode until one shows an unlisted difference."""
        try:
            if self.control:
                self._send(self.control._post("/_emulator/reset"), self.wires[0])
            complete = all([self._send(call, self.wires[0]) for call in self.calls.prepared(self.clock.now)])
            complete = complete and all(self._step() for _ in range(CALLS)) and self.compare_contents()
        finally:
            self._drop_namespaces()
            for wires in self.wires:
                for wire in wires:
                    wire.close()
        self.report.counts["episodes"] += 1
        if not complete:
            self.report.counts["episodes that ended early, at a difference"] += 1

    def _drop_namespaces(self) -> None:
        """Drop what the episode opened, without comparing, so that other episodes do not list it."""
        for name in self.control.namespaces if self.control else []:
            for wire in self.wires[0]:
                wire.send(b"DELETE /_ns/%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % name.encode())
            for wire in self.wires[0]:
                wire.receive()

    def _step(self) -> bool:
        self.clock.advance(self.random.choice([0, 0, 1, 3, 20, 200, 2_000]))
        # In a sandbox the control API moves the clock far: at other moves, housekeeping chooses its own time.
        if not self.control and self.random.random() < 0.01:
            self.clock.advance(
                self.random.choice([MINUTE, 5 * MINUTE, HOUR, DAY, 7 * DAY]) - self.random.choice([0, 1])
            )
        now = self.clock.now + (self._ahead if self.random.random() < 0.9 else 0)
        call = self.control.next(now) if self.control and self.random.random() < 0.18 else self.calls.next(now)
        return self._send(call, self.random.choice(self.wires))

    def compare_contents(self, before: str = "") -> bool:
        """Compare everything that the episode left behind. `before` stands before the place of each call."""
        channel = "" if self.number % 2 else None  # an admin without a channel reads all
        if self.control:
            self._send(self.calls.plain("GET", "/_emulator/clock"), self.wires[0])
        admin = self.calls.credentials.header("admin", self.clock.now + self._ahead, channel=channel)
        calls = [self.calls.plain("GET", f"/v1/e/{path}", header=admin) for path in READS]
        if self.control:
            calls += [self.calls.plain("GET", path) for path in CONTENTS]
        self.clock.advance(10 * SECOND)  # so that no rate limit refuses them
        return all([self._send(call._replace(place=before + call.place), self.wires[0]) for call in calls])

    def _send(self, call: Call, wires: list[Wire]) -> bool:
        """Send a call to both, and return whether the episode may go on."""
        self.steps.append(f"{call.place} ({call.note}) at {self.clock.now}")
        for wire, captured in zip(wires, self.captured, strict=True):
            wire.send(call.filled(captured))
        goes_on = True
        for _ in range(call.repeats):
            old, new = (wire.receive(has_body=call.has_body) for wire in wires)
            goes_on = self._compare(call, old, new) and goes_on
        if call.is_last:
            for wire in wires:
                wire.close()
        self.report.counts["REST calls"] += call.repeats
        return goes_on

    def _compare(self, call: Call, old: Response, new: Response) -> bool:
        if call.place.endswith(QUOTING):
            old, new = (each._replace(body=deliveries_last(each.body)) for each in (old, new))
        is_page = _PAGE.search(call.place) is not None
        found = self.comparison.responses(old, new, is_sorted=not call.place.endswith(UNSORTED), is_page=is_page)
        self._capture(call, old, new)
        if call.place.endswith(QUOTING):
            self.report.counts["responses that quote earlier ones"] += 1
            found = list(self._own(found))
        if not found or (self._listed and call.place.endswith(REPEATING)):
            return True
        self._listed.update(_changed(each) for each in found)
        is_listed = self.report.found(self.part, call.place, found, [*self.steps, _shown(call)], self.again)
        # After another status the data differ too, and everything that follows would.
        return is_listed and old.status == new.status

    def _own(self, found: list[str]) -> Iterator[str]:
        """Yield texts that quote no earlier difference, quote no listed explanation, and are not a text's size."""
        texts = {each.partition(".text")[0] for each in found if ".text" in each}
        texts |= {f"{each.partition('.detail')[0]}.response" for each in found if ".detail" in each}  # of a hidden text
        for each in found:
            place, is_size, _ = each.partition(".size: ")
            if _changed(each) in self._listed or (is_size and place in texts) or _ROWS in each:
                continue
            if explained := _EXPLAINED.search(each):
                quotation = Difference("GET /_emulator/explain", f"body.explanation.{explained[0]}")
                if self.report.changes.excuse(quotation):
                    continue
            yield each

    def _capture(self, call: Call, old: Response, new: Response) -> None:
        """Keep what each version issued, so that later calls use it."""
        for response, captured in zip((old, new), self.captured, strict=True):
            if request := response.header("x-request-id"):
                captured["request"] = request
            if len(response.body) > 100_000:
                continue
            for name, pattern in _CAPTURED.items():
                if found := pattern.search(response.body):
                    captured[name] = found[1].decode("latin-1")
                    if call.place == "POST /v1/e/pin" and name == "token":
                        captured["pin token"] = captured[name]
        if call.place.endswith(" /_emulator/clock") and old.status[:3] == "200":
            with suppress(ValueError, KeyError):
                self._ahead = json.loads(old.body)["now"] - self.clock.now
        if self.control and "/_emulator/snapshot" in call.place and old.body == new.body and old.status[:3] == "200":
            with suppress(ValueError):
                self.control.snapshots += [old.body] if "records" in json.loads(old.body) else []


def deliveries_last(body: bytes) -> bytes:
    """Return a journal with its deliveries at its end: they may arrive before or after other responses."""
    if _DELIVERY not in body:
        return body
    body = _ARRIVAL.sub(b"0", body)
    try:
        journal = json.loads(body)
    except ValueError:  # a stream, with an entry on each line
        return b"\n".join(sorted(body.splitlines(), key=lambda line: _DELIVERY in line))
    if "entries" in journal:
        journal["entries"].sort(key=lambda entry: entry["kind"] == "delivery")
    return json.dumps(journal, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _changed(difference: str) -> str:
    """Return the values of a difference without its place."""
    return difference.partition(": ")[2]


def _shown(call: Call) -> str:
    return f"request: {b' | '.join(call.parts)!r:.600}"


def run(pair: Pair, clock: Clock, setup: Setup, seed: int, episodes: range, report: Report) -> None:
    """Run episodes on one engine, in sandbox or production; then kill services with a file, and compare the data."""
    for number in episodes:
        Episode(pair, clock, setup, seed, number, report).run()
    if setup.engine == "file" and episodes:
        _kill_and_compare(pair, clock, setup, seed, episodes, report)


def _kill_and_compare(pair: Pair, clock: Clock, setup: Setup, seed: int, episodes: range, report: Report) -> None:
    """Kill both services right after an answered write, start them again, and compare all data."""
    for number in range(episodes.stop, episodes.stop + 3):
        episode = Episode(pair, clock, setup, seed, number, report)
        header = episode.calls.credentials.header
        for user in range(20):
            vote = episode.calls.plain(
                "POST", "/v1/e/vote?id=rps", {"value": user % 4}, header=header("viewer", clock.now, user=f"{user}")
            )
            answer = episode.calls.plain(
                "POST", "/v1/e/rank?id=rps", {"key": f"{user % 3}"}, header=header("viewer", clock.now, user=f"{user}")
            )
            goes_on = episode._send(answer, episode.wires[0]) and episode._send(vote, episode.wires[0])
            if not goes_on:
                return
        for wires in episode.wires:
            for wire in wires:
                wire.close()
        pair.kill()
        pair.start()
        report.counts["kills"] += 1
        if not episode.compare_contents("after kill "):
            return


def compare_ends(pair: Pair, setup: Setup, report: Report) -> None:
    """Stop both services, and compare their exit codes and logs."""
    comparison = Comparison(*pair)
    codes = [host.stop() for host in pair]
    again = f"make twin ARGS='--only rest --setup \"{setup}\"'"
    if codes[0] != codes[1]:
        report.found(f"rest {setup}", "extcli serve", [f"exit code: {codes[0]} -> {codes[1]}"], [], again)
    if lines := comparison.texts(pair.old.log, pair.new.log, "line"):
        report.found(f"rest {setup}", "stderr of extcli serve", lines, [], again)
    report.counts["logs of services"] += 1
