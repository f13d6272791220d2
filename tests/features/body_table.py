"""The members of the bodies of calls and of the data of socket actions, and every fault that is made of them.

Written by hand from the specification, not from the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from support.examples import ALL

POLL = """config.startsAt integer 0..253402300799, config.endsAt integer ..253402300799, config.startsIn integer 0..,
  config.endsIn integer 0.., config.userIDVoting flag, config.distinctOptionsPerUser integer 1..258,
  config.totalVotesPerUser integer 1..1024, config.votesPerOption integer 1..1024, config.disabled flag"""
MESSAGE = "event text 1..256, data! any, user_id name, channel_id name, target text"
GRANT = "prizes! integers 1..1000, prize_limits! integers"
TEXTS = """name text ..256, {0}short_name text ..64, {0}description text ..1024, {0}image text ..1024,
  {0}order number ..1000000000"""
IDENTITY = "extension_id name?, app_id name?, channel_id name?, user_id name?, opaque_user_id text?, role text?"
FAULT = """match! text, effect! text, id text ..64, role text, channel text, user text ..256, client_id text,
  event text, status integer?, retry_after integer?, delay integer?, delay_max integer?, bytes integer?, code integer?,
  times integer?, share number?, seed integer, lasts integer?"""
TABLE = f"""
POST vote: value! integer -99..99, count integer
POST vote_config: id text, config! object, config.prompt text ..256b, config.options texts 1..64, {POLL},
  config.global flag, expected object?
POST rank: key! text ..1024b
POST extension_config, POST channel_config, POST extension_state, POST channel_state, POST viewer_state: object
POST extension_viewer_state, POST extension_hidden_state, POST json_store: object
PATCH extension_config, PATCH channel_config, PATCH extension_state, PATCH channel_state, PATCH viewer_state: patch
PATCH extension_viewer_state, PATCH extension_hidden_state: patch
POST validate_pin: pin! text
PUT codes*: codes! arrays, names! texts, indices integers?
POST codes/mark_from_poll: {GRANT}, correct! integer, cutoff_timestamp! integer
POST codes/mark_from_list*: {GRANT}, users! texts
POST codes/redeem: prize integer 0..9, all_prizes integer, index integer
GET broadcast?, POST broadcast?, GET extension_broadcast?, POST extension_broadcast?: {MESSAGE} 1..
GET whisper_self?, POST whisper_self?: {MESSAGE}
POST pusher_broadcast?: {MESSAGE.replace("data!", "data")} 1..
POST bits/transactions: transactionReceipt! text, displayName text, transactionId text, userId text, sku text
POST accumulate, POST datastream: any
POST curated_poll: question_id! text, vote! text
POST curated_poll_edit: id! text 1..64, {TEXTS.format("")}
DELETE curated_poll_edit: id! text
POST curated_poll_edit_option: id! text, option! object, option.id! text 1..64, option.{TEXTS.format("option.")}
DELETE curated_poll_edit_option: question! text, option! text
POST curated_poll_state: transition! text, winner text
POST /v1/e/link/pin?, POST /v1/e/pin?: identifier! text 1..100
POST /v1/e/unauthed/validate_pin?: identifier! text 1..100, jwt! text
POST /v1/e/authtoken: {IDENTITY}
POST /_emulator/clock: set time? 0..253402300799999, advance integer? 0..253402300799999, freeze flag?
POST /_emulator/sockets/close: socket integer?, all flag, code integer 1000..4999, reason text ..123b
POST /_emulator/sockets/stall: socket integer?, all flag, stalled flag
POST /_emulator/faults!: {FAULT}
PUT /_emulator/faults!: faults! objects
POST /_emulator/faults/remove!: id text
POST /_emulator/pins/expire: client_id! text, pin text, digest text
POST /_emulator/call: path! text, client_id! text 1..100, method text, user_id text ..256, channel_id text, role text
POST /_ns?!, POST /_ns/NAME?!: name text, from text, drop text

