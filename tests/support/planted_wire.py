"""Planted faults in responses, tokens, PINs, broadcasts and the socket."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from emulator.auth import claims
from emulator.auth.tokens import Tokens
from emulator.callers import Caller, Role
from emulator.control.gate import gate
from emulator.features.broadcast import rules as broadcasts
from emulator.features.identity import service as identity
from emulator.features.pins import links, live_pins
from emulator.features.pins import service as pins
from emulator.http import dispatch
from emulator.observability.request_context import current_request
from emulator.realtime import envelope
from emulator.realtime.hub import Hub
from emulator.realtime.publisher import Publisher
from emulator.realtime.web_page_access import PusherAccess
from emulator.wire import json_codec, url
from support.planted_faults import Patch, planted, wrap


@planted("W5.open-to-every-origin")
def errors_have_no_cors(patch: Patch) -> None:
    wrap(patch, dispatch, "error_reply", lambda reply, error, *, cors, **options: reply(error, cors=False, **options))


@planted("W5.clients-on-another-machine")
def a_proxy_passes_other_machines_to_the_control_api(patch: Patch) -> None:
    patch.setattr(gate, "_forwarded_hosts", lambda headers: [])


@planted("A6.hidden-address")
def user_info_shows_the_whole_address(patch: Patch) -> None:
    patch.setattr(identity, "hidden_address", lambda address: address)


@planted("B7.credential-of-a-page", production=True)
def a_page_needs_no_credential(patch: Patch) -> None:
    def opened(init: Any, self: PusherAccess, verify: Any, is_open: bool, *rest: Any) -> None:
        init(self, verify, True, *rest)

    wrap(patch, PusherAccess, "__init__", opened)


@planted("B7.whispers-to-a-page")
def a_page_hears_the_whispers_to_every_user(patch: Patch) -> None:
    wrap(
        patch,
        PusherAccess,
        "subscription",
        lambda subscription, self, topic, caller, credential: subscription(self, topic, None, credential),
    )


@planted("W4.body-of-an-error", "W4.body-of-a-refused-write", "W4.unknown-paths")
def error_bodies_lack_errors(patch: Patch) -> None:
    def without_errors(error_body: Any, error: Any) -> bytes:
        members = json_codec.decode(error_body(error), dict)
        del members["errors"]
        return json_codec.encode(members)

    wrap(patch, json_codec, "error_body", without_errors)


@planted("W4.retry-after", production=True)
def a_busy_answer_lacks_retry_after(patch: Patch) -> None:
    def without(reply: Any, error: Any, **options: bool) -> Any:
        error.retry_after = None
        return reply(error, **options)

    wrap(patch, dispatch, "error_reply", without)


@planted("W7.repeated-parameters")
def the_last_of_repeated_parameters_counts(patch: Patch) -> None:
    patch.setattr(url, "_cached", lambda raw: url._parsed(b"&".join(raw.split(b"&")[::-1])))


@planted("A1.expired-token", "W4.order-of-checks")
def an_expired_token_is_accepted(patch: Patch) -> None:
    def forever(check: Any, self: Tokens, caller: Caller) -> None:
        check(self, replace(caller, expires_at=None))

    wrap(patch, Tokens, "_check_lifetime", forever)


@planted("A2.unknown-role")
def an_unknown_role_is_a_broadcaster(patch: Patch) -> None:
    class Broadcasters(dict[str, Role]):
        def get(self, role: str, default: object = None) -> Role:  # type: ignore[override]
            return super().get(role, Role.BROADCASTER)

    patch.setattr(claims, "_ROLES", Broadcasters(claims._ROLES))


@planted("T2.revocation", "T5.check-of-a-token")
def pins_outlive_their_revocation(patch: Patch) -> None:
    async def nothing(self: Any, client_id: str, channel_id: str) -> bool:
        return True

    patch.setattr(links.Links, "end", nothing)


@planted("resources.case-of-a-pin")
def a_pin_may_be_in_lower_case(patch: Patch) -> None:
    wrap(patch, live_pins, "pin_key", lambda key, client_id, pin, secret: key(client_id, pin.upper(), secret))


@planted("resources.form-of-a-pin")
def a_pin_has_five_characters(patch: Patch) -> None:
    wrap(patch, live_pins, "new_pin", lambda new: new()[:5])


@planted("T3.repeated-use")
def a_pin_can_be_used_once(patch: Patch) -> None:
    async def once(authenticate: Any, self: Any, client_id: str, pin: str, address: str) -> Any:
        result = await authenticate(self, client_id, pin, address)
        await self.expire(client_id, pin=pin)
        return result

    wrap(patch, pins.Pins, "authenticate_by_pin", once)


@planted("B2.size-of-a-message")
def a_broadcast_may_have_4_097_bytes(patch: Patch) -> None:
    patch.setattr(broadcasts, "MAX_MESSAGE_BYTES", 4_097)


@planted("X5.unsubscribed", "events.topic-authentication")
def the_reply_to_unsubscribe_has_no_request_id(patch: Patch) -> None:
    def without_id(answer: Any, request: Any, data: object, *, now: int) -> bytes:
        if request.action == "unsubscribe":
            request.request_id = envelope.NO_REQUEST
        return bytes(answer(request, data, now=now))

    wrap(patch, envelope, "answer", without_id)


@planted(
    "X2.reply-before-update",
    "X5.update-of-the-state",
    "X5.form-of-an-update",
    "X5.unsubscribed",
    "X8.all-events",
)
def an_update_is_not_sent_to_its_writer(patch: Patch) -> None:
    def to_others(send: Any, self: Any, frame: bytes, subscribers: list[Any], entry: Any) -> None:
        context = current_request.get()
        writer = context.id.partition("/")[0] if context and "/" in context.id else None
        others = [each for each in subscribers if each.connection.request_id != writer]
        send(self, frame, others, entry)

    wrap(patch, Hub, "_send", to_others)


@planted("X5.update-of-the-state", "X5.unsubscribed")
def an_update_of_the_state_is_sent_twice(patch: Patch) -> None:
    async def twice(publish: Any, self: Publisher, topic: Any, target: str, data: object) -> None:
        for _ in range(2 if topic.kind == "channel_state" else 1):
            await publish(self, topic, target, data)

    wrap(patch, Publisher, "try_publish", twice)
