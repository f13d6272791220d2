"""The command next to a form does what the form does, with the values that are typed into it."""

from __future__ import annotations

import os
import re
import shlex
from html import unescape

import httpx
import pytest
from playwright.sync_api import Page

from support import preloaded
from support.pages import main_of
from support.service import CLIENT_ID, LiveServer

OF_LUNCH = "id=lunch&client_id=my-extension&channel_id=777"
PLACE = "--client-id my-extension --channel 777"


@pytest.fixture
def lunch(live: LiveServer) -> None:
    """A poll, a ranking and a buffer of this name, and a question: what does not exist has no page with forms."""
    viewer = live.client("viewer", user="9", channel="777", client_id=CLIENT_ID)
    for call, body in (("vote", {"value": 1}), ("rank", {"key": "tea"}), ("accumulate", {})):
        viewer.post(f"{call}?id=lunch", json=body).raise_for_status()
    define_question(live)


def define_question(live: LiveServer) -> None:
    backend = live.client("backend", user=None, channel=None, client_id=CLIENT_ID)
    backend.post("curated_poll_edit", json={"id": "q1"}).raise_for_status()
    backend.post("curated_poll_edit_option", json={"id": "q1", "option": {"id": "red"}}).raise_for_status()


def shown(page: Page, form: str) -> str:
    """Return the command next to a form, as its button copies it."""
    text = page.inner_text(f"#{form} code")
    assert text == page.get_attribute(f"#{form} [data-copy]", "data-copy")
    return text


