"""The limits of `extcli serve`, set by options and by variables."""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus

from support.process import server_process
from support.service import CLIENT_ID
from support.socket_client import SocketClient

SOCKETS = {"--max-sockets": "1", "--max-subscriptions": "1"}
RATES = {"--caller-rate": "1", "--client-rate": "3"}


def as_arguments(flags: dict[str, str]) -> list[str]:
    return [word for flag in flags.items() for word in flag]


def as_variables(flags: dict[str, str]) -> dict[str, str]:
    return {f"EXTCLI_SERVE_{flag[2:].replace('-', '_').upper()}": value for flag, value in flags.items()}


@pytest.mark.parametrize("by_variables", [False, True], ids=["flags", "variables"])
def test_limits_of_ids_sockets_and_subscriptions(by_variables: bool):
    flags = {"--max-ids": "1", **SOCKETS}
    with server_process(
        *([] if by_variables else as_arguments(flags)), **(as_variables(flags) if by_variables else {})
    ) as served:
        viewer = served.client("viewer", user="1", channel="777")
        polls = [viewer.post("vote", params={"id": name}, json={"value": 1}).status_code for name in "ab"]
        token = served.client("broadcaster", user="777", channel="777").headers["Authorization"].split()[1]
        with SocketClient(served) as game:
            game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
            game.data("subscribe", "state", {"topic_id": "channel"})
            second = game.error("subscribe", "config", {"config_id": "channel"})["detail"]
            with pytest.raises(InvalidStatus) as refused:
                SocketClient(served)

    assert [200, 400] == polls
    assert "the connection would have 2 subscriptions; the limit is 1" == second
    assert 429 == refused.value.response.status_code


@pytest.mark.parametrize("by_variables", [False, True], ids=["flags", "variables"])
def test_limits_of_callers_and_client_ids(by_variables: bool):
    with server_process(
        *([] if by_variables else as_arguments(RATES)), **(as_variables(RATES) if by_variables else {})
    ) as served:
        served.freeze()
        callers = [served.client("viewer", user=user, channel="777") for user in "1234"]
        answers = [[caller.get("vote").status_code for _ in range(6)] for caller in callers]

    assert [*[[*[200] * 5, 429]] * 3, [429] * 6] == answers
