"""Generates REST calls: every endpoint of the service, by every kind of caller, and what no endpoint expects."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from twin import hostile
from twin.bodies import Bodies
from twin.credentials import ADDRESSES, ROLES, Credentials

TABLE = """
9 POST   vote                      vote           id channel_id
6 GET    vote                      -              id channel_id
2 DELETE vote                      -              id channel_id
3 GET    vote_logs                 -              id channel_id since limit
3 POST   vote_config               definition     id channel_id
2 GET    vote_config               -              id channel_id
2 GET    polls                     -              channel_id limit cursor
4 POST   rank                      answer         id channel_id
3 GET    rank                      -              id channel_id
1 DELETE rank                      -              id channel_id
1 GET    rankings                  -              channel_id limit cursor
4 POST   accumulate                blob           id channel_id
3 GET    accumulate                -              id channel_id start
1 GET    buffers                   -              channel_id limit cursor
2 GET    extension_state           -              channel_id
2 POST   extension_state           document       channel_id
2 PATCH  extension_state           patch          channel_id
2 GET    channel_state             -              channel_id
2 POST   channel_state             document       channel_id
2 PATCH  channel_state             patch          channel_id
2 GET    viewer_state              -              channel_id user_ids userID
2 POST   viewer_state              document       channel_id
2 PATCH  viewer_state              patch          channel_id
2 GET    extension_viewer_state    -              channel_id user_ids userID
2 POST   extension_viewer_state    document       channel_id
2 PATCH  extension_viewer_state    patch          channel_id
1 GET    extension_hidden_state    -              channel_id
1 POST   extension_hidden_state    document       channel_id
1 PATCH  extension_hidden_state    patch          channel_id
1 GET    extension_config          -              channel_id
1 POST   extension_config          document       channel_id
1 PATCH  extension_config          patch          channel_id
1 GET    channel_config            -              channel_id
1 POST   channel_config            document       channel_id
1 PATCH  channel_config            patch          channel_id
2 GET    all_state                 -              channel_id
1 GET    all_config                -              channel_id
2 GET    json_store                -              id channel_id
2 POST   json_store                document       id channel_id
2 POST   link/pin                  identifier     channel_id
2 POST   pin                       identifier     -
1 DELETE pin                       -              -
3 POST   validate_pin              pin            -
2 POST   unauthed/validate_pin     pin_token      -
2 GET    pin_token_exists          -              -
1 GET    broadcast                 message        -
2 POST   broadcast                 message        -
1 GET    extension_broadcast       message        -
1 POST   extension_broadcast       message        -
1 GET    whisper_self              message        -
1 POST   whisper_self              message        -
1 POST   pusher_broadcast          page_message   -
3 PUT    codes                     codes          -
3 GET    codes                     -              -
1 DELETE codes                     -              -
2 POST   codes/mark_from_poll      poll_grant     id channel_id
3 POST   codes/mark_from_list      list_grant     -
3 GET    codes/eligibility         -              -
2 GET    codes/redeemed            -              -
4 POST   codes/redeem              redeem         -
3 POST   bits/transactions         receipt        channel_id
1 POST   datastream                anything       channel_id
2 POST   curated_poll_edit         question       -
1 DELETE curated_poll_edit         question_id    -
3 POST   curated_poll_edit_option  option         -
1 DELETE curated_poll_edit_option  option_id      -
3 POST   curated_poll_state        transition     id
3 GET    curated_poll              -              id
3 POST   curated_poll              question_vote  channel_id
1 GET    curated_poll_leaderboard  -              -
1 POST   team_membership           -              channel_id
1 GET    team_membership           -              -
3 POST   authtoken                 authtoken      -
2 GET    user_info                 -              -
1 GET    user_ids                  -              cursor
"""
"""Weight, method, path under `/v1/e/`, kind of body, and query parameters."""


class Endpoint(NamedTuple):
    """A line of the table."""

    weight: int
    method: str
    path: str
    body: str
    query: str


def _endpoint(line: str) -> Endpoint:
    weight, method, path, body, *query = line.split()
    return Endpoint(int(weight), method, path, body.strip("-").replace("_", " "), " ".join(query).strip("-"))


ENDPOINTS = [_endpoint(line) for line in TABLE.splitlines() if line]
_WEIGHTS = [each.weight for each in ENDPOINTS]
_ALIASES = {"extension_broadcast": "broadcast_extension", "curated_poll": "curated_poll/", "vote": "vote/"}
_SERVERS = ("codes", "codes/mark_from_list", "codes/mark_from_poll", "curated_poll_edit", "curated_poll_edit_option",
            "curated_poll_state", "vote_logs", "extension_state", "extension_config", "extension_hidden_state",
            "user_ids", "extension_broadcast")  # fmt: skip
_LIKELY = dict.fromkeys(_SERVERS, ("admin", "backend") * 4 + ROLES)
_LIKELY |= dict.fromkeys(("validate_pin", "pin_token_exists"), ("broadcaster",) * 6 + ROLES)
"""Who calls the endpoints that are not for everyone: mostly those who may."""


class Call(NamedTuple):
    """A request as it will be sent. Markers such as `@@pin@@` stand for what each version has issued."""

    place: str
    """Method and path, as the report and the list of changes name the call."""
    parts: list[bytes]
    """Its bytes: the head without a length, and the body, if the length is still to be written; or everything."""
    note: str
    has_body: bool = True
    """Whether the response has a body."""
    repeats: int = 1
    """Responses to read: several for pipelined requests."""
    is_last: bool = False
    """Whether the connection is of no use after it."""

    def filled(self, captured: dict[str, str]) -> bytes:
        """Return the bytes for a version that issued these."""
        parts = self.parts
        if any(b"@@" in part for part in parts):
            parts = [_filled(part, captured) for part in parts]
        if len(parts) == 1:
            return parts[0]
        head, body = parts
        length = b"Content-Length: %d\r\n" % len(body) if body or not head.startswith((b"GET", b"DELETE")) else b""
        return b"%b%b\r\n%b" % (head, length, body)


def _filled(part: bytes, captured: dict[str, str]) -> bytes:
    for name in ("pin token", "token", "pin", "next", "request"):
        part = part.replace(f"@@{name}@@".encode(), captured.get(name, f"no {name}").encode("latin-1", "replace"))
    return part


class Calls:
    """Generates the calls of one episode."""

    def __init__(self, chosen: random.Random, name: str, other: str, channel: str, prefix: str) -> None:
        self.random, self.prefix = chosen, prefix
        self.credentials = Credentials(chosen, name, other, channel)
        self.bodies = Bodies(chosen, name, channel)

    def next(self, now: int) -> Call:
        """Generate a call."""
        drawn = self.random.random()
        if drawn < 0.03:
            return hostile.raw(self.random, self.credentials.header("viewer", now), self.prefix)
        (endpoint,) = self.random.choices(ENDPOINTS, _WEIGHTS)
        return self.call(endpoint, now, odd=drawn < 0.12)

    def call(self, endpoint: Endpoint, now: int, *, odd: bool = False, roles: tuple[str, ...] = ()) -> Call:
        """Generate a call of an endpoint; `odd` if it may have another method, path or form."""
        chosen = self.random
        method, path = endpoint.method, endpoint.path
        header, note = self.credentials.any(now, roles or _LIKELY.get(path, ROLES))
        if (
            path in ("pin", "unauthed/validate_pin", "authtoken")
            and endpoint.method == "POST"
            and chosen.random() < 0.7
        ):
            header, note = "", "no header"
        query, body = self.bodies.query(endpoint.query, now), self.bodies.body(endpoint.body, now)
        lines = [f"Authorization: {header}"] if header else []
        lines.append(f"X-Forwarded-For: {chosen.choice(ADDRESSES)}")
        if odd:
            method, path, more = hostile.odd(
                chosen, method, _ALIASES.get(path, path) if chosen.random() < 0.3 else path
            )
            lines += more
            note += " odd"
        place = f"{method} /v1/e/{endpoint.path}"
        head = f"{method} {self.prefix}/v1/e/{path}{query} HTTP/1.1\r\nHost: localhost\r\n"
        head += "".join(f"{line}\r\n" for line in lines)
        if body and odd and chosen.random() < 0.3:
            return Call(place, hostile.chunked(chosen, head, body), f"{note} chunked", method != "HEAD")
        return Call(place, [head.encode("utf-8", "surrogateescape"), body], note, method != "HEAD")

    def prepared(self, now: int) -> list[Call]:
        """Return the calls that an episode begins with, so that the others find something."""
        made: list[tuple[str, str, str, Any]] = [
            *(("viewer", "POST", "vote?id=rps", {"value": value}) for value in (3, 4, 3)),  # a mean of many digits
            *(("viewer", "POST", "rank?id=q1", {"key": key}) for key in ("red", "blue", "red")),
            *(("viewer", "POST", "accumulate?id=default", {"stars": number}) for number in range(3)),
            ("admin", "PUT", "codes", {"codes": [["A1", "A2", "A3"], ["B1"]], "names": ["Hat", "Sword"]}),
            ("admin", "POST", "codes/mark_from_list", {"prizes": [0], "prize_limits": [1], "users": ["U1", "U2"]}),
            ("admin", "POST", "curated_poll_edit", {"id": "q1", "name": "Which?"}),
            ("admin", "POST", "curated_poll_edit_option", {"id": "q1", "option": {"id": "o1", "name": "A"}}),
            ("admin", "POST", "curated_poll_state?id=q1", {"transition": "state-unlocked"}),
            ("broadcaster", "POST", "link/pin", {"identifier": self.credentials.name}),
            ("admin", "POST", "json_store?id=a", {"a": {"b": [1]}}),
            ("broadcaster", "GET", "vote?id=rps", None),
            ("broadcaster", "GET", "rank?id=q1", None),
            ("broadcaster", "GET", "accumulate?id=default", None),
            ("admin", "GET", "vote_logs?id=rps", None),
        ]
        return [
            self.plain(method, f"/v1/e/{path}", body, header=self.credentials.header(role, now, user=f"U{number % 3}"))
            for number, (role, method, path, body) in enumerate(made)
        ]

    def plain(self, method: str, path: str, body: object = None, *, header: str = "") -> Call:
        """Return a call as given."""
        head = f"{method} {self.prefix if not path.startswith('/_ns') else ''}{path} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: {header}\r\n" if header else ""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return Call(f"{method} {path.partition('?')[0]}", [head.encode(), data], "")
