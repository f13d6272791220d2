"""Random series of calls to the whole REST surface. Each rule is a verb of the service."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from support.service import OTHER_ID
from surface.callers import (
    ADMINS,
    ANYONE,
    BACK,
    BROADCASTERS,
    CHANNELS,
    FIRST_GRANT,
    FIRST_SETS,
    GAMES,
    JSON_STORES,
    LONG,
    MANAGERS,
    MAPS,
    ON_TRIVIA,
    OURS,
    OWN_PATCHES,
    POLLS,
    POSTS,
    PRIZES,
    RARELY,
    SHORT,
    STORE,
    THEIRS,
    VOTERS,
    WRITERS,
)
from surface.calls import SECOND, Caller
from surface.generated import (
    CODE_SETS,
    CUTOFFS,
    DOCUMENTS,
    GRANTS,
    PATCHES,
    SETTLED,
    TRIVIA_EDITS,
    WRITTEN,
)
from surface.model import differences
from surface.poll_machine import PollMachine


class SurfaceMachine(PollMachine):
    """All rules for a service and its model."""

    @initialize(documents=st.lists(st.tuples(ANYONE, STORE, WRITTEN), min_size=8, max_size=12), patches=OWN_PATCHES)
    def start_with_stores(self, documents: list[Any], patches: list[Any]) -> None:
        for caller, store, document in documents:
            self.call(caller, "POST", store, {"channel_id": "777"}, document)
        for caller, store, patch in patches:
            self.call(caller, "PATCH", store, {"channel_id": "777"}, patch)

    @initialize(
        tries=st.lists(st.tuples(VOTERS, PRIZES), min_size=4, max_size=8), pins=st.lists(BROADCASTERS, min_size=1)
    )
    def start_with_codes_and_pins(self, tries: list[Any], pins: list[Caller]) -> None:
        self.call(OURS[9], "PUT", "codes", body=FIRST_SETS)
        self.call(OURS[9], "POST", "codes/mark_from_list", body=FIRST_GRANT | {"users": ["1", "2"]})
        self.call(OURS[9], "POST", "codes/mark_from_list", body=FIRST_GRANT | {"users": ["1"]})
        self.redeem(tries)
        self.call(OURS[9], "PUT", "codes", body={"codes": [["A4", "A5"]], "names": ["Hat"]})
        self.redeem(tries[:1])
        self.issue_pin(OURS[0])
        for caller in pins[:2]:
            self.validate_pin(caller, 0)
            self.request_pin(caller)
        self.use_pin_token(0, 1)

    @initialize(
        votes=st.lists(ON_TRIVIA, min_size=8, max_size=12),
        edits=st.lists(TRIVIA_EDITS, min_size=8, max_size=12),
        again=st.booleans(),
    )
    def start_with_trivia(self, votes: list[Any], edits: list[Any], again: bool) -> None:
        self.add_question("q2")
        self.add_question("q1", order=-1.5)
        self.vote_on_questions([(OURS[0], {}, "q1", "o1"), *votes])
        ended = {"transition": "state-results", "winner": "o1"}
        self.edit_trivia(OURS[9], ("POST", "curated_poll_state", {"id": "q1"}, ended))
        self.edit_trivia(OURS[9], ("DELETE", "curated_poll_edit_option", {}, {"question": "q1", "option": "o1"}))
        for edit in edits:
            self.edit_trivia(OURS[9], edit)
        if again:
            self.call(OURS[9], "DELETE", "curated_poll_edit", body={"id": "q1"})
            self.add_question("q1")
            self.vote_on_questions(votes[:2])

    def add_question(self, id: str, **texts: object) -> None:
        self.call(OURS[9], "POST", "curated_poll_edit", body={"id": id, **texts})
        for option in ("o1", "o2"):
            self.call(OURS[9], "POST", "curated_poll_edit_option", body={"id": id, "option": {"id": option}})
        self.call(OURS[9], "POST", "curated_poll_state", {"id": id}, {"transition": "state-unlocked"})
        self.call(OURS[0], "GET", "curated_poll")

    @initialize(
        posts=st.lists(POSTS, min_size=8, max_size=12),
        settled=st.lists(st.tuples(GAMES, st.integers(0, 3), SETTLED), min_size=6, max_size=8),
    )
    def start_with_games(self, posts: list[Any], settled: list[Any]) -> None:
        self.post_to_games(posts)
        for game, at, which in settled:
            self.settle_purchase(game, "validate", at, which)

    @rule(caller=ANYONE, channel=CHANNELS, store=STORE, document=DOCUMENTS)
    def replace_store(self, caller: Caller, channel: dict[str, str], store: str, document: object) -> None:
        self.call(caller, "POST", store, channel, document)
        self.changed = store, channel

    @rule(caller=ANYONE, channel=CHANNELS, store=STORE, patches=st.lists(PATCHES, min_size=1, max_size=4))
    def patch_store(self, caller: Caller, channel: dict[str, str], store: str, patches: list[object]) -> None:
        for patch in patches:
            self.call(caller, "PATCH", store, channel, patch)
        self.changed = store, channel

    @rule(
        caller=ADMINS, channel=CHANNELS, store=st.sampled_from(["viewer_state", "extension_viewer_state"]), patches=MAPS
    )
    def patch_many_stores(self, caller: Caller, channel: dict[str, str], store: str, patches: dict[str, Any]) -> None:
        self.call(caller, "PATCH", store, channel, patches)
        self.changed = store, {"user_ids": "1,2,9,Aabc,U2,UX2Y"} | channel

    @rule(
        caller=ANYONE,
        channel=CHANNELS,
        store=STORE,
        others=st.sampled_from([{}, {"user_ids": "2,1,7,UX2Y"}, {"userID": "1"}, {"userID": "U2"}]),
    )
    def read_stores(self, caller: Caller, channel: dict[str, str], store: str, others: dict[str, str]) -> None:
        self.call(caller, "GET", store, channel | others)
        self.call(caller, "GET", "all_state", channel)
        self.call(caller, "GET", "all_config", channel)

    @rule(caller=WRITERS, channel=CHANNELS, name=JSON_STORES, document=DOCUMENTS)
    def replace_json_store(self, caller: Caller, channel: dict[str, str], name: str, document: object) -> None:
        self.call(caller, "POST", "json_store", {"id": name} | channel, document)
        self.changed = "json_store", {"id": name}

    @rule(caller=MANAGERS, body=CODE_SETS)
    def define_codes(self, caller: Caller, body: dict[str, Any]) -> None:
        self.call(caller, "PUT", "codes", body=body)
        self.changed = "codes", {}

    @rule(caller=MANAGERS, really=RARELY)
    def clear_codes(self, caller: Caller, really: bool) -> None:
        self.call(caller, *(("DELETE", "codes") if really else ("GET", "codes")))
        self.changed = "codes/eligibility", {}

    @rule(
        caller=MANAGERS,
        body=GRANTS,
        users=st.lists(st.sampled_from(["1", "1", "2", "U2", "UX2Y", "Aabc", "777"]), max_size=4),
    )
    def mark_from_list(self, caller: Caller, body: dict[str, Any], users: list[str]) -> None:
        self.call(caller, "POST", "codes/mark_from_list", body=body | {"users": users})
        self.changed = "codes/eligibility", {}

    @rule(
        caller=MANAGERS,
        channel=CHANNELS,
        poll=POLLS,
        body=GRANTS,
        correct=st.integers(0, 3),
        cutoff=CUTOFFS,
        voter=VOTERS,
    )
    def mark_from_poll(
        self,
        caller: Caller,
        channel: dict[str, str],
        poll: str,
        body: dict[str, Any],
        correct: int,
        cutoff: tuple[int, bool],
        voter: Caller,
    ) -> None:
        self.call(voter, "POST", "vote", {"id": poll}, {"value": correct})
        early, in_seconds = cutoff
        instant = (self.model.clock.now - early) // (SECOND if in_seconds else 1)
        request = body | {"correct": correct, "cutoff_timestamp": instant}
        self.call(caller, "POST", "codes/mark_from_poll", {"id": poll} | channel, request)
        self.call(voter, "GET", "codes/eligibility")
        self.changed = "codes/eligibility", {}

    @rule(tries=st.lists(st.tuples(VOTERS, PRIZES), min_size=1, max_size=4))
    def redeem(self, tries: list[tuple[Caller, int]]) -> None:
        for caller, prize in tries:
            self.call(caller, "POST", "codes/redeem", body={"prize": prize})
        self.call(tries[0][0], "GET", "codes/eligibility")
        self.changed = "codes/redeemed", {}

    @rule(caller=st.sampled_from([OURS[5], OURS[6], OURS[0], OURS[9], OURS[10], THEIRS[5]]))
    def request_pin(self, caller: Caller) -> None:
        pin = self.send(caller, "POST", "link/pin", {}, {}).raise_for_status().json()["pin"]
        self.model.people.wrote(caller)
        self.model.pins.issued(caller, pin)

    @rule(caller=st.sampled_from([OURS[0], OURS[0], THEIRS[0]]))
    def issue_pin(self, caller: Caller) -> None:
        issued = self.send(caller, "POST", "pin", {}, {"identifier": caller.client_id}).raise_for_status().json()
        self.model.pins.issued(caller, issued["pin"], issued["token"])

    @precondition(lambda self: self.model.pins.pins)
    @rule(caller=st.none() | BROADCASTERS, which=st.integers(0, 3))
    def validate_pin(self, caller: Caller | None, which: int) -> None:
        """Validate one of the latest PINs, as `caller` or as the PIN's broadcaster."""
        pins = self.model.pins.pins
        pin = pins[-1 - which % len(pins)]
        owner = THEIRS[5] if pin.client_id == OTHER_ID else OURS[6] if pin.channel == "888" else OURS[5]
        self.call(caller or owner, "POST", "validate_pin", body={"pin": pin.text})
        self.changed = "pin_token_exists", {}

    @rule(caller=BROADCASTERS, really=RARELY)
    def revoke_pins(self, caller: Caller, really: bool) -> None:
        self.call(caller, "GET", "pin_token_exists")
        if really:
            self.call(caller, "DELETE", "pin")
            for which in range(len(self.model.pins.pins[:4])):
                self.validate_pin(None, which)
            self.changed = "pin_token_exists", {}

    @precondition(lambda self: any(pin.token for pin in self.model.pins.pins))
    @rule(which=st.integers(0, 3), value=st.integers(0, 3))
    def use_pin_token(self, which: int, value: int) -> None:
        pins = [pin for pin in self.model.pins.pins if pin.token]
        pin = pins[-1 - which % len(pins)]
        caller = Caller(pin.client_id, "broadcaster", token=pin.token)
        self.call(caller, "GET", "user_info")
        self.call(caller, "POST", "vote", body={"value": value})
        self.call(caller, "POST", "channel_state", body={"by": value})
        self.call(caller, "GET", "pin_token_exists")

    @rule(caller=MANAGERS, edit=TRIVIA_EDITS)
    def edit_trivia(self, caller: Caller, edit: tuple[str, str, dict[str, str], object]) -> None:
        self.call(caller, *edit)
        self.call(OURS[0], "GET", "curated_poll")
        self.call(OURS[9], "GET", "curated_poll_leaderboard")
        self.changed = "curated_poll", {}

    @rule(votes=st.lists(ON_TRIVIA, min_size=1, max_size=4))
    def vote_on_questions(self, votes: list[tuple[Caller, dict[str, str], str, str]]) -> None:
        for caller, channel, question, option in votes:
            self.call(caller, "POST", "curated_poll", channel, {"question_id": question, "vote": option})
            self.call(caller, "GET", "curated_poll", {"id": question})
        self.changed = "curated_poll_leaderboard", {}

    @rule(caller=ANYONE, channel=CHANNELS, joins=st.booleans())
    def read_or_join_team(self, caller: Caller, channel: dict[str, str], joins: bool) -> None:
        self.call(caller, "POST" if joins else "GET", "team_membership", channel)
        self.changed = "curated_poll_leaderboard", {}

    @rule(posts=st.lists(POSTS, min_size=2, max_size=8))
    def post_to_games(self, posts: list[tuple[Caller, dict[str, str], tuple[str, object]]]) -> None:
        self.compare_updates()
        for caller, channel, (path, body) in posts:
            self.call(caller, "POST", path, channel, body)
        self.compare_updates()

    @rule(game=GAMES, action=st.sampled_from(["validate", "refund"]), at=st.integers(0, 3), which=SETTLED)
    def settle_purchase(self, game: Caller, action: str, at: int, which: tuple[str, str]) -> None:
        """Settle one of the oldest outstanding purchases: by an id, or by its product and a user."""
        member, user = which
        listed = self.list_purchases(game, "*")
        absent = {"id": "t9", "muxy_id": "m9", "sku": "hat"}
        chosen = listed[at] if at < len(listed) else absent
        named = "" if member == "sku" else chosen["muxy_id" if member == "muxy_id" else "id"]
        data = {member: named} if named else {"sku": chosen["sku"], "user_id": user}
        reply = self.game(game).request(action, "transaction", data)
        self.model.people.wrote(game)
        is_settled = self.model.games.settle(game, chosen["id"] if named else "", chosen["sku"], user)
        assert is_settled == (reply.get("data") == {"ok": True}), (data, reply)
        self.list_purchases(game, chosen["sku"])

    def list_purchases(self, game: Caller, sku: str) -> list[dict[str, Any]]:
        """Compare the outstanding purchases of a product, and return them."""
        listed: list[dict[str, Any]] = self.game(game).data("get", "transaction", {"sku": sku})["transactions"]
        expected = [each.shown for each in self.model.games.outstanding(game) if sku in ("*", each.shown["sku"])]
        assert [] == [*differences(expected, listed)]
        return listed

    @rule(caller=MANAGERS)
    def list_users(self, caller: Caller) -> None:
        self.call(caller, "GET", "user_ids")

    @rule(ms=SHORT)
    def advance(self, ms: int) -> None:
        self.move(self.model.clock.now + ms)

    @rule(ms=LONG, really=RARELY)
    def advance_far(self, ms: int, really: bool) -> None:
        self.move(self.model.clock.now + (ms if really else 1))

    @precondition(lambda self: self.model.expiries())
    @rule(which=st.integers(0, 11), before=st.sampled_from([0, 1]))
    def advance_to_an_end(self, which: int, before: int) -> None:
        """Set the clock to an expiry, or to one millisecond before it."""
        expiries = self.model.expiries()
        self.move(expiries[which % len(expiries)] - before)
        if self.model.pins.pins:
            self.validate_pin(None, which)

    @rule(ms=BACK)
    def set_back(self, ms: int) -> None:
        self.move(self.model.clock.now - ms)

    @rule(really=RARELY)
    def reset(self, really: bool) -> None:
        if really:
            self.start()
