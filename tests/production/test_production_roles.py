"""The role table in production: what it refuses, and every kind of invalid credential.

The rows are in `tests/support/role_table.py`; `features/test_roles.py` makes the calls that are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jwt
import pytest

from emulator.core.extensions import Extension
from emulator.core.settings import Limits
from support.role_table import CLIENT_ID_ROWS, ROLES, ROWS, Row, each
from support.service import (
    CLIENT_ID,
    OTHER_ID,
    OTHER_SECRET,
    OURS,
    SECRET,
    THEIRS,
    Client,
    LiveServer,
    in_production,
    live_server,
    real_seconds,
)

REMOVED_ID, REMOVED_SECRET = "removed-extension", b"the secret of an extension that was removed"
Headers = dict[str, str]


def authorization(
    role: str, client_id: str = CLIENT_ID, *, key: bytes = SECRET, without: str = "", **claims: Any
) -> Headers:
    payload = {"role": role, "user_id": "777", "channel_id": "777", "exp": real_seconds() + 3_600, **claims}
    payload.pop(without, None)
    return {"Authorization": f"{client_id} {jwt.encode(payload, key)}"}


class Invalid(NamedTuple):
    """An invalid credential, by role, and the status of its error."""

    headers: Callable[[str], Headers]
    status: int = 401
    roles: tuple[str, ...] = ROLES
    """The roles for which it is invalid."""


CREDENTIALS = {
    "no token": Invalid(lambda role: {}),
    "a client id alone": Invalid(lambda role: {"Authorization": CLIENT_ID}),
    "garbage": Invalid(lambda role: {"Authorization": f"{CLIENT_ID} no.such.token"}),
    "Bearer": Invalid(
        lambda role: {"Authorization": authorization(role)["Authorization"].replace(f"{CLIENT_ID} ", "Bearer ")}
    ),
    "a wrong signature": Invalid(lambda role: authorization(role, key=SECRET + b"x")),
    "expired": Invalid(lambda role: authorization(role, exp=real_seconds() - 1)),
    "without exp": Invalid(lambda role: authorization(role, without="exp"), roles=("viewer", "broadcaster")),
    "not yet valid": Invalid(lambda role: authorization(role, nbf=real_seconds() + 1_800)),
    "our id, another's secret": Invalid(lambda role: authorization(role, key=OTHER_SECRET)),
    "another's id, our secret": Invalid(lambda role: authorization(role, OTHER_ID)),
    "naming another extension": Invalid(lambda role: authorization(role, extension_id=OTHER_ID)),
    "of an unregistered extension": Invalid(lambda role: authorization(role, "unregistered")),
    "of a removed extension": Invalid(lambda role: authorization(role, REMOVED_ID, key=REMOVED_SECRET)),
    "of the sandbox": Invalid(lambda role: authorization(role, allowed_stage="sandbox"), 403),
}


@pytest.fixture(scope="module")
def strict() -> Iterator[LiveServer]:
    """A production service from which an extension has just been removed."""
    removed = Extension(REMOVED_ID, (REMOVED_SECRET,))
    settings = in_production(OURS, THEIRS, removed, limits=Limits(caller_rate=0))  # few callers make many requests
    with live_server(settings) as live, Client(base_url=live.url) as client:
        for role in ROLES:
            before = client.get("/v1/e/user_info", headers=authorization(role, REMOVED_ID, key=REMOVED_SECRET))
            assert 200 == before.status_code
        live.service.extensions.current = {each.client_id: each for each in (OURS, THEIRS)}
        yield live


@pytest.fixture(scope="module")
def anonymous(strict: LiveServer) -> Iterator[Client]:
    """A client without a credential of its own."""
    with Client(base_url=f"{strict.url}/v1/e/") as client:
        yield client


def statuses(client: Client, row: Row, headers: dict[str, Headers]) -> dict[str, int]:
    """Make a call with each of these credentials."""
    return {
        name: client.request(row.method, client.base_url.join(row.name), headers=each, content=row.body).status_code
        for name, each in headers.items()
    }


@pytest.mark.parametrize("role", ROLES)
def test_an_invalid_credential_is_refused_whatever_its_role(role: str, anonymous: Client):
    invalid = {name: each for name, each in CREDENTIALS.items() if role in each.roles}

    actual = statuses(anonymous, ROWS[0], {name: each.headers(role) for name, each in invalid.items()})

    assert {name: each.status for name, each in invalid.items()} == actual


def test_every_call_needs_a_valid_signature(anonymous: Client):
    forged = {"forged": authorization("admin", key=SECRET + b"x"), "none": {}}

    assert [{"forged": 401, "none": 401}] * len(ROWS) == [statuses(anonymous, row, forged) for row in ROWS]


@each(CLIENT_ID_ROWS)
def test_an_invalid_token_is_refused_where_a_client_id_suffices(row: Row, anonymous: Client):
    accepted = {"no token": 200, "a client id alone": 200}

    actual = statuses(anonymous, row, {name: each.headers(each.roles[-1]) for name, each in CREDENTIALS.items()})

    assert {name: each.status for name, each in CREDENTIALS.items()} | accepted == actual
