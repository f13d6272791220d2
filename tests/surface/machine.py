"""Random series of calls of the whole REST surface. The rules are the service's verbs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from support.service import OTHER_ID
from surface.callers import (
    ADDS_UP,
    ADMINS,
    ANSWERED,
    ANYONE,
    BACK,
    BROADCASTERS,
    BUFFERS,
    CHANNELS,
    FIRST_GRANT,
    FIRST_SETS,
    JSON_STORES,
    LONG,
    MANAGERS,
    MAPS,
    OURS,
    OWN_PATCHES,
    POLLS,
    PRIZES,
    RARELY,
    SHORT,
    STORE,
    THEIRS,
    VOTERS,
    VOTES,
    WRITERS,
)
from surface.calls import SECOND, Who
from surface.comparison import NOON, Asking
from surface.generated import BLOBS, CODE_SETS, CUTOFFS, DEFINITIONS, DOCUMENTS, GRANTS, PATCHES, WRITTEN


class SurfaceMachine(Asking):
    """One service and its model, which are told the same."""

    # Hypothesis leaves most rules out of most examples, and runs each of these: so there is always something there.

    @initialize(
        adds_up=st.booleans(),
        votes=st.lists(st.tuples(POLLS, VOTES), min_size=6, max_size=12),
        answers=st.lists(ANSWERED, min_size=6, max_size=12),
    )
    def begin_with_votes(self, adds_up: bool, votes: list[Any], answers: list[Any]) -> None:
        if adds_up:
            self.ask(OURS[5], "POST", "vote_config", body={"config": ADDS_UP | {"endsAt": NOON // SECOND + 3_600}})
        for poll, vote in votes:
            self.cast_votes(poll, [vote])
        self.submit_answers("", answers)

    @initialize(documents=st.lists(st.tuples(ANYONE, STORE, WRITTEN), min_size=8, max_size=12), patches=OWN_PATCHES)
    def begin_with_stores(self, documents: list[Any], patches: list[Any]) -> None:
        for who, store, document in documents:
            self.ask(who, "POST", store, {"channel_id": "777"}, document)
        for who, store, patch in patches:
            self.ask(who, "PATCH", store, {"channel_id": "777"}, patch)

    @initialize(
        tries=st.lists(st.tuples(VOTERS, PRIZES), min_size=4, max_size=8), pins=st.lists(BROADCASTERS, min_size=1)
    )
    def begin_with_codes_and_pins(self, tries: list[Any], pins: list[Who]) -> None:
        self.ask(OURS[9], "PUT", "codes", body=FIRST_SETS)
        self.ask(OURS[9], "POST", "codes/mark_from_list", body=FIRST_GRANT | {"users": ["1", "2"]})
        self.ask(OURS[9], "POST", "codes/mark_from_list", body=FIRST_GRANT | {"users": ["1"]})
        self.redeem(tries)
        self.issue_pin(OURS[0])
        for who in pins[:2]:
            self.validate_pin(who, 0)
            self.request_pin(who)
        self.use_pin_token(0, 1)

    @rule(poll=POLLS, votes=st.lists(VOTES, min_size=1, max_size=6))
    def cast_votes(self, poll: str, votes: list[tuple[Who, dict[str, str], object, int | None]]) -> None:
        for who, where, value, times in votes:
            body = {"value": value} | ({"count": times} if times else {})
            self.ask(who, "POST", "vote", {"id": poll} | where, body)
        self.touched = "vote", {"id": poll}

    @rule(who=ANYONE, where=CHANNELS, poll=POLLS)
    def read_poll(self, who: Who, where: dict[str, str], poll: str) -> None:
        self.ask(who, "GET", "vote", {"id": poll} | where)
        self.ask(who, "GET", "vote_config", {"id": poll} | where)

    @rule(who=WRITERS, where=CHANNELS, poll=POLLS, really=RARELY)
    def clear_poll(self, who: Who, where: dict[str, str], poll: str, really: bool) -> None:
        self.ask(who, "DELETE" if really else "GET", "vote", {"id": poll} | where)
        self.touched = "vote", {"id": poll}

    @rule(who=WRITERS, where=CHANNELS, poll=POLLS, config=DEFINITIONS, begins=st.none() | st.integers(-2, 60),
          lasts=st.none() | st.integers(-1, 600))  # fmt: skip
    def define_poll(
        self, who: Who, where: dict[str, str], poll: str, config: dict[str, Any], begins: int | None, lasts: int | None
    ) -> None:
        seconds = self.model.time.now // SECOND
        begins_at = {} if begins is None else {"startsAt": seconds + begins}
        ends_at = {} if lasts is None else {"endsAt": seconds + (begins or 0) + lasts}
        self.ask(who, "POST", "vote_config", {"id": poll} | where, {"config": config | begins_at | ends_at})
        self.touched = "vote_config", {"id": poll}

    @rule(
        who=MANAGERS,
        where=CHANNELS,
        poll=POLLS,
        since=st.none() | st.integers(-5, 2000),
        limit=st.none() | st.integers(0, 3),
    )
    def read_vote_log(self, who: Who, where: dict[str, str], poll: str, since: int | None, limit: int | None) -> None:
        from_then = {} if since is None else {"since": str(self.model.time.now - since)}
        at_most = {} if limit is None else {"limit": str(limit)}
        self.ask(who, "GET", "vote_logs", {"id": poll} | where | from_then | at_most)

    @rule(buffer=BUFFERS, answers=st.lists(ANSWERED, min_size=1, max_size=6))
    def submit_answers(self, buffer: str, answers: list[tuple[Who, dict[str, str], object]]) -> None:
        for who, where, answer in answers:
            self.ask(who, "POST", "rank", {"id": buffer} | where, {"key": answer})
        self.touched = "rank", {"id": buffer}

    @rule(who=WRITERS, where=CHANNELS, buffer=BUFFERS, clears=RARELY)
    def read_or_clear_ranking(self, who: Who, where: dict[str, str], buffer: str, clears: bool) -> None:
        self.ask(who, "GET", "rank", {"id": buffer} | where)
        if clears:
            self.ask(who, "DELETE", "rank", {"id": buffer} | where)
            self.touched = "rank", {"id": buffer}

    @rule(buffer=BUFFERS, blobs=st.lists(st.tuples(ANYONE, CHANNELS, BLOBS), min_size=1, max_size=4))
    def accumulate(self, buffer: str, blobs: list[tuple[Who, dict[str, str], object]]) -> None:
        for who, where, blob in blobs:
            self.ask(who, "POST", "accumulate", {"id": buffer} | where, blob)
        self.touched = "accumulate", {"id": buffer}

    @rule(who=WRITERS, where=CHANNELS, buffer=BUFFERS, start=st.none() | st.integers(-5, 2000) | st.just("soon"))
    def read_buffer(self, who: Who, where: dict[str, str], buffer: str, start: int | str | None) -> None:
        since = str(self.model.time.now - start) if isinstance(start, int) else start
        self.ask(who, "GET", "accumulate", {"id": buffer} | where | ({"start": since} if since else {}))

    @rule(who=ANYONE, where=CHANNELS, store=STORE, document=DOCUMENTS)
    def replace_store(self, who: Who, where: dict[str, str], store: str, document: object) -> None:
        self.ask(who, "POST", store, where, document)
        self.touched = store, where

    @rule(who=ANYONE, where=CHANNELS, store=STORE, patches=st.lists(PATCHES, min_size=1, max_size=4))
    def patch_store(self, who: Who, where: dict[str, str], store: str, patches: list[object]) -> None:
        for patch in patches:
            self.ask(who, "PATCH", store, where, patch)
        self.touched = store, where

    @rule(who=ADMINS, where=CHANNELS, store=st.sampled_from(["viewer_state", "extension_viewer_state"]), patches=MAPS)
    def patch_many_stores(self, who: Who, where: dict[str, str], store: str, patches: dict[str, Any]) -> None:
        self.ask(who, "PATCH", store, where, patches)
        self.touched = store, {"user_ids": "1,2,9,Aabc"} | where

    @rule(
        who=ANYONE,
        where=CHANNELS,
        store=STORE,
        others=st.sampled_from([{}, {"user_ids": "2,1,7"}, {"userID": "1"}]),
    )
    def read_stores(self, who: Who, where: dict[str, str], store: str, others: dict[str, str]) -> None:
        self.ask(who, "GET", store, where | others)
        self.ask(who, "GET", "all_state", where)
        self.ask(who, "GET", "all_config", where)

    @rule(who=WRITERS, where=CHANNELS, name=JSON_STORES, document=DOCUMENTS)
    def replace_json_store(self, who: Who, where: dict[str, str], name: str, document: object) -> None:
        self.ask(who, "POST", "json_store", {"id": name} | where, document)
        self.touched = "json_store", {"id": name}

    @rule(who=MANAGERS, body=CODE_SETS)
    def define_codes(self, who: Who, body: dict[str, Any]) -> None:
        self.ask(who, "PUT", "codes", body=body)
        self.touched = "codes", {}

    @rule(who=MANAGERS, really=RARELY)
    def clear_codes(self, who: Who, really: bool) -> None:
        self.ask(who, *(("DELETE", "codes") if really else ("GET", "codes")))
        self.touched = "codes/eligibility", {}

    @rule(who=MANAGERS, body=GRANTS, users=st.lists(st.sampled_from(["1", "1", "2", "Aabc", "777"]), max_size=4))
    def mark_from_list(self, who: Who, body: dict[str, Any], users: list[str]) -> None:
        self.ask(who, "POST", "codes/mark_from_list", body=body | {"users": users})
        self.touched = "codes/eligibility", {}

    @rule(
        who=MANAGERS, where=CHANNELS, poll=POLLS, body=GRANTS, correct=st.integers(0, 3), cutoff=CUTOFFS, voter=VOTERS
    )
    def mark_from_poll(
        self,
        who: Who,
        where: dict[str, str],
        poll: str,
        body: dict[str, Any],
        correct: int,
        cutoff: tuple[int, bool],
        voter: Who,
    ) -> None:
        self.ask(voter, "POST", "vote", {"id": poll}, {"value": correct})
        early, in_seconds = cutoff
        instant = (self.model.time.now - early) // (SECOND if in_seconds else 1)
        asked = body | {"correct": correct, "cutoff_timestamp": instant}
        self.ask(who, "POST", "codes/mark_from_poll", {"id": poll} | where, asked)
        self.ask(voter, "GET", "codes/eligibility")
        self.touched = "codes/eligibility", {}

    @rule(tries=st.lists(st.tuples(VOTERS, PRIZES), min_size=1, max_size=4))
    def redeem(self, tries: list[tuple[Who, int]]) -> None:
        for who, prize in tries:
            self.ask(who, "POST", "codes/redeem", body={"prize": prize})
        self.ask(tries[0][0], "GET", "codes/eligibility")
        self.touched = "codes/redeemed", {}

    @rule(who=st.sampled_from([OURS[5], OURS[6], OURS[0], OURS[9], THEIRS[5]]))
    def request_pin(self, who: Who) -> None:
        pin = self.send(who, "POST", "link/pin", {}, {}).raise_for_status().json()["pin"]
        self.model.pins.issued(who, pin)

    @rule(who=st.sampled_from([OURS[0], OURS[0], THEIRS[0]]))
    def issue_pin(self, who: Who) -> None:
        issued = self.send(who, "POST", "pin", {}, {"identifier": who.client_id}).raise_for_status().json()
        self.model.pins.issued(who, issued["pin"], issued["token"])

    @precondition(lambda self: self.model.pins.pins)
    @rule(who=st.none() | BROADCASTERS, which=st.integers(0, 3))
    def validate_pin(self, who: Who | None, which: int) -> None:
        """By somebody, or by the one whose it is."""
        pins = self.model.pins.pins
        pin = pins[-1 - which % len(pins)]
        owner = THEIRS[5] if pin.client_id == OTHER_ID else OURS[6] if pin.channel == "888" else OURS[5]
        self.ask(who or owner, "POST", "validate_pin", body={"pin": pin.text})
        self.touched = "pin_token_exists", {}

    @rule(who=BROADCASTERS, really=RARELY)
    def revoke_pins(self, who: Who, really: bool) -> None:
        self.ask(who, "GET", "pin_token_exists")
        if really:
            self.ask(who, "DELETE", "pin")
            for which in range(len(self.model.pins.pins[:4])):
                self.validate_pin(None, which)
            self.touched = "pin_token_exists", {}

    @precondition(lambda self: any(pin.token for pin in self.model.pins.pins))
    @rule(which=st.integers(0, 3), value=st.integers(0, 3))
    def use_pin_token(self, which: int, value: int) -> None:
        pins = [pin for pin in self.model.pins.pins if pin.token]
        pin = pins[-1 - which % len(pins)]
        who = Who(pin.client_id, "broadcaster", token=pin.token)
        self.ask(who, "GET", "user_info")
        self.ask(who, "POST", "vote", body={"value": value})
        self.ask(who, "POST", "channel_state", body={"by": value})
        self.ask(who, "GET", "pin_token_exists")

    @rule(ms=SHORT)
    def advance(self, ms: int) -> None:
        self.move(self.model.time.now + ms)

    @rule(ms=LONG, really=RARELY)
    def advance_far(self, ms: int, really: bool) -> None:
        self.move(self.model.time.now + (ms if really else 1))

    @precondition(lambda self: self.model.ends())
    @rule(which=st.integers(0, 11), before=st.sampled_from([0, 1]))
    def advance_to_an_end(self, which: int, before: int) -> None:
        """Or to one millisecond before it."""
        ends = self.model.ends()
        self.move(ends[which % len(ends)] - before)
        if self.model.pins.pins:
            self.validate_pin(None, which)

    @rule(ms=BACK)
    def set_back(self, ms: int) -> None:
        self.move(self.model.time.now - ms)

    @rule(really=RARELY)
    def reset(self, really: bool) -> None:
        if really:
            self.begin()
