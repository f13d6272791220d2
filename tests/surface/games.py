"""The model of purchases and the datastream, which reach the games of a channel (gaps: Purchases; ruling T6)."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import jwt

from surface.calls import DAY, Call, Caller, Clock, Refused
from surface.people import People

ANY = "*"


@dataclass
class Purchase:
    """A purchase, kept for 30 days after its first post."""

    client_id: str
    channel: str
    poster: str
    expires_at: int
    shown: dict[str, Any]
    """The purchase as games receive it."""
    is_settled: bool = False


class Games:
    """Purchases of all extensions, and what games have received since the last look."""

    def __init__(self, clock: Clock, people: People) -> None:
        self.clock, self._people = clock, people
        self.purchases: list[Purchase] = []
        self.sent: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        """The data of updates by client id and channel."""

    def expire(self) -> None:
        self.purchases = [each for each in self.purchases if self.clock.now < each.expires_at]

    def expiries(self) -> list[int]:
        return [each.expires_at for each in self.purchases]

    def post_bits_transactions(self, call: Call) -> dict[str, Any]:
        caller, body, channel, now = call.caller, call.body, _channel(call), self.clock.now
        data = {
            "transactionId": body.get("transactionId"),
            "userId": body.get("userId") or caller.user or caller.opaque_id,
            "product": {"sku": body.get("sku", "unknown"), "displayName": "", "cost": {"amount": 0}},
        }
        if body["transactionReceipt"]:
            data = jwt.decode(body["transactionReceipt"], options={"verify_signature": False})["data"]
        shown = {
            **{"id": data["transactionId"], "muxy_id": ..., "userId": data["userId"], "sku": data["product"]["sku"]},
            **{"displayName": data["product"]["displayName"], "username": body.get("displayName", "")},
            **{"currency": "bits", "cost": data["product"]["cost"]["amount"], "timestamp": now},
        }
        new = Purchase(caller.client_id, channel, caller.opaque_id, now + 30 * DAY, shown)
        for each in self.purchases:
            if (each.client_id, each.shown["id"]) == (new.client_id, shown["id"]):
                if (each.channel, each.poster, each.shown["userId"]) != (channel, new.poster, shown["userId"]):
                    raise Refused(400, "Invalid receipt")
                return {}
        self.purchases.append(new)
        self.sent[caller.client_id, channel].append(shown)
        return {}

    def post_datastream(self, call: Call) -> dict[str, Any]:
        channel = _channel(call)
        if len(json.dumps(call.body, separators=(",", ":"), ensure_ascii=False).encode()) > 4_096:
            raise Refused(400, "Message too large")
        event = {"event": call.body, "timestamp": self.clock.now // 1_000}
        self.sent[call.caller.client_id, channel].append({"events": [event]})
        return {}

    def outstanding(self, game: Caller) -> list[Purchase]:
        """The unsettled purchases of the game's channel, oldest first."""
        mine = [
            each
            for each in self.purchases
            if (each.client_id, each.channel) == (game.client_id, game.own_channel) and not each.is_settled
        ]
        return sorted(mine, key=lambda each: (each.shown["timestamp"], each.shown["id"]))

    def settle(self, game: Caller, named: str, sku: str, user: str) -> bool:
        """Settle a purchase by its id or else by product and buyer; return whether there is one."""
        users = self._people.spellings(game.client_id, user)
        for each in self.outstanding(game):
            if named == each.shown["id"] or (not named and each.shown["sku"] == sku and each.shown["userId"] in users):
                each.is_settled = True
                return True
        return False


def _channel(call: Call) -> str:
    if not call.channel:
        raise Refused(400, "Invalid channel")
    return call.channel
