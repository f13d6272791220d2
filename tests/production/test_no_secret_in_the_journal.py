"""No token, PIN, code or secret enters the journal, wherever a client puts it (ruling B7)."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from emulator.control.journal.snippets import SNIPPET_FORMS
from emulator.dashboard.pages import screens
from extcli.journal.views import har_lines
from production.leak_detector import LeakDetector
from production.logged_service import running
from production.scenario import Scenario
from support.journal import entries_of, following, journal_of
from support.service import CHANNEL, SECRET, Client, LiveServer, RunningService
from support.socket_client import SocketClient

Encode = Callable[[bytes], bytes]
CONTENT = {
    "an answer", "a text in a buffer", "a viewer's state", "a channel's state", "a patch", "a JSON store",
    "a broadcast", "a whisper", "a question", "a bad body", "a large body", "a state over the socket",
    "a broadcast over the socket",
    "a value of the whole extension",
    "an action", "a target", "data", "an event's name", "a frame of text", "a frame of JSON", "a large frame",
}  # fmt: skip
"""What the scenario plants in bodies that hold no secret. The journal keeps bodies."""


def everything(service: RunningService) -> Iterator[str]:
    """Yield the whole journal in each form."""
    forms = cycle((*SNIPPET_FORMS, ""))
    with Client(base_url=service.url) as client:
        since: int | None = 0
        while since is not None:
            page = journal_of(service, since=since, limit=200)
            since = page["next"]
            yield json.dumps(page, ensure_ascii=False)
            yield from har_lines(page["entries"], service.url)
            for number in (each["number"] for each in page["entries"]):
                as_form = {"as": form} if (form := next(forms)) else {}
                yield client.get("/_emulator/journal/entry", params={"id": number, **as_form}).text
                yield client.get("/_emulator/explain", params={"id": number}).text
    with following(service, since=0, timeout=0) as lines:
        yield json.dumps(list(lines), ensure_ascii=False)


def pages(service: RunningService) -> Iterator[str]:
    """Yield the pages of the dashboard: each screen, and what it shows of each entry and each socket."""
    with Client(base_url=service.url) as client:
        for name in screens():
            yield client.get(f"/_emulator/ui/{name}" if name != "overview" else "/_emulator").text
        for each in entries_of(service, limit=1_000):
            yield client.get("/_emulator/ui/requests", params={"entry": each["number"]}).text
        for name in ("contents/pins", "contents/codes", "sockets", "parity", "clock/next"):
            yield client.get(f"/_emulator/{name}").text


def leaks(service: RunningService, seen: LeakDetector) -> set[str]:
    return {label for text in everything(service) for label in seen.found_in(text)} - CONTENT


@pytest.fixture
def seen() -> LeakDetector:
    seen = LeakDetector()
    seen.add_key(SECRET, "the extension's secret")
    return seen


@pytest.fixture
def scenario(live: LiveServer, seen: LeakDetector) -> Scenario:
    return Scenario(live, seen, SECRET)


def test_every_kind_of_call_leaves_no_secret_in_the_log_the_journal_and_the_dashboard(
    tmp_path: Path, seen: LeakDetector
):
    with running(tmp_path) as service:
        Scenario(service, seen, SECRET).run()
        kinds = Counter(each["kind"] for each in entries_of(service, limit=1_000))
        journal, shown = "".join(everything(service)), "".join(pages(service))
        log = service.output()

    assert kinds["request"] > 100
    assert kinds["frame"] > 15
    assert kinds["delivery"] > 5
    assert set() == seen.found_in(journal) - CONTENT
    assert seen.found_in(journal) >= {"an answer", "a patch", "a state over the socket"}
    as_client_id = {"a bad credential"}  # the sandbox accepts any client id without a token
    assert set() == seen.found_in(shown) - CONTENT - as_client_id
    assert "an answer" in seen.found_in(shown)
    assert log.count("emulator.requests") > 80
    assert log.count("emulator.audit") > 8
    assert set() == seen.found_in(log)


# Bodies: a member's name says that it is a secret, or the secret says so itself

OF_PINS = [
    *('{"pin": "%s"', '{"x": "\\u12", "pin": "%s"}', "{pin: %s}", "pin=%s", '"%s"', '[["%s"]]', '"[\\"%s\\"]"'),
    json.dumps(json.dumps(json.dumps({"pin": "%s"}))),
    '{"x": "' + "x" * 4_080 + '", "pin": "%s"}',
    '{"x": "' + "x" * 70_000 + '", "pin": "%s"}',
]
"""Bodies whose secret is hidden because their endpoint takes a PIN."""
NAMED = [
    *('{"pin": "%s"}', '{"PIN": "%s"}', '[{"pin": "%s"}]', '{"a": {"b": [{"pin": "%s"}]}}', '\ufeff{"pin": "%s"}'),
    *('{"pin": ["%s", {"x": "%s"}]}', '{"Pin": "%s"}', '{"accessToken": "%s"}', '{"client_secret": "%s"}'),
    *(r'{"t\u006fken": "%s"}', r'{"t\u006fken": "%s', '{"authorization": "%s"}', '{"AUTHORIZATION": "%s"'),
    *("{'token': '%s'}", "{'Pin' : '%s', 'x': 1}", "access_token='%s', 'client_secret'='%s'"),
    *(json.dumps(json.dumps({"pin": "%s"})), json.dumps('{"pin": "%s"')),
    *(
        json.dumps({"x": text})
        for text in ('data = {"token": "%s"}', r'{"t\u006fken": "%s"}', "in {'clientSecret': '%s'}")
    ),
    '{"headers": {"Authorization": ["my-extension %s"]}}',
]
FRAMES = [
    '{"action": "authenticate", "params": {"target": "%s"}, "data": {"pin": "%s"}}',
    '{"action": "authenticate", "data": {"client_id": "x", "pin": "%s"',
    '{"action": "authenticate", "data": {"refresh": "%s", "jwt": "%s", "pin": "%s"}}',
    '{"action": "Authenticate", "data": {"pin": "%s"}}',
    '{"action": "authenticate", "data": "%s"}',
]
ANY = ['{"x": "%s"}', "%s", '"%s"', '{"x": "Bearer %s"', '{"%s": 1}', '[["a", "%s"]]', '{"x": "{\\"y\\": \\"%s\\"}"}']
"""Bodies whose secret is hidden because it is a token."""
NUMBERS = ['{"pin": %s}', '{"PIN": [%s, {"x": %s}]}', '{"x": "{\\"pin\\": %s}"}', "{'pin': %s}"]
"""Bodies with a PIN that is a number."""


def escaped(secret: bytes) -> bytes:
    return "".join(f"\\u{each:04x}" for each in secret).encode()


def post(live: LiveServer, content: str, *paths: str) -> None:
    """Send a body to these paths: as a broadcaster, as a viewer, and with a wrong token."""
    clients = [live.client(role, user=CHANNEL, channel=CHANNEL) for role in ("broadcaster", "viewer")]
    for client, path in zip(cycle((*clients, live.bearer("no-token"))), paths):
        client.post(path, content=content.encode())


def send_frame(live: LiveServer, content: str) -> None:
    with SocketClient(live) as game, suppress(ConnectionClosed):
        game.socket.send(content)
        game.message()


def test_a_secret_in_a_body_or_a_frame_stays_out(live: LiveServer, seen: LeakDetector):
    for number, body in enumerate(of_pins := [*OF_PINS, *NAMED]):
        content = body.replace("%s", seen.add(f"7T3W{number:02}", f"the PIN in {body[:80]}"))
        post(live, content, "validate_pin", "unauthed/validate_pin", "link/pin")
    for number, body in enumerate(NAMED):
        content = body.replace("%s", seen.add(f"not-a-jwt-{number:02}", f"the secret in {body}"))
        post(live, content, "vote", "channel_state", "nothing")
    for number, body in enumerate(NUMBERS):
        content = body.replace("%s", seen.add(f"73492{number}", f"the PIN in {body}"))
        post(live, content, "channel_state", "vote", "broadcast", "accumulate?id=a")
        send_frame(live, content)
    for number, frame in enumerate(frames := [*NAMED, *FRAMES]):
        send_frame(live, frame.replace("%s", seen.add(f"8T3W{number:02}", f"the PIN in {frame}")))

    assert 3 * len(of_pins) == len(entries_of(live, path="pin", limit=1_000))
    requests, sent = 3 * (len(of_pins) + len(NAMED)) + 4 * len(NUMBERS), len(frames) + len(NUMBERS)
    assert requests + sent == len(entries_of(live, kind="request", limit=1_000)), "each frame has a handshake"
    assert sent == len(entries_of(live, kind="frame", limit=1_000))
    assert set() == leaks(live, seen)


@pytest.mark.parametrize("encode", [bytes, base64.b64encode, base64.urlsafe_b64encode, escaped])
def test_a_token_in_any_body_stays_out(live: LiveServer, scenario: Scenario, seen: LeakDetector, encode: Encode):
    for body in ANY:
        text = encode(scenario.token("admin").encode()).decode()
        seen.add(text[40:80], f"the token in {body}")
        seen.add(text[-40:-4], f"the end of the token in {body}")
        post(live, body.replace("%s", text), "accumulate?id=a", "vote")
        send_frame(live, body.replace("%s", text))

    assert set() == leaks(live, seen)


def test_small_numbers_called_pin_and_quoted_words_are_shown(live: LiveServer, broadcaster: Client):
    body = {"pin": 3, "pins": [10, 1], "x": "the 'pin' and the 'token' are words here", "is": {"pin": True}}

    broadcaster.post("channel_state", json=body).raise_for_status()

    [entry] = entries_of(live, path="channel_state")
    assert body == json.loads(entry["request"]["text"])


# Addresses and headers


PLACES = [
    *("/v1/e/vote?pin=%s", "/v1/e/vote?id=a&%s", "/v1/e/vote?%s=1", "/v1/e/vote?id=a&pin=%s&id=b", "/v1/e/%s"),
    *("/v1/e/validate_pin?pin=%s", "/v1/e/validate_pin/%s", "/%s", "/_emulator/%s", "/_ns/%s!/v1/e/vote"),
    *("/schema/%s", "/v1/e/vote?id=%s TOKEN", "/v1/e/vote?channel_id=x%s TOKEN", "/_ns/%s/v1/e/vote TOKEN"),
]


def test_a_secret_in_an_address_stays_out(live: LiveServer, seen: LeakDetector, scenario: Scenario, stranger: Client):
    for number, place in enumerate(PLACES):
        token, (path, *only_tokens) = scenario.token("admin"), place.split()
        pins = [] if only_tokens else [seen.add(f"7T3W{number:02}", f"the PIN in {place}")]
        for secret in (token, token.replace("e", "%65"), *pins):
            stranger.get(path.replace("%s", secret), headers={"X-Request-Id": token[:64]})
            stranger.post(path.replace("%s", secret), content=b"{}")

    assert 2 * len(PLACES) <= len(entries_of(live, limit=1_000))
    assert set() == leaks(live, seen)
