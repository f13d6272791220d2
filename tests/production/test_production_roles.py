"""The table of roles in production: every operation, every role, and every way in which a token can be no good.

The rows are those of `tests/support/role_table.py`; the columns are here.
`pytest -s tests/production/test_production_roles.py` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import jwt
import pytest

from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Limits, Settings
from support.role_table import CLIENT_ID_ROWS, OPEN_ROWS, ROLES, ROWS, Row
from support.service import CLIENT_ID, OTHER_ID, OTHER_SECRET, SECRET, Client, LiveServer, live_server, real_seconds

REMOVED_ID, REMOVED_SECRET = "removed-extension", b"the secret of an extension that was removed"
NOW = real_seconds()
Headers = dict[str, str]


def authorization(
    role: str, client_id: str = CLIENT_ID, *, key: bytes = SECRET, without: str = "", **claims: Any
) -> Headers:
    said = {"role": role, "user_id": "777", "channel_id": "777", "exp": NOW + 3_600, **claims}
    said.pop(without, None)
    return {"Authorization": f"{client_id} {jwt.encode(said, key)}"}


class Bad(NamedTuple):
    """One way to be no good, for a role, and what it is answered."""

    headers: Callable[[str], Headers]
    status: int = 401


CREDENTIALS = {
    "no token": Bad(lambda role: {}),
    "a client id alone": Bad(lambda role: {"Authorization": CLIENT_ID}),
    "garbage": Bad(lambda role: {"Authorization": f"{CLIENT_ID} no.such.token"}),
    "Bearer": Bad(
        lambda role: {"Authorization": authorization(role)["Authorization"].replace(f"{CLIENT_ID} ", "Bearer ")}
    ),
    "a wrong signature": Bad(lambda role: authorization(role, key=SECRET + b"x")),
    "expired": Bad(lambda role: authorization(role, exp=NOW - 1)),
    "without an end": Bad(lambda role: authorization(role, without="exp")),
    "not yet valid": Bad(lambda role: authorization(role, nbf=NOW + 1_800)),
    "our id, another's secret": Bad(lambda role: authorization(role, key=OTHER_SECRET)),
    "another's id, our secret": Bad(lambda role: authorization(role, OTHER_ID)),
    "naming another extension": Bad(lambda role: authorization(role, extension_id=OTHER_ID)),
    "never registered": Bad(lambda role: authorization(role, "stranger")),
    "of a removed extension": Bad(lambda role: authorization(role, REMOVED_ID, key=REMOVED_SECRET)),
    "of the sandbox": Bad(lambda role: authorization(role, allowed_stage="sandbox"), 403),
}
RECEIPT = jwt.encode(
    {
        "exp": NOW + 3_600,
        "data": {"transactionId": "t", "userId": "5", "product": {"sku": "h", "cost": {"amount": 5, "type": "bits"}}},
    },
    SECRET,
)


@pytest.fixture(scope="module")
def strict() -> Iterator[LiveServer]:
    """One production service, which has just been told of an extension less."""
    extensions = {
        each.client_id: each
        for each in (
            Extension(CLIENT_ID, (SECRET,)),
            Extension(OTHER_ID, (OTHER_SECRET,)),
            Extension(REMOVED_ID, (REMOVED_SECRET,)),
        )
    }
    limits = Limits(caller_rate=0)  # a few callers ask for everything here
    settings = Settings(PRODUCTION, extensions=extensions, limits=limits)
    with live_server(settings) as live, Client(base_url=live.url) as client:
        for role in ROLES:
            before = client.get("/v1/e/user_info", headers=authorization(role, REMOVED_ID, key=REMOVED_SECRET))
            assert 200 == before.status_code
        live.service.extensions.replace({name: extensions[name] for name in (CLIENT_ID, OTHER_ID)})
        yield live


@pytest.fixture(scope="module")
def by_role(strict: LiveServer) -> Iterator[dict[str, Client]]:
    """A client of each role with a good token."""
    clients = {role: Client(base_url=f"{strict.url}/v1/e/", headers=authorization(role)) for role in ROLES}
    yield clients
    for client in clients.values():
        client.close()


@pytest.fixture(scope="module")
def anybody(strict: LiveServer) -> Iterator[Client]:
    """A client without a credential of its own."""
    with Client(base_url=f"{strict.url}/v1/e/") as client:
        yield client


@pytest.fixture
def something_there(by_role: dict[str, Client]) -> None:
    """What the rows ask for under `default`, whatever earlier rows have left of it."""
    admin = by_role["admin"]
    admin.post("json_store", json={"a": 1}).raise_for_status()
    admin.put("codes", json={"codes": [["A1"]], "names": ["Hat"]}).raise_for_status()
    admin.post("vote_config", json={"config": {}}).raise_for_status()
    admin.post("curated_poll_edit", json={"id": "default"})
    admin.post("curated_poll_edit_option", json={"id": "default", "option": {"id": "o1"}})
    admin.post("curated_poll_state", json={"transition": "state-unlocked"})


def roles_of(row: Row) -> tuple[str, ...]:
    """Who may. A page's own broadcast is for the SDK's development mode: in production viewers have none (B1)."""
    return tuple(role for role in row.roles if (row.name, role) != ("pusher_broadcast", "viewer"))


def named(rows: list[Row]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=[f"{row.method} {row.name}" for row in rows])


def compared(row: Row, expected: dict[str, int], answered: dict[str, int]) -> None:
    """Fail with the cells that are not as they should be, each by its name."""
    print(f"\n{row.method} {row.name}: {answered}")  # noqa: T201 - the cells are what `-s` asks for
    wrong = {
        f"{row.method} {row.name}: {cell}": f"{answered[cell]}, not {status}"
        for cell, status in expected.items()
        if answered[cell] != status
    }
    assert {} == wrong


@named(ROWS)
@pytest.mark.usefixtures("something_there")
def test_with_a_good_token_the_role_decides(row: Row, by_role: dict[str, Client]):
    payable = row._replace(body=row.body.replace("RECEIPT", RECEIPT))

    answered = {role: payable.call(by_role[role]).status_code for role in ROLES}

    compared(row, {role: 200 if role in roles_of(row) else 403 for role in ROLES}, answered)


@named(ROWS)
def test_with_a_bad_token_no_role_helps(row: Row, anybody: Client):
    cells = {f"{role}, {name}": (bad, role) for role, (name, bad) in product(ROLES, CREDENTIALS.items())}

    answered = {
        cell: anybody.request(row.method, row.name, headers=bad.headers(role), content=row.body).status_code
        for cell, (bad, role) in cells.items()
    }

    compared(row, {cell: bad.status for cell, (bad, _) in cells.items()}, answered)


@named(CLIENT_ID_ROWS)
def test_where_a_client_id_is_enough_a_bad_token_is_not_better_than_none(row: Row, strict: LiveServer, anybody: Client):
    enough = {"no token": 200, "a client id alone": 200}

    answered = {
        name: anybody.request(
            row.method, f"{strict.url}{row.name}", headers=bad.headers("admin"), content=row.body
        ).status_code
        for name, bad in CREDENTIALS.items()
    }

    compared(row, {name: bad.status for name, bad in CREDENTIALS.items()} | enough, answered)


@named([row for row in OPEN_ROWS if row.name.startswith("/_emulator") or "authtoken" in row.name])
def test_watching_is_open_and_what_is_for_sandboxes_is_not_there(row: Row, strict: LiveServer, anybody: Client):
    status = 200 if row.name.rpartition("/")[2] in ("live", "ready", "metrics") else 404
    tokens = {"no token": {}, "good": authorization("admin")} | {"garbage": CREDENTIALS["garbage"].headers("admin")}

    answered = {
        name: anybody.request(row.method, f"{strict.url}{row.name}", headers=headers).status_code
        for name, headers in tokens.items()
    }

    compared(row, dict.fromkeys(tokens, status), answered)