def typed(page: Page, form: str, fields: dict[str, str]) -> None:
    """Type these values into a form, unfolded if it is not; `path=…` selects an option."""
    folded = page.locator(f"main details:has(#{form}), #{form} details")
    folded.evaluate_all("all => all.forEach((each) => { each.open = true; })")
    for name, value in fields.items():
        field = page.locator(f'#{form} [name="{name}"]')
        if field.evaluate("each => each.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


CASES = [
    ("polls", "define",
     {"body.id": "tea", "body.config.prompt": 'It\'s "tea"?', "body.config.options:lines": "Yes, please\nNo",
      "body.config.endsIn:json": "90", "channel_id": "777"},
     """vote define tea --prompt 'It'"'"'s "tea"?' --option 'Yes, please' --option No --ends-in 90s """
     f"--as admin {PLACE}"),
    (f"polls?{OF_LUNCH}", "cast", {"body.value:json": "-3", "user_id": "7", "role": "admin"},
     f"vote cast lunch --value -3 --as admin:7 {PLACE}"),
    (f"rankings?{OF_LUNCH}", "submit", {"body.key": "deep $blue"},
     f"rank submit lunch --key 'deep $blue' --as viewer:U1 {PLACE}"),
    (f"buffers?{OF_LUNCH}", "add", {"body:json": '{"a": 1}'},
     f"""accumulate add lunch '{{"a": 1}}' --as viewer:U1 {PLACE}"""),
    ("codes?client_id=my-extension&channel_id=777", "redeem", {"user_id": "7", "body.prize:json": "2"},
     f"codes redeem 2 --as viewer:7 {PLACE}"),
    ("codes?client_id=my-extension&channel_id=777", "mark-list",
     {"body.users:lines": "U1\nU2", "body.prizes:json:list": "1", "body.prize_limits:json:list": "3"},
     f"codes mark-from-list U1 U2 --prize 1 --limit 3 {PLACE}"),
    ("codes?client_id=my-extension&channel_id=777", "mark-poll",
     {"body.correct:json": "2", "body.cutoff_timestamp:seconds": "2033-05-18T03:33:20"},
     f"codes mark-from-poll lunch --correct 2 --prize 0 --limit 1 --cutoff 2033-05-18T03:33:20Z {PLACE}"),
    ("broadcasts?client_id=my-extension&channel_id=777", "send",
     {"body.event": "hint", "body.target": "whisper-U7", "body.data:json": '"left"'},
     f"""broadcast send hint '"left"' --to U7 --as broadcaster {PLACE}"""),
    ("broadcasts?client_id=my-extension&channel_id=777", "send",
     {"path": "/v1/e/extension_broadcast", "role": "backend", "channel_id": ""},
     """broadcast send round '{"number": 2}' --extension-wide --as backend --client-id my-extension"""),
    ("faults", "add", {"match": "GET /v1/e/vote", "effect": "delay", "delay": "20"}, "fault add --help"),
    ("pins", "request", {"client_id": "other", "channel_id": "9"}, "pin request --client-id other --channel 9"),
    ("purchases?client_id=my-extension&channel_id=777", "purchase", {"body.sku": "cap", "body.displayName": "Ann"},
     f"bits purchase cap --cost 0 --buyer Ann --as viewer:U1 {PLACE}"),
    ("trivia", "define", {"client_id": "my-extension", "body.id": "q2", "body.name": "Who?"},
     "trivia define q2 --name 'Who?' --client-id my-extension"),
    ("trivia?id=my-extension", "option-1", {"body.option.id": "blue", "body.option.name": "Blue team"},
     "trivia define-option q1 blue --name 'Blue team' --client-id my-extension"),
    ("trivia?id=my-extension", "move-1", {"body.transition": "state-results", "body.winner": "red"},
     "trivia move q1 results --winner red --client-id my-extension"),
    ("namespaces", "create", {"name": "lilac"}, "ns new lilac"),
    ("namespaces", "fork", {"name": "rose"}, "ns fork default rose"),
    ("clock", "set", {"set": "2033-05-18T03:33:20"}, "clock set 2033-05-18T03:33:20Z"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.usefixtures("lunch")
def test_the_command_follows_what_is_typed(live: LiveServer, page: Page):
    for screen, form, fields, command in CASES:
        page.goto(f"{live.url}/_emulator/ui/{screen}")
        typed(page, form, fields)
        assert f"extcli {command} --url {live.url}" == shown(page, form)


@pytest.mark.long
def test_the_commands_can_be_run(live: LiveServer):
    viewer = live.client("viewer", user="1", channel="777", client_id="my-extension")
    viewer.post("vote?id=lunch", json={"value": 2})
    sets = '{"names":["Hat","Cap"],"indices":[0,1],"codes":[["H-1","H-2"],["C-1","C-2"]]}'
    live.client("admin", user="9", channel="777", client_id="my-extension").put("codes", content=sets)
    define_question(live)
    for _, _, _, command in CASES:
        with preloaded.start([*shlex.split(command), "--url", live.url], os.environ) as run:
            _, log = run.communicate(60)

        assert run.returncode in (0, 7), (command, log)  # 7: the user may redeem no code


HOSTILE = "7\x1b[201~\rtouch ran\r\u202e\x9b\t\n"
"""The end of a paste, ends of lines, the direction of text, a control character of C1, and a completion."""


@pytest.mark.parametrize("path", ["ui/polls", "ui/rankings", "ui/buffers", "ui/codes", "ui/requests"])
def test_no_line_to_copy_has_a_character_that_a_terminal_acts_on(live: LiveServer, path: str):
    client = live.client("broadcaster", user=HOSTILE, channel=HOSTILE)
    for call, body in (("vote", {"value": 1}), ("rank", {"key": HOSTILE}), ("accumulate", {"key": HOSTILE})):
        client.post(f"{call}?id=lunch", json=body).raise_for_status()
    codes = {"codes": [["X1"]], "names": ["hats"]}
    live.client("backend", channel=HOSTILE).put("codes", json=codes).raise_for_status()
    entry = httpx.get(f"{live.url}/_emulator/journal", params={"order": "newest", "limit": 1}).json()["entries"][0]
    query = {"id": "lunch", "client_id": CLIENT_ID, "channel_id": HOSTILE, "entry": entry["number"]}
    text = httpx.get(f"{live.url}/_emulator/{path}", params=query).text
    copied = [unescape(each) for each in re.findall('data-copy="([^"]*)"', text)]
    lines = [line for each in copied if "def test" not in each for line in each.removesuffix("\n").split("\n")]

    assert any("ran" in line for line in lines)
    assert [] == [line for line in lines if not line.isprintable() or line.startswith("touch")]


@pytest.mark.long
@pytest.mark.usefixtures("lunch")
def test_no_typed_character_that_a_terminal_acts_on_stands_in_the_command(live: LiveServer, page: Page):
    page.goto(f"{live.url}/_emulator/ui/polls?{OF_LUNCH}")
    page.locator("#cast [name=user_id]").evaluate("(field, text) => { field.value = text; }", HOSTILE.replace("\n", ""))
    page.locator("#cast [name=user_id]").dispatch_event("input")

    # A field of one line has dropped the ends of lines.
    assert r"--as $'viewer:7\x1b[201~touch ran\xe2\x80\xae\xc2\x9b\x09' --client-id" in shown(page, "cast")


@pytest.mark.parametrize("id", ["-pother", "-vv"])
def test_an_id_that_begins_with_a_dash_becomes_no_option_of_a_command(live: LiveServer, id: str):
    live.client("viewer", user="5", channel="777").post("vote", params={"id": id}, json={"value": 1}).raise_for_status()
    main = main_of(f"{live.url}/_emulator/ui/polls?id={id}&client_id={CLIENT_ID}&channel_id=777")

    assert "# no command, because an argument begins with -" in main
    assert f"extcli vote get {id}" not in main