get state: state_id text 1..
set state: state_id text, state! document
patch state: state_id text, state! patch
set config: config_id text, config! document
patch config: config_id text, config! patch
create poll: poll_id! text 1..64, prompt text ..256b, options texts 1..64, config object?, {POLL}
reconfigure poll: poll_id! text 1..64, config! object, {POLL}
get poll, delete poll: poll_id! text 1..64
broadcast: topic! text 1..256, data any, ids texts? ..1000
subscribe state: topic_id text
get config, subscribe config: config_id text
subscribe poll, subscribe broadcast: topic_id! text
get transaction, subscribe twitchPurchaseBits: sku text
"""
"""Members by operation: a call, or an action and its target. `!` after a member: it must be there. `?` after a kind:
null is accepted. Limits are of a number, of the items of a list, or of the characters of a text (`b`: of its bytes).
After an operation, `?`: an empty body means {}; `!`: other members are refused; `*`: the body is read in parts, so that
the refusal may be about an earlier fault, or in other words."""

KINDS = {
    "any": ("null flag integer number text array object", ""),
    "text": ("text", "a string"),
    "integer": ("integer", "an integer"),
    "number": ("integer number", "a number"),
    "flag": ("flag", "true or false"),
    "name": ("text integer", "a string"),
    "time": ("text integer", "an integer"),
    "object": ("object", "an object"),
    "array": ("array", "an array"),
    "document": ("object", ""),
    "patch": ("array object", ""),
}
"""By kind: the kinds of JSON values that it accepts, and its name in a refusal, if that names the member."""
VALUES = {"null": "null", "flag": "true", "integer": "5", "number": "1.0", "text": '"x"', "array": "[]", "object": "{}"}
"""A value of each kind, as JSON."""
NO_JSON = [
    *(b"", b" ", b"{", b"nul", b"\xff\xfe", b"\xef\xbb\xbf{}", b"\x00", b"value=1", b"// {}", b"{'a':1}"),
    *(b'{"x":%s}' % value for value in (b"NaN", b"-Infinity", b"01", b"1.", b"tru e", b"[1,]", b"1,", b"'a'")),
    *(b'{"x":"%s"}' % text for text in (b"\x01", b"\\udc00\\ud800", b"\\ud800", b"\xff", b"\xed\xa0\x80", b"\xc0\x80")),
    b'{"\\ud800":1}',
]
OF_EACH_DECODER = ("POST vote", "POST accumulate", "PATCH viewer_state", "PUT codes", "POST /_emulator/faults")
"""A call for each way to read a body. In `make test`, the others get a fifth of the texts that are not JSON."""
HUGE = ("1e999", "-1e400", "9" * 5_000)
"""Numbers that no double can hold, and one with more digits than Python reads."""


class Fault(NamedTuple):
    """A malformed body, and how it is refused."""

    body: bytes
    reason: str = ""
    field: str = ""
    """The last name in the place with which the detail begins."""
    problem: str = ""
    """A part of the rest of the detail: the kind that is needed, or the limit."""


class Member(NamedTuple):
    """A member of a body."""

    path: str
    kind: str
    """One of `KINDS`; with `s`, a list of them."""
    is_required: bool
    is_nullable: bool
    least: int | None
    most: int | None
    is_in_bytes: bool

    @property
    def field(self) -> str:
        """Its name without the names of the objects around it."""
        return self.path.rpartition(".")[2]

    def faults(self, valid: str) -> Iterator[Fault]:
        """Yield a valid body with each fault of this member."""
        if self.is_required:
            yield Fault(changed(valid, self.path), "Invalid body", self.field, "is missing")
        whole, item = (self.kind, "") if self.kind in KINDS else ("array", self.kind.removesuffix("s"))
        for value in self.others(whole):
            needed = KINDS[whole][1]
            yield Fault(changed(valid, self.path, value), "Invalid body", self.field if needed else "", needed)
        for value in _others(item) if item else ():
            yield Fault(changed(valid, self.path, f"[{value}]"), "Invalid body", self.field, KINDS[item][1])
        for value in HUGE if ALL else HUGE[:1]:
            yield Fault(changed(valid, self.path, value))
        for value, limit in self._beyond_limits(item):
            yield Fault(changed(valid, self.path, value), "", self.field, limit)

    def others(self, kind: str) -> Iterator[str]:
        """Yield values of the kinds that it does not accept, as JSON."""
        yield from (value for value in _others(kind) if not (value == "null" and self.is_nullable))

    def _beyond_limits(self, item: str) -> Iterator[tuple[str, str]]:
        """Yield values just beyond the limits, as JSON, and the limit."""
        least, most, low, high = self.least or 0, self.most or 0, [], []
        if item:
            low, high = ["[]"], [f"[{','.join([VALUES[item]] * (most + 1))}]"]
        elif "text" in self.kind:
            low = [json.dumps(text) for text in ("", "a\nb", "\0", "\u2028")]
            text = "é" * (most // 2) + "x" * (1 + most % 2) if self.is_in_bytes else "x" * (most + 1)
            high = [json.dumps(text, ensure_ascii=False)]
        else:
            low, high = [str(least - 1), str(-(10**20))], [str(most + 1), str(10**20), str(10**400)]
        if self.least is not None:
            yield from ((value, "" if self.kind == "text" else str(least)) for value in low)
        if self.most is not None:
            yield from ((value, str(most)) for value in high)


class Body(NamedTuple):
    """The body of a call, or the data of a socket action."""

    operation: str
    kind: str
    members: tuple[Member, ...]
    flags: str

    def texts(self) -> Iterator[Fault]:
        """Yield texts that are not JSON, and others that are not of its kind."""
        for body in NO_JSON if ALL or self.operation in OF_EACH_DECODER else NO_JSON[::5]:
            if body.strip() or "?" not in self.flags:
                yield Fault(body, "Malformed json body" if self.flags in ("", "?") else "")
        deep = (b"[" * 60_000, b'{"x":' * 10_000 + b"1" + b"}" * 10_000)
        huge = () if self.members else (f'{{"a":[{number}]}}'.encode() for number in HUGE)
        in_a_string = (
            (b'"{\\"a\\":NaN}"', b'"[1,]"', b'"{\\"a\\":\\"\xff\\"}"', b'"%b"' % deep[0]) if self.kind != "any" else ()
        )
        yield from map(Fault, (*deep, *huge, *in_a_string))
        for value in _others(self.kind):
            yield Fault(value.encode(), "" if value == VALUES["text"] or "*" in self.flags else "Invalid body")

    def members_with_faults(self, valid: str) -> Iterator[Fault]:
        """Yield a valid body with each fault of a member."""
        for member in self.members:
            yield from (each._replace(problem="") if "*" in self.flags else each for each in member.faults(valid))
        yield Fault(valid[:-1].encode(), "Malformed json body")
        yield Fault(f"{valid}x".encode(), "Malformed json body")
        start = f"{valid[:-1]}{',' * (valid != '{}')}"
        if self.members:  # the last of two with the same name counts
            first = self.members[0]
            twice = f'{start}"{first.path}":{next(first.others(first.kind if first.kind in KINDS else "array"))}}}'
            yield Fault(twice.encode(), "Invalid body", first.field)
        if "!" in self.flags:
            yield Fault(f'{start}"x":1}}'.encode(), "Invalid body", "", "unknown field `x`")


def changed(valid: str, path: str, value: str | None = None) -> bytes:
    """Return the body with another value (JSON) of a member, or without it."""
    body: dict[str, Any] = json.loads(valid)
    *outer, last = path.split(".")
    at = body
    for name in outer:
        at = at.setdefault(name, {})
    if value is None:
        del at[last]
    else:
        at[last] = "@value@"
    return json.dumps(body).replace('"@value@"', value or "").encode()


def _others(kind: str) -> Iterator[str]:
    """Yield values of the kinds of JSON that `kind` does not accept."""
    yield from (value for name, value in VALUES.items() if name not in KINDS[kind][0].split())


def _member(text: str) -> Member:
    path, kind, *limits = text.split()
    least, _, most = (limits or [""])[0].removesuffix("b").partition("..")
    return Member(
        path.rstrip("!"),
        kind.rstrip("?"),
        path.endswith("!"),
        kind.endswith("?"),
        int(least) if least else None,
        int(most) if most else None,
        text.endswith("b"),
    )


def _bodies(line: str) -> Iterator[Body]:
    places, _, members = line.partition(": ")
    kind, texts = (members, []) if members in KINDS else ("object", members.split(", "))
    for place in places.split(", "):
        operation = place.rstrip("?!*")
        yield Body(operation, kind, tuple(map(_member, texts)), place.removeprefix(operation))


_LINES = TABLE.strip().replace(",\n  ", ", ").splitlines()
BODIES = {body.operation: body for line in _LINES if line for body in _bodies(line)}
