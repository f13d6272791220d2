"""Who a session of the published SDK is, and how long it lasts."""

from __future__ import annotations

import pytest

from support.browser import ScriptOutput, run_once, run_script
from support.service import LiveServer


@pytest.fixture(scope="module")
def said(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """What sessions came to. The service's clock is moved meanwhile, and is put back."""

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
def test_sessions_of_several_roles_live_side_by_side(said: ScriptOutput, role: str, user: str):
    assert {"sdk": role, "before": role, "now": role, "userID": user} == said["roles"][role]


def test_instances_of_two_apps_share_a_page_and_a_token_but_no_data(said: ScriptOutput):
    assert {"same": True, "votes": [1, 2], "clients": ["sdk-extension", "other_app"]} == said["instances"]


def test_the_app_of_the_first_instance_is_the_pages_extension(said: ScriptOutput):
    assert {"claimed": "my_app", "later": "my_app"} == said["firstInstance"]


def test_an_address_may_end_in_a_slash(said: ScriptOutput):
    assert 1 == said["slashed"]


def test_an_address_may_be_a_namespace_which_has_data_of_its_own(said: ScriptOutput):
    assert 0 == said["namespaced"]


def test_a_session_with_a_token_of_its_own_acts_as_whom_the_token_names(said: ScriptOutput):
    assert {"id": "42", "info": "42"} == said["ownToken"]


def test_a_session_that_cannot_be_authorized_does_not_load(said: ScriptOutput):
    misleading = "Your authentication token has expired."

    assert (misleading, misleading) == (said["unreachable"], said["brokenToken"])


def test_a_token_that_is_not_renewed_ends_after_half_an_hour(said: ScriptOutput):
    assert "User was unauthorized to access this resource" == said["expired"]["reason"]


def test_the_renewal_that_names_no_extension_carries_the_session_on(said: ScriptOutput):
    assert {"timers": 1, "vote": 1, "user": "5551", "first": 401, "second": 200} == said["renewed"]


def test_a_page_still_hears_broadcasts_after_the_renewal(said: ScriptOutput):
    assert {"n": 1} == said["heardAfterwards"]


def test_the_sdk_follows_the_services_clock(said: ScriptOutput):
    assert 31 == said["ahead"]
