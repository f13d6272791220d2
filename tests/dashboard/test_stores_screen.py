"""The screen of stores: what they hold, and the editor."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from dashboard.html_pages import Form, HtmlPage, forms_of
from emulator.control.calls import CallBody
from emulator.core.callers import Role
from support.pages import fetched, main_of, uncoloured
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer

PLACE = {"store": "channel_state", "client_id": CLIENT_ID, "channel_id": CHANNEL}


@pytest.fixture
def screen(live: LiveServer) -> str:
    return f"{live.url}/_emulator/ui/stores"


def at(screen: str, **place: str) -> str:
    return str(httpx.URL(screen, params=place))


def editor_at(screen: str, **place: str) -> Form:
    return forms_of(at(screen, edit="1", **place))["editor"]


def compared(form: Form, document: Any) -> httpx.Response:
    """Send a text to be compared, and return the page with the differences."""
    text = document if isinstance(document, str) else json.dumps(document)
    return form.send(text=text, step="compare")


def saved(page: httpx.Response) -> httpx.Response:
    """Press `Save` on a page with differences. It comes before the editor."""
    first = page.text.replace('class="editor"', 'class="save"', 1)
    return HtmlPage(httpx.Response(200, text=first, request=page.request)).forms["save"].send(step="save")


def test_the_screen_lists_stores_of_every_scope(
    screen: str, live: LiveServer, broadcaster: Client, admin: Client, viewer
):
    broadcaster.post("channel_state", json={"a": 1}).raise_for_status()
    admin.post("extension_config", json={"a": 1}).raise_for_status()
    viewer("5").post("viewer_state", json={"a": 1}).raise_for_status()
    viewer("5").post("extension_viewer_state", json={"a": 1}).raise_for_status()
    broadcaster.post("json_store", params={"id": "highscore"}, json={"a": 1}).raise_for_status()

    main = main_of(screen)

    for name in ("channel_state", "extension_config", "viewer_state", "extension_viewer_state", "json_store"):
        assert f"store={name}" in main
    assert "user=U5" in main


@pytest.mark.parametrize(
    ("place", "write"),
    [
        ({"store": "extension_state"}, "extension_state"),
        ({"store": "channel_state"}, "channel_state"),
        ({"store": "extension_hidden_state"}, "extension_hidden_state"),
        ({"store": "extension_config"}, "extension_config"),
        ({"store": "channel_config"}, "channel_config"),
        ({"store": "json_store", "id": "high score&x=1"}, "json_store?id=high%20score%26x%3D1"),
        ({"store": "json_store", "id": "global-motd"}, "json_store?id=global-motd"),
    ],
)
def test_a_store_is_shown_edited_compared_and_saved(screen: str, admin: Client, place: dict[str, str], write: str):
    admin.post(write, json={"round": 1, "old": [1, 2]}).raise_for_status()
    place = {**PLACE, **place}
    assert "&#34;round&#34;: 1" in main_of(at(screen, **place))

    page = compared(editor_at(screen, **place), {"round": 2, "new": "x"})
    assert "<code><bdi>/round</bdi></code>" in page.text
    assert {"round": 1, "old": [1, 2]} == admin.get(write).json()

    page = saved(page)
    assert "Saved. The store now contains:" in page.text
    assert "&#34;new&#34;: &#34;x&#34;" in uncoloured(page.text)
    assert {"round": 2, "new": "x"} == admin.get(write).json()


@pytest.mark.parametrize("store", ["viewer_state", "extension_viewer_state"])
@pytest.mark.parametrize("user", ["5", "U5"])
def test_a_store_of_a_viewer_is_edited_by_either_id(screen: str, viewer, store: str, user: str):
    viewer("5").post(store, json={"team": "red"}).raise_for_status()
    place = {**PLACE, "store": store, "user": user}
    assert "&#34;team&#34;: &#34;red&#34;" in main_of(at(screen, **place))

    saved(compared(editor_at(screen, **place), {"team": "blue"}))

    assert {"team": "blue"} == viewer("5").get(store).json()


def test_a_store_that_changed_meanwhile_is_not_overwritten(screen: str, broadcaster: Client):
    broadcaster.post("channel_state", json={"round": 1}).raise_for_status()
    editor = editor_at(screen, **PLACE)
    broadcaster.post("channel_state", json={"round": 7}).raise_for_status()

    page = compared(editor, {"round": 2})

    assert "The store has changed since you opened the editor." in page.text
    assert "&#34;round&#34;: 7" in uncoloured(page.text)
    assert "&#34;round&#34;: 2" in uncoloured(page.text)
    assert {"round": 7} == broadcaster.get("channel_state").json()
    assert "Saved." in saved(page).text
    assert {"round": 2} == broadcaster.get("channel_state").json()


@pytest.mark.parametrize("store", ["channel_state", "json_store"])
def test_a_store_that_changes_during_the_save_is_not_overwritten(
    screen: str, broadcaster: Client, live: LiveServer, monkeypatch: pytest.MonkeyPatch, store: str
):
    place = PLACE | {"store": store, "id": "default"}
    page = compared(editor_at(screen, **place), {"round": 2})
    documents, writes = live.service.engine.documents, [{"round": 7}]
    read = documents.read

    async def read_before_another_writes(keys: Any, *, now: int) -> Any:
        found = await read(keys, now=now)
        if writes and any(key.channel == CHANNEL for key in keys):
            body = CallBody(f"/v1/e/{store}", CLIENT_ID, "POST", writes.pop(), Role.BROADCASTER, "", CHANNEL)
            assert 200 == (await live.service.calls.call(body, "")).status
        return found

    monkeypatch.setattr(documents, "read", read_before_another_writes)
    page = saved(page)

    assert "Saved." not in page.text
    assert "The store has changed since you opened the editor." in page.text
    assert "&#34;round&#34;: 7" in uncoloured(page.text)
    assert {"round": 7} == broadcaster.get(store).json()
    assert "Saved." in saved(page).text
    assert {"round": 2} == broadcaster.get(store).json()


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "the body is not valid JSON"), ("[1]", "expected an object, got an array"), ("", "not valid JSON")],
)
def test_a_text_that_is_not_an_object_is_not_saved_and_not_lost(screen: str, text: str, problem: str):
    page = compared(editor_at(screen, **PLACE), text)

    assert problem in page.text
    assert text == HtmlPage(page).forms["editor"].fields["text"]


def test_a_form_of_another_origin_and_reading_change_nothing(screen: str, broadcaster: Client):
    # A form of another origin changes nothing
    answer = httpx.post(screen, data={**PLACE, "step": "save", "text": '{"a":1}'}, headers={"Origin": "http://x"})

    assert 403 == answer.status_code
    assert {} == broadcaster.get("channel_state").json()

    # Reading never writes
    fetched(at(screen, **PLACE, step="save", text='{"a": 1}', base="e3b0c44298fc1c149afbf4c8996fb924"))

    assert {} == broadcaster.get("channel_state").json()
