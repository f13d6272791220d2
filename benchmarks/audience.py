"""The requests of an audience, prepared as bytes before they are sent.

A generator that built each request as it sends it would halve the measured rate of a fast server.
"""

from __future__ import annotations

import hmac
import random
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from itertools import count

import msgspec
from common import CLIENT_ID, SECRET
from crowd import message
from load import request

VOTERS = 1_000
"""Known users: the service has seen their tokens."""
PREPARED_PER_SECOND = 15_000
"""Requests of new voters. A round ends earlier if a server is faster."""
_HEADER = b"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
"""{"alg":"HS256","typ":"JWT"}"""


def authorization(user: str, role: str = "viewer", lifetime: int = 86_400) -> str:
    """Return an `Authorization` header with a token of channel 1 that is valid for a day, or as many seconds."""
    exp = int(time.time()) + lifetime
    claims = f'{{"role":"{role}","user_id":"{user}","channel_id":"1","exp":{exp}}}'
    signed = _HEADER + b"." + urlsafe_b64encode(claims.encode()).rstrip(b"=")
    signature = urlsafe_b64encode(hmac.digest(SECRET, signed, "sha256")).rstrip(b"=")
    return f"{CLIENT_ID} {signed.decode()}.{signature.decode()}"


def authentication(role: str = "broadcaster") -> bytes:
    """Return the request that links a game's socket to channel 1."""
    _, token = authorization("1", role).split()
    return message("authenticate", client_id=CLIENT_ID, jwt=token)


def headers(role: str = "viewer", users: int = VOTERS) -> list[str]:
    """Return an `Authorization` header for each of many users of channel 1."""
    return [authorization(str(number), role) for number in range(users)]


def ballots(voters: int = VOTERS, poll: str = "poll") -> list[bytes]:
    """Return a request to vote for each known voter, in random order."""
    generator = random.Random(7)
    requests = [
        request("POST", f"/v1/e/vote?id={poll}", header, b'{"value":%d}' % generator.randrange(0, 10))
        for header in headers(users=voters)
    ]
    generator.shuffle(requests)
    return requests


class Newcomers:
    """Voters who come once, each with a token of their own."""

    def __init__(self) -> None:
        self._numbers = count(10_000_000)

    def ballots(self, size: int, poll: str = "poll") -> list[bytes]:
        """Return `size` requests to vote, each with a new token and a new voter: about 430 bytes and 10 µs each."""
        path = f"/v1/e/vote?id={poll}"
        return [
            request("POST", path, authorization(str(number)), b'{"value":%d}' % (number % 10))
            for number, _ in zip(self._numbers, range(size), strict=False)
        ]

    def round(self, seconds: float, poll: str = "poll") -> Iterator[bytes]:
        """Return the requests of one round: more than a server answers in that time."""
        return iter(self.ballots(int(PREPARED_PER_SECOND * seconds), poll))


def voter_of(ballot: bytes) -> str:
    """Return the user id in the token of a request."""
    claims = ballot.split(b".", 3)[2].partition(b".")[0]
    return str(msgspec.json.decode(urlsafe_b64decode(claims + b"=="))["user_id"])
