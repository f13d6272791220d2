"""The model of PINs, their tokens and their revocation (PIN and tokens; rulings T1, T2, T3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surface.calls import DAY, MINUTE, Call, Caller, Clock, Refused

EXPIRED = 0


@dataclass
class Pin:
    """A PIN, and the token issued with it."""

    client_id: str
    text: str
    expires_at: int
    channel: str = ""
    is_revoked: bool = False
    token: str = ""
    token_expires_at: int = 0


class Pins:
    """The PINs of all extensions. The service draws them, and `issued` records them in the model."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.pins: list[Pin] = []
        self.linked: set[tuple[str, str]] = set()
        """Client id and channel of every link since its last revocation."""

    def expire(self) -> None:
        """Expire PINs and tokens for good. Expired ones stay, to be refused even if the clock is set back."""
        for pin in self.pins:
            pin.expires_at = pin.expires_at if self.clock.now < pin.expires_at else EXPIRED
            pin.token_expires_at = pin.token_expires_at if self.clock.now < pin.token_expires_at else EXPIRED

    def expiries(self) -> list[int]:
        return [end for pin in self.pins for end in (pin.expires_at, pin.token_expires_at)]

    def issued(self, caller: Caller, pin: str, token: str = "") -> None:
        """Record a PIN: bound to the caller's channel, except a viewer's; with a token, unbound until validated."""
        bound = "" if token or caller.role == "viewer" else caller.own_channel or ""
        now = self.clock.now
        self.pins.append(
            Pin(caller.client_id, pin, now + 5 * MINUTE, bound, False, token, now + 7 * DAY if token else 0)
        )

    def bearer(self, caller: Caller) -> Caller:
        """The caller of a PIN's token: the broadcaster who validated the PIN; raises `Refused` before that."""
        if not caller.token:
            return caller
        pin = next(each for each in self.pins if each.token == caller.token)
        if not pin.channel or pin.is_revoked or self.clock.now >= pin.token_expires_at:
            raise Refused(401, is_early=True)
        return Caller(caller.client_id, "broadcaster", pin.channel, pin.channel)

    def post_validate_pin(self, call: Call) -> dict[str, Any]:
        call.only("broadcaster")
        channel, text = call.caller.own_channel or "", call.body["pin"]
        for pin in self.pins:
            is_it = (pin.client_id, pin.text) == (call.caller.client_id, text) and self.clock.now < pin.expires_at
            if is_it and not pin.is_revoked and pin.channel in ("", channel):
                pin.channel = channel
                if pin.token:
                    self.linked.add((call.caller.client_id, channel))
                return {}
        raise Refused(400, "Invalid PIN")

    def get_pin_token_exists(self, call: Call) -> dict[str, Any]:
        call.only("broadcaster")
        link = call.caller.client_id, call.caller.own_channel
        alive = [
            pin
            for pin in self.pins
            if (pin.client_id, pin.channel) == link and not pin.is_revoked and self.clock.now < pin.token_expires_at
        ]
        # The rulings do not say what holds for a channel whose last token has expired.
        return {"exists": True if alive else ... if link in self.linked else False}

    def delete_pin(self, call: Call) -> dict[str, Any]:
        """Revoke the PINs of the channel; unbound PINs stay."""
        call.only("broadcaster")
        link = call.caller.client_id, call.caller.own_channel or ""
        self.linked.discard(link)
        for pin in self.pins:
            pin.is_revoked = pin.is_revoked or (pin.client_id, pin.channel) == link
        return {}

    def get_user_info(self, call: Call) -> object:
        """Any body: the specification does not define the fields."""
        return ...
