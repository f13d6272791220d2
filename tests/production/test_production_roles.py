"""The role table in production: every endpoint with every role, and with every kind of invalid credential.

The rows are in `tests/support/role_table.py`.
`pytest -s tests/production/test_production_roles.py` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import jwt
import pytest

from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Limits
from support.examples import spread
from support.role_table import CLIENT_ID_ROWS, OPEN_ROWS, ROLES, ROWS, Row, each, write_defaults
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
RECEIPT = jwt.encode(
    {
        "exp": real_seconds() + 86_400,
        "data": {"transactionId": "t", "userId": "777", "product": {"sku": "h", "cost": {"amount": 5, "type": "bits"}}},
    },
    SECRET,
)


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
def by_role(strict: LiveServer) -> Iterator[dict[str, Client]]:
    """A client of each role with a valid token."""
    clients = {role: Client(base_url=f"{strict.url}/v1/e/", headers=authorization(role)) for role in ROLES}
    yield clients
    for client in clients.values():
        client.close()


@pytest.fixture(scope="module")
def anonymous(strict: LiveServer) -> Iterator[Client]:
    """A client without a credential of its own."""
    with Client(base_url=f"{strict.url}/v1/e/") as client:
        yield client


@pytest.fixture
def defaults(by_role: dict[str, Client]) -> None:
    """Restore what the rows expect under the id `default`."""
    write_defaults(by_role["admin"])


def roles_of(row: Row) -> tuple[str, ...]:
    """The roles that may call an endpoint; in production viewers may not send a page's broadcast (ruling B1)."""
    return tuple(role for role in row.roles if (row.name, role) != ("pusher_broadcast", "viewer"))


def compare(row: Row, expected: dict[str, int], actual: dict[str, int]) -> None:
    """Print the cells, and fail with those that differ."""
    print(f"\n{row.method} {row.name}: {actual}")  # noqa: T201 - for `-s`
    wrong = {
        f"{row.method} {row.name}: {cell}": f"{actual[cell]}, not {status}"
        for cell, status in expected.items()
        if actual[cell] != status
    }
    assert {} == wrong


@each(ROWS)
@pytest.mark.usefixtures("defaults")
def test_the_role_decides_with_a_valid_token(row: Row, by_role: dict[str, Client]):
    payable = row._replace(body=row.body.replace("RECEIPT", RECEIPT))

    actual = {role: payable.call(by_role[role]).status_code for role in ROLES}

    compare(row, {role: row.success if role in roles_of(row) else 403 for role in ROLES}, actual)


@each(ROWS)
@pytest.mark.parametrize("part", spread(range(4), 4))
def test_an_invalid_credential_is_refused_whatever_its_role(row: Row, part: int, anonymous: Client):
    chosen = (ROWS.index(row) + part) % 4  # all calls together get every credential of every role in each part
    cells = {
        f"{role}, {name}": (invalid, role)
        for number, (role, (name, invalid)) in enumerate(product(ROLES, CREDENTIALS.items()))
        if role in invalid.roles and number % 4 == chosen
    }

    actual = {
        cell: anonymous.request(row.method, row.name, headers=invalid.headers(role), content=row.body).status_code
        for cell, (invalid, role) in cells.items()
    }

    compare(row, {cell: invalid.status for cell, (invalid, _) in cells.items()}, actual)


@each(CLIENT_ID_ROWS)
def test_an_invalid_token_is_refused_where_a_client_id_suffices(row: Row, strict: LiveServer, anonymous: Client):
    accepted = {"no token": 200, "a client id alone": 200}

    actual = {
        name: anonymous.request(
            row.method, f"{strict.url}{row.name}", headers=invalid.headers(invalid.roles[-1]), content=row.body
        ).status_code
        for name, invalid in CREDENTIALS.items()
    }

    compare(row, {name: invalid.status for name, invalid in CREDENTIALS.items()} | accepted, actual)


@each([row for row in OPEN_ROWS if row.name.startswith("/_") or "authtoken" in row.name])
def test_monitoring_is_public_and_sandbox_endpoints_are_404(row: Row, strict: LiveServer, anonymous: Client):
    status = 200 if row.name.rpartition("/")[2] in ("live", "ready", "metrics") else 404
    tokens = {"no token": {}, "valid": authorization("admin")} | {"garbage": CREDENTIALS["garbage"].headers("admin")}

    actual = {
        name: anonymous.request(row.method, f"{strict.url}{row.name}", headers=headers).status_code
        for name, headers in tokens.items()
    }

    compare(row, dict.fromkeys(tokens, status), actual)
