"""Random series of calls of the whole REST surface, each answer held against the model's."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import jwt
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from emulator.settings import Settings
from running import CLIENT_ID, OTHER_ID, SECRET, Client, Live, run_live
from surface_calls import DAY, HOUR, MINUTE, SECOND, WEEK, Call, Who
from surface_model import Surface, differences
from surface_stores import STORES
from surface_words import BLOBS, CODE_SETS, CUTOFFS, DEFINITIONS, DOCUMENTS, GRANTS, PATCHES

NOON = 2_000_000_000_000
EXAMPLES = int(os.environ.get("SURFACE_EXAMPLES", "0"))
STEPS = int(os.environ.get("SURFACE_STEPS", "40"))

PEOPLE = [
    ("viewer", "1", "777", None),
    ("viewer", "1", "888", None),
    ("viewer", "2", "777", "Utwo"),
    ("viewer", None, "777", "Aabc"),
    ("viewer", None, None, None),
    ("broadcaster", "777", "777", None),
    ("broadcaster", "888", None, None),
    ("admin", "9", "777", None),
    ("admin", "9", None, None),
    ("backend", None, None, None),
    ("backend", None, "888", None),
]
OURS, THEIRS = ([Who(client_id, *person) for person in PEOPLE] for client_id in (CLIENT_ID, OTHER_ID))
WITNESSES = [OURS[index] for index in (0, 1, 5, 7, 9)] + [THEIRS[index] for index in (0, 7, 9)]

# Two extensions, of which one does most, so that things meet.
ANYONE = st.sampled_from([*OURS, *OURS, *OURS, *THEIRS])
WRITERS = st.sampled_from([who for who in [*OURS, *OURS, *THEIRS] if who.role != "viewer"] + OURS[:1])
MANAGERS = st.sampled_from([who for who in [*OURS, *OURS, *THEIRS] if who.role in ("admin", "backend")] + OURS[5:6])
BROADCASTERS = st.sampled_from([OURS[5], OURS[5], OURS[6], THEIRS[5], OURS[7]])
CHANNELS = st.sampled_from([{}, {}, {}, {"channel_id": "777"}, {"channel_id": "888"}])
POLLS = st.sampled_from(["", "quiz", "global-x"])
BUFFERS = st.sampled_from(["", "global-x"])
ADMINS = st.sampled_from([OURS[7], OURS[8], THEIRS[7], OURS[5]])
MAPS = st.dictionaries(st.sampled_from(["1", "2", "9"]), PATCHES, min_size=1)
JSON_STORES = st.sampled_from(["", "globalwarming"])
VALUES = st.one_of(st.integers(0, 3), st.integers(0, 3), st.sampled_from([-99, 99, 63, 64, -100, 100, True, 1.0, "1"]))
SHORT = st.sampled_from([0, 1, 999, SECOND, 30 * SECOND, 5 * MINUTE - 1, HOUR, 5 * HOUR])
LONG = st.sampled_from([DAY - 1, DAY, WEEK - 1, WEEK, 14 * DAY, 90 * DAY - 1, 90 * DAY])


def credential(who: Who) -> str:
    """A self-signed token, or the one that came with a PIN."""
    said = {"role": who.role, "user_id": who.user, "channel_id": who.channel, "opaque_user_id": who.opaque}
    claims = {name: value for name, value in said.items() if value is not None}
    return f"{who.client_id} {who.token or jwt.encode(claims, SECRET)}"


CREDENTIALS = {who: credential(who) for who in (*OURS, *THEIRS)}


class SurfaceMachine(RuleBasedStateMachine):
    """One service and its model, which are told the same."""

    def __init__(self, live: Live) -> None:
        super().__init__()
        self.live = live
        self.http = Client(base_url=f"{live.url}/v1/e/")
        self.touched: tuple[str, dict[str, str]] | None = None
        self.turn = 0

    @initialize()
    def reset(self) -> None:
        self.live.reset()
        self.live.set(NOON)
        self.model = Surface(NOON)
        self.touched = None

    def ask(self, who: Who, method: str, path: str, query: dict[str, str] | None = None, body: Any = ...) -> Any:
        """Make a call of both, hold the answers against each other, and return the service's."""
        response = self._send(who, method, path, query or {}, body)
        expected = self.model.answer(Call(who, method, path, query or {}, None if body is ... else body))
        said = response.json()
        got = response.status_code, said if response.status_code == 200 else said["reason"]
        wrong = [*differences(list(expected), list(got))]
        assert not wrong, f"{who} {method} {path} {query} {body}: {wrong}"
        return said

    def _send(self, who: Who, method: str, path: str, query: dict[str, str], body: Any) -> httpx.Response:
        header = CREDENTIALS.get(who) or credential(who)
        content = None if body is ... else json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        return self.http.request(method, path, params=query, content=content, headers={"Authorization": header})

    @invariant()
    def what_was_touched_is_the_same_to_others(self) -> None:
        """Two of the witnesses look at it, others each time."""
        if self.touched is None:
            return
        (path, query), self.touched = self.touched, None
        for _ in range(2):
            self.turn += 1
            self.ask(WITNESSES[self.turn % len(WITNESSES)], "GET", path, query)

    def teardown(self) -> None:
        """At the end everything is looked at."""
        for index, (path, query) in enumerate(READINGS):
            for offset in (0, 3, 6):
                self.ask(WITNESSES[(index + offset) % len(WITNESSES)], "GET", path, query)
        self.http.close()

    @rule(who=ANYONE, where=CHANNELS, poll=POLLS, value=VALUES, times=st.sampled_from([None, None, 1, 2, 31]))
    def cast_vote(self, who: Who, where: dict[str, str], poll: str, value: object, times: int | None) -> None:
        self.ask(who, "POST", "vote", {"id": poll} | where, {"value": value} | ({"count": times} if times else {}))
        self.touched = "vote", {"id": poll}

    @rule(who=ANYONE, where=CHANNELS, poll=POLLS)
    def read_poll(self, who: Who, where: dict[str, str], poll: str) -> None:
        self.ask(who, "GET", "vote", {"id": poll} | where)
        self.ask(who, "GET", "vote_config", {"id": poll} | where)

    @rule(who=WRITERS, where=CHANNELS, poll=POLLS)
    def clear_poll(self, who: Who, where: dict[str, str], poll: str) -> None:
        self.ask(who, "DELETE", "vote", {"id": poll} | where)
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

    @rule(who=ANYONE, where=CHANNELS, buffer=BUFFERS, answer=st.sampled_from(["red", "Red", "", "blé", 5]))
    def submit_answer(self, who: Who, where: dict[str, str], buffer: str, answer: object) -> None:
        self.ask(who, "POST", "rank", {"id": buffer} | where, {"key": answer})
        self.touched = "rank", {"id": buffer}

    @rule(who=WRITERS, where=CHANNELS, buffer=BUFFERS, clears=st.sampled_from([False, False, False, True]))
    def read_or_clear_ranking(self, who: Who, where: dict[str, str], buffer: str, clears: bool) -> None:
        self.ask(who, "GET", "rank", {"id": buffer} | where)
        if clears:
            self.ask(who, "DELETE", "rank", {"id": buffer} | where)
            self.touched = "rank", {"id": buffer}

    @rule(who=ANYONE, where=CHANNELS, buffer=BUFFERS, blob=BLOBS)
    def accumulate(self, who: Who, where: dict[str, str], buffer: str, blob: object) -> None:
        self.ask(who, "POST", "accumulate", {"id": buffer} | where, blob)
        self.touched = "accumulate", {"id": buffer}

    @rule(who=WRITERS, where=CHANNELS, buffer=BUFFERS, start=st.none() | st.integers(-5, 2000) | st.just("soon"))
    def read_buffer(self, who: Who, where: dict[str, str], buffer: str, start: int | str | None) -> None:
        since = str(self.model.time.now - start) if isinstance(start, int) else start
        self.ask(who, "GET", "accumulate", {"id": buffer} | where | ({"start": since} if since else {}))

    @rule(who=ANYONE, where=CHANNELS, store=st.sampled_from([*STORES]), document=DOCUMENTS)
    def replace_store(self, who: Who, where: dict[str, str], store: str, document: object) -> None:
        self.ask(who, "POST", store, where, document)
        self.touched = store, where

    @rule(who=ANYONE, where=CHANNELS, store=st.sampled_from([*STORES]), patch=PATCHES)
    def patch_store(self, who: Who, where: dict[str, str], store: str, patch: object) -> None:
        self.ask(who, "PATCH", store, where, patch)
        self.touched = store, where

    @rule(who=ADMINS, where=CHANNELS, store=st.sampled_from(["viewer_state", "extension_viewer_state"]), patches=MAPS)
    def patch_many_stores(self, who: Who, where: dict[str, str], store: str, patches: dict[str, Any]) -> None:
        self.ask(who, "PATCH", store, where, patches)
        self.touched = store, {"user_ids": "1,2,9,Aabc"} | where

    @rule(
        who=ANYONE,
        where=CHANNELS,
        store=st.sampled_from([*STORES]),
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

    @rule(who=MANAGERS, really=st.sampled_from([False, False, True]))
    def clear_codes(self, who: Who, really: bool) -> None:
        self.ask(who, *(("DELETE", "codes") if really else ("GET", "codes")))
        self.touched = "codes/eligibility", {}

    @rule(who=MANAGERS, body=GRANTS, users=st.lists(st.sampled_from(["1", "1", "2", "Aabc", "777"]), max_size=4))
    def mark_from_list(self, who: Who, body: dict[str, Any], users: list[str]) -> None:
        self.ask(who, "POST", "codes/mark_from_list", body=body | {"users": users})
        self.touched = "codes/eligibility", {}

    @rule(who=MANAGERS, where=CHANNELS, poll=POLLS, body=GRANTS, correct=st.integers(0, 3), cutoff=CUTOFFS)
    def mark_from_poll(
        self, who: Who, where: dict[str, str], poll: str, body: dict[str, Any], correct: int, cutoff: tuple[int, bool]
    ) -> None:
        early, in_seconds = cutoff
        instant = (self.model.time.now - early) // (SECOND if in_seconds else 1)
        asked = body | {"correct": correct, "cutoff_timestamp": instant}
        self.ask(who, "POST", "codes/mark_from_poll", {"id": poll} | where, asked)
        self.touched = "codes/eligibility", {}

    @rule(who=st.sampled_from([*OURS[:5], *OURS[:5], THEIRS[0]]), prize=st.sampled_from([0, 0, 0, 1, 1, 3, 10, -1]))
    def redeem(self, who: Who, prize: int) -> None:
        self.ask(who, "GET", "codes/eligibility")
        self.ask(who, "POST", "codes/redeem", body={"prize": prize})
        self.ask(who, "GET", "codes/redeemed")

    @rule(who=st.sampled_from([OURS[5], OURS[6], OURS[0], OURS[9], THEIRS[5]]))
    def request_pin(self, who: Who) -> None:
        pin = self._send(who, "POST", "link/pin", {}, {}).raise_for_status().json()["pin"]
        self.model.pins.issued(who, pin)

    @rule(who=st.sampled_from([OURS[0], OURS[0], THEIRS[0]]))
    def issue_pin(self, who: Who) -> None:
        issued = self._send(who, "POST", "pin", {}, {"identifier": who.client_id}).raise_for_status().json()
        self.model.pins.issued(who, issued["pin"], issued["token"])

    @precondition(lambda self: self.model.pins.pins)
    @rule(who=BROADCASTERS, which=st.integers(0, 3))
    def validate_pin(self, who: Who, which: int) -> None:
        pins = self.model.pins.pins
        self.ask(who, "POST", "validate_pin", body={"pin": pins[-1 - which % len(pins)].text})
        self.touched = "pin_token_exists", {}

    @rule(who=BROADCASTERS)
    def revoke_pins(self, who: Who) -> None:
        self.ask(who, "GET", "pin_token_exists")
        self.ask(who, "DELETE", "pin")
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
        self._move(self.model.time.now + ms)

    @rule(ms=LONG, really=st.sampled_from([False, False, True]))
    def advance_far(self, ms: int, really: bool) -> None:
        self._move(self.model.time.now + (ms if really else 1))

    @precondition(lambda self: self.model.ends())
    @rule(which=st.integers(0, 5), before=st.sampled_from([0, 1]))
    def advance_to_an_end(self, which: int, before: int) -> None:
        """Or to one millisecond before it."""
        ends = self.model.ends()
        self._move(ends[which % len(ends)] - before)

    @rule(ms=st.sampled_from([1, SECOND, HOUR]))
    def set_back(self, ms: int) -> None:
        self._move(self.model.time.now - ms)

    def _move(self, now: int) -> None:
        self.live.set(now)
        self.model.move(now)


POLL_IDS, BUFFER_IDS = ({"id": ""}, {"id": "quiz"}, {"id": "global-x"}), ({"id": ""}, {"id": "global-x"})
READINGS = (
    *((path, query) for path in ("vote", "vote_logs", "vote_config") for query in POLL_IDS),
    *((path, query) for path in ("rank", "accumulate") for query in BUFFER_IDS),
    *((store, {}) for store in STORES),
    *((path, {}) for path in ("all_state", "all_config", "codes", "codes/eligibility", "codes/redeemed")),
    *((path, {"id": name}) for path in ("json_store",) for name in ("", "globalwarming")),
)


class SurfaceContract:
    """A subclass whose fixture `data` answers the URL of an engine holds the service on it against the model."""

    @pytest.fixture
    def data(self) -> str:
        raise NotImplementedError

    def test_every_answer_is_that_of_the_specification_after_any_series_of_calls(self, data: str) -> None:
        chosen = settings(
            max_examples=EXAMPLES or 25,
            stateful_step_count=STEPS,
            derandomize=not EXAMPLES,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        with run_live(Settings(data=data)) as live:
            run_state_machine_as_test(lambda: SurfaceMachine(live), settings=chosen)
