"""The kinds of writes, each derived from a number, and how often each number is found afterwards.

Each number has its own voter, answer, entry, document or winner, so that lost and repeated writes are detected exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection
from itertools import groupby

import httpx

CHANNEL = "777"
ANSWERS_PER_RANKING = 90
"""Below the 100 that a ranking shows."""
PATCHES_PER_STORE = 500
"""Keeps the document below 64 KiB."""
WINNERS = 20_000
CODES = [f"CODE-{number:05}" for number in range(WINNERS)]

Ask = Callable[..., httpx.Response]
"""`ask(method, path, role, user=…, channel=…, json=…, params=…)`: one request with its own token."""


class PartialWrite(AssertionError):
    """A write was done in part."""


class Write(ABC):
    """One kind of write."""

    name: str

    def prepare(self, ask: Ask) -> None:
        """Create what the writes need."""
        return

    @abstractmethod
    def send(self, ask: Ask, number: int) -> httpx.Response:
        """Send one write."""

    @abstractmethod
    def found(self, ask: Ask, numbers: Collection[int]) -> Counter[int]:
        """Count how often each number is found, unexpected ones too; raises `PartialWrite`."""


class Vote(Write):
    """A vote. Log and statistics must agree."""

    name = "votes"

    def send(self, ask: Ask, number: int) -> httpx.Response:
        return ask("POST", "vote", "viewer", user=f"voter{number}", channel=CHANNEL, json={"value": number % 64})

    def found(self, ask: Ask, numbers: Collection[int]) -> Counter[int]:
        log = ask("GET", "vote_logs", "backend", channel=CHANNEL).json()["result"]
        poll = ask("GET", "vote", "backend", channel=CHANNEL).json()
        values = {int(entry["identifier"].removeprefix("voter")): entry["value"] for entry in log}
        if (len(log), sum(values.values())) != (poll["count"], poll["sum"]):
            raise PartialWrite(f"the poll counts {poll['count']} votes, and its log has {len(log)}")
        if wrong := [number for number, value in values.items() if value != number % 64]:
            raise PartialWrite(f"votes with wrong values: {wrong}")
        return Counter(int(entry["identifier"].removeprefix("voter")) for entry in log)


class Answer(Write):
    """A unique answer, so that its score is how often it was counted."""

    name = "answers"

    def send(self, ask: Ask, number: int) -> httpx.Response:
        answer = {"key": str(number)}
        return ask("POST", "rank", "viewer", user=f"r{number}", channel=CHANNEL, json=answer, params=_ranking(number))

    def found(self, ask: Ask, numbers: Collection[int]) -> Counter[int]:
        rankings = {number // ANSWERS_PER_RANKING: number for number in numbers}
        pages = [
            ask("GET", "rank", "backend", channel=CHANNEL, params=_ranking(number)).json()
            for number in rankings.values()
        ]
        return Counter({int(score["key"]): score["score"] for page in pages for score in page["data"]})


def _ranking(number: int) -> dict[str, str]:
    return {"id": f"r{number // ANSWERS_PER_RANKING}"}


class Entry(Write):
    """An entry of a buffer."""

    name = "entries"

    def send(self, ask: Ask, number: int) -> httpx.Response:
        return ask("POST", "accumulate", "backend", channel=CHANNEL, json={"n": number})

    def found(self, ask: Ask, numbers: Collection[int]) -> Counter[int]:
        entries = ask("GET", "accumulate", "backend", channel=CHANNEL).json()["data"]
        return Counter(entry["data"]["n"] for entry in entries)


class Store(Write):
    """The replacement of a viewer's store."""

    name = "stores"

    def send(self, ask: Ask, number: int) -> httpx.Response:
        document = {"n": number, "filling": "x" * 200}
        return ask("POST", "extension_viewer_state", "viewer", user=str(number), channel=CHANNEL, json=document)

    def found(self, ask: Ask, numbers: Collection[int]) -> Counter[int]:
        found: Counter[int] = Counter()
        for _, batch in groupby(sorted(numbers), lambda number: number // 500):
            users = {"user_ids": ",".join(map(str, batch))}
            stores = ask("GET", "extension_viewer_state", "admin", user="9001", channel=CHANNEL, params=users).json()
            found.update(int(user) for user, store in stores.items() if store.get("n") == int(user))
        return found


class Patch(Write):
    """A patch of two operations on a shared store, which applies completely or not at all."""

    name = "patches"

    def send(self, ask: Ask, number: int) -> httpx.Response:
        patch = [{"op": "add", "path": f"/{part}/n{number}", "value": 1} for part in ("left", "right")]
        return ask("PATCH", "channel_state", "broadcaster", **owner_of(number), json=patch)

    def found(self, ask: Ask, numbers: Collection[int]) -> Counter[int]:
        found: Counter[int] = Counter()
        for owner in {owner_of(number)["channel"]: owner_of(number) for number in numbers}.values():
            store = ask("GET", "channel_state", "broadcaster", **owner).json()
            if store.get("left") != store.get("right"):
                raise PartialWrite(f"only one operation of a patch was done, in channel {owner['channel']}")
            found.update(int(name.removeprefix("n")) for name in store.get("left", {}))
        return found


def owner_of(number: int) -> dict[str, str]:
    """Return the owner of the channel of a patch; each holds as many as the limits of a channel allow."""
    channel = str(9_000 + number // PATCHES_PER_STORE)
    return {"user": channel, "channel": channel}


class Redemption(Write):
    """The redemption of a winner's only code. Codes are handed out once, in the order of the list."""

    name = "redemptions"

    def prepare(self, ask: Ask) -> None:
        marks = {"prizes": [0], "prize_limits": [1], "users": [f"w{number}" for number in range(WINNERS)]}
        ask("PUT", "codes", "backend", json={"codes": [CODES], "names": ["Hats"]}).raise_for_status()
        ask("POST", "codes/mark_from_list", "backend", json=marks).raise_for_status()

    def send(self, ask: Ask, number: int) -> httpx.Response:
        return ask("POST", "codes/redeem", "viewer", user=f"w{number}", channel=CHANNEL, json={"prize": 0})

    def found(self, ask: Ask, numbers: Collection[int]) -> Counter[int]:
        held = {
            number: ask("GET", "codes/redeemed", "viewer", user=f"w{number}", channel=CHANNEL).json()["redeemed"][0]
            for number in numbers
        }
        codes = sorted(code for each in held.values() for code in each)
        if codes != CODES[: len(codes)]:
            raise PartialWrite("some redeemed codes are missing or held twice")
        return Counter({number: len(each) for number, each in held.items() if each})


KINDS: tuple[Write, ...] = (Vote(), Answer(), Entry(), Store(), Patch(), Redemption())
