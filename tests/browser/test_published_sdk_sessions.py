"""Identity and lifetime of the published SDK's sessions."""

from __future__ import annotations

import pytest

from support.browser import ScriptOutput, run_once, run_script
from support.service import LiveServer


@pytest.fixture(scope="module")
def results(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """Return the results of several sessions. The script moves the service's clock; afterwards it is reset."""

    def produce() -> ScriptOutput:
        running_live.reset()
        try:
            return run_script("sessions.js", running_live.url)
        finally:
            running_live.reset()

    return run_once(tmp_path_factory, "sdk-sessions", produce)


@pytest.mark.parametrize(
    ("role", "user"), [("viewer", "5551"), ("broadcaster", "777"), ("admin", "5551"), ("backend", "5551")]
)
def test_sessions_of_several_roles_coexist(results: ScriptOutput, role: str, user: str):
    assert {"sdk": role, "before": role, "now": role, "userID": user} == results["roles"][role]


def test_instances_of_two_apps_share_a_token_but_no_data(results: ScriptOutput):
    assert {"same": True, "votes": [1, 2], "clients": ["sdk-extension", "other_app"]} == results["instances"]


def test_the_app_of_the_first_instance_is_the_extension(results: ScriptOutput):
    assert {"claimed": "my_app", "later": "my_app"} == results["firstInstance"]


def test_the_url_may_end_in_a_slash(results: ScriptOutput):
    assert 1 == results["slashed"]


def test_the_url_may_name_a_namespace(results: ScriptOutput):
    assert 0 == results["namespaced"]


def test_a_session_with_its_own_token_acts_as_the_tokens_user(results: ScriptOutput):
    assert {"id": "42", "info": "42"} == results["ownToken"]


def test_a_session_that_cannot_be_authorized_does_not_load(results: ScriptOutput):
    misleading = "Your authentication token has expired."

    assert (misleading, misleading) == (results["unreachable"], results["brokenToken"])


def test_a_token_that_is_not_refreshed_expires_after_30_minutes(results: ScriptOutput):
    assert "User was unauthorized to access this resource" == results["expired"]["reason"]


def test_a_refresh_without_an_extension_id_keeps_the_session_valid(results: ScriptOutput):
    assert {"timers": 1, "vote": 1, "user": "5551", "first": 401, "second": 200} == results["renewed"]


def test_a_page_receives_broadcasts_after_a_refresh(results: ScriptOutput):
    assert {"n": 1} == results["receivedAfterwards"]


def test_the_sdk_follows_the_services_clock(results: ScriptOutput):
    assert 31 == results["minutesAhead"]
