"""PINs, the tokens that wait for them, and their revocation (PIN and tokens; rulings T1, T2, T3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surface.calls import DAY, MINUTE, Call, Refused, Time, Who

NEVER_AGAIN = 0


@dataclass
class Pin:
    """A PIN, and what is known of the token that came with it."""

    client_id: str
    text: str
    ends: int
    channel: str = ""
    is_revoked: bool = False
    token: str = ""
    token_ends: int = 0


class Pins:
    """PINs of all extensions. What they are is drawn by the service; `issued` tells the model."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self.pins: list[Pin] = []
        self.linked: set[tuple[str, str]] = set()
        """The channels of extensions that were handed a token, since the last revocation."""

    def end(self) -> None:
        """Ended ones are kept, to be refused; `NEVER_AGAIN` if the clock is set back, too."""
        for pin in self.pins:
            pin.ends = pin.ends if self.time.now < pin.ends else NEVER_AGAIN
            pin.token_ends = pin.token_ends if self.time.now < pin.token_ends else NEVER_AGAIN

    def ends(self) -> list[int]:
        return [end for pin in self.pins for end in (pin.ends, pin.token_ends)]

    def issued(self, who: Who, pin: str, token: str = "") -> None:
        """A broadcaster's PIN is bound to the channel at once; one with a token waits for a broadcaster."""
        bound = "" if token or who.role != "broadcaster" else who.own_channel or ""
        now = self.time.now
        self.pins.append(Pin(who.client_id, pin, now + 5 * MINUTE, bound, False, token, now + 7 * DAY if token else 0))

    def bearer(self, who: Who) -> Who:
        """Who the token of a PIN speaks for: the broadcaster who validated its PIN, and nobody before."""
        if not who.token:
            return who
        pin = next(each for each in self.pins if each.token == who.token)
        if not pin.channel or pin.is_revoked or self.time.now >= pin.token_ends:
            raise Refused(401)
        return Who(who.client_id, "broadcaster", pin.channel, pin.channel)

    def post_validate_pin(self, call: Call) -> dict[str, Any]:
        call.only("broadcaster")
        channel, text = call.who.own_channel or "", call.body["pin"]
        for pin in self.pins:
            is_it = (pin.client_id, pin.text) == (call.who.client_id, text) and self.time.now < pin.ends
            if is_it and not pin.is_revoked and pin.channel in ("", channel):
                pin.channel = channel
                if pin.token:
                    self.linked.add((call.who.client_id, channel))
                return {}
        raise Refused(400, "Invalid PIN")

    def get_pin_token_exists(self, call: Call) -> dict[str, Any]:
        call.only("broadcaster")
        link = call.who.client_id, call.who.own_channel
        alive = [
            pin
            for pin in self.pins
            if (pin.client_id, pin.channel) == link and not pin.is_revoked and self.time.now < pin.token_ends
        ]
        # The rulings leave open what is true of a channel whose last token has ended.
        return {"exists": True if alive else ... if link in self.linked else False}

    def delete_pin(self, call: Call) -> dict[str, Any]:
        """PINs that nobody has validated are no channel's yet, and stay."""
        call.only("broadcaster")
        link = call.who.client_id, call.who.own_channel or ""
        self.linked.discard(link)
        for pin in self.pins:
            pin.is_revoked = pin.is_revoked or (pin.client_id, pin.channel) == link
        return {}

    def get_user_info(self, call: Call) -> object:
        """Its fields are no part of the specification."""
        return ...
