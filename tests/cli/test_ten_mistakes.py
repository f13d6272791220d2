"""Ten mistakes of a first hour, and what each surface says of them, word for word.

The words of a hint stand here once; `rules/refusal_texts.txt` has the words of refusals.
`printed_by` is how each surface frames them, so no surface has words of its own.
Calls of a page that does not load `sdk.js` never reach the service: only the rig can tell.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import httpx
import pytest

from dashboard.test_rig_page import rig, serving
from emulator.auth.refusals import expired_by_moved_clock
from emulator.callers import CHANNEL_WRITERS, Role, role_error
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from emulator.errors import OF_ROLES, ServiceError
from emulator.http.refusals import body_too_large, header_not_allowed
from support.html_pages import read_page
from support.journal import entries_of
from support.listen_process import TIMEOUT, read_until
from support.program import SECRET_BASE64
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer, live_server, real_seconds
from support.socket_client import linked_game

EXP = real_seconds() + 3_600
EIGHT_DAYS = 8 * 86_400_000


class Hint(NamedTuple):
    """What is said of a response that is probably not what the caller meant."""

    hint: str
    production: str = ""
    """The rule by which production refuses the request."""
    advice: str = ""
    """What to do so that production accepts it."""


Refuse = Callable[[int], ServiceError]
"""Makes the refusal, for the service's time in seconds."""


class Mistake(NamedTuple):
    """A mistake as its author makes it over HTTP, and if there is one, by a command."""

    make: Callable[[LiveServer], httpx.Response]
    status: int
    words: Hint | Refuse
    command: tuple[str, ...] = ()
    prepare: Callable[[LiveServer, ExitStack], object] = lambda *_: None
    """What happened before."""


def client(live: LiveServer, role: str = "viewer", **changed: Any) -> Client:
    user = "U1" if role == "viewer" else CHANNEL
    return live.client(role, **{"user": user, "channel": CHANNEL, "exp": EXP, **changed})


def preflight(live: LiveServer) -> httpx.Response:
    asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-panel"}
    return httpx.options(f"{live.url}/v1/e/vote", headers={"Origin": "https://extension.example", **asked})


def vote_for_lunch(live: LiveServer, _: ExitStack) -> None:
    client(live).post("vote?id=lunch", json={"value": 1}).raise_for_status()


def listen_to_party(live: LiveServer, until_end: ExitStack) -> None:
    until_end.enter_context(linked_game(live)).request("subscribe", "broadcast", {"topic_id": "party"})


LARGE = {"a": "x" * 65 * 1024}

MISTAKES: Mapping[str, Mistake] = {
    "a misspelt client id": Mistake(
        lambda live: client(live, client_id="my-extention").get("vote?id=lunch"),
        200,
        Hint(
            "the client id my-extention is not known; did you mean my-extension?",
            "registration",
            "Register the client id with `extcli extension init`, and check its spelling in your code and in "
            "`--client-id`.",
        ),
        ("vote", "get", "lunch", "--client-id", "my-extention"),
    ),
    "a misspelt poll": Mistake(
        lambda live: client(live).post("vote?id=lunhc", json={"value": 1}),
        200,
        Hint("lunhc is a new poll; did you mean lunch?"),
        ("vote", "cast", "lunhc", "--value", "1"),
        vote_for_lunch,
    ),
    "a misspelt event": Mistake(
        lambda live: client(live, "broadcaster").post("broadcast", json={"event": "partty", "data": {}}),
        200,
        Hint("nothing listens to partty; did you mean party?"),
        ("broadcast", "send", "partty", "{}"),
        listen_to_party,
    ),
    "a header that pages may not send": Mistake(
        preflight,
        200,
        lambda _: header_not_allowed(header="x-panel", allowed="Authorization, Content-Type"),
    ),
    "a viewer who deletes a poll": Mistake(
        lambda live: client(live).delete("vote?id=lunch"),
        403,
        lambda _: role_error(Role.VIEWER, CHANNEL_WRITERS),
        ("vote", "rm", "lunch", "--as", "viewer", "--yes"),
    ),
    "a store of 65 KiB": Mistake(
        lambda live: client(live, "broadcaster").post("channel_state", json=LARGE),
        413,
        lambda _: body_too_large(size=66_568, limit=65_536),
        ("state", "set", "channel", json.dumps(LARGE)),
    ),
    "a secret that is not decoded": Mistake(
        lambda live: client(live, key=b64encode(SECRET)).get("vote"),
        200,
        Hint(
            "the token is signed with the base64 text of the secret; decode the secret before you sign",
            "secret",
            "Decode the secret before you sign: `Buffer.from(secret, 'base64')` in Node.js, "
            "`base64.b64decode(secret)` in Python; `extcli token mint` does.",
        ),
    ),
    "a token that the moved clock expired": Mistake(
        lambda live: client(live).get("vote"),
        401,
        lambda now: expired_by_moved_clock(exp=EXP, now=now, lead="8 days ahead of the system's"),
        ("vote", "get"),
        lambda live, _: live.advance(EIGHT_DAYS),
    ),
    "a channel of another broadcaster": Mistake(
        lambda live: client(live, "broadcaster").get("vote?channel_id=888"),
        200,
        Hint(
            "channel_id=888 is ignored: the role broadcaster acts in the channel of its token, 777; "
            "only the roles admin and backend may name another"
        ),
    ),
}


@pytest.fixture(scope="module")
def running_known() -> Iterator[LiveServer]:
    """A sandbox with an extensions file: it judges tokens, and knows which client ids there are."""
    with live_server(Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as live:
        yield live


@pytest.fixture
def known(running_known: LiveServer, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> LiveServer:
    """That sandbox, emptied, as the service of all commands, which sign with the extension's secret."""
    running_known.empty()
    monkeypatch.setenv("EXTCLI_URL", running_known.url)
    monkeypatch.setenv("EXTCLI_CHANNEL", CHANNEL)
    monkeypatch.setenv("EXTCLI_SECRET", SECRET_BASE64)
    return running_known


def printed_by(words: Hint | ServiceError) -> dict[str, str]:
    """Return how each surface prints the words of a mistake, without line breaks."""
    if isinstance(words, Hint):
        verdict = f"production: refuse; rule={words.production}; " if words.production else ""
        badge = f" production refuses this: {words.production}" if words.production else ""
        by_production = f"Production: refuse (rule {words.production})."
        return {
            "error": words.hint,
            "logs": verdict + words.hint,
            "explain": f" It was not refused. Hint: {words.hint}"
            + (f" | {by_production} | {words.advice}" if words.production else ""),
            "dashboard, list": words.hint + badge,
            "dashboard, request": f" Hint {words.hint} | {words.advice.replace('`', '')}",
            "command": f"hint: {words.hint}",
        }
    assert words.refused is not None
    reason, detail = words.reason, words.detail
    _, rule, title, held, needed, next_step = words.refused
    rule = rule.replace(OF_ROLES, "spec: Authentication")
    return {
        "error": f"{reason}: {detail}",
        "logs": f"{rule}: {detail}",
        "explain": f" {reason}: {detail} | Why: {title} (rule {rule}). held {held} needed {needed} "
        f"| What to do: {next_step}",
        "dashboard, list": detail,
        "dashboard, request": f" Why it was refused {reason}: {detail} Had{held} Needed{needed} "
        f"What to do{next_step.replace('`', '')} Rule{rule} ",
        "command": f"{reason}: {detail}",
    }


def words_of(mistake: Mistake, told: str) -> Hint | ServiceError:
    """Return the words with the time of the refusal, which only the response has."""
    if isinstance(mistake.words, Hint):
        return mistake.words
    now = re.search(r"is not after (\d+)", told)
    return mistake.words(int(now[1]) if now else 0)


def in_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", MISTAKES)
def test_every_surface_has_the_words_of_a_mistake(known: LiveServer, extcli, name: str):
    mistake = MISTAKES[name]
    with ExitStack() as until_end:
        mistake.prepare(known, until_end)
        answer = mistake.make(known)
    words, body, id = words_of(mistake, answer.text), answer.json(), answer.headers["x-request-id"]
    expected = printed_by(words)
    page = f"{known.url}/_emulator/ui/requests"
    entry = f"{page}?entry={id}"
    explained = in_one_line(extcli("explain", id, "-o", "table").stdout)

    assert mistake.status == answer.status_code
    if mistake.status != 200:
        assert expected["error"] == f"{body['reason']}: {body['info']}"
    elif isinstance(words, Hint):  # a page cannot read the response to a preflight
        assert expected["error"] == answer.headers["x-emulator-hint"]
    assert expected["logs"] == extcli("logs", "-o", "plain").rows[-1][-1]
    assert expected["dashboard, list"] == in_one_line(read_page(page).tables[0][0][-1])
    for surface, text in (("explain", explained), ("dashboard, request", in_one_line(read_page(entry).text))):
        assert [] == [part for part in expected[surface].split(" | ") if part not in text]


@pytest.mark.parametrize("name", [name for name, mistake in MISTAKES.items() if mistake.command])
def test_the_command_that_makes_a_mistake_prints_its_words(known: LiveServer, extcli, name: str):
    mistake = MISTAKES[name]
    token = client(known).headers["authorization"].split()[1]
    with ExitStack() as until_end:
        mistake.prepare(known, until_end)
        result = extcli(*mistake.command, env={"EXTCLI_TOKEN": token} if mistake.status == 401 else None)

    assert printed_by(words_of(mistake, result.stderr))["command"] in [
        line.strip() for line in result.stderr.splitlines()
    ]


def test_the_rig_alone_knows_a_page_without_sdk_js(known: LiveServer):
    with serving({}, body=b"<script src='/_emulator/platform-helper.js'></script><script src='sdk.umd.js'>") as url:
        shown = read_page(rig(known, url=url)).text

    text = "This page does not load sdk.js. If it uses the published SDK, its calls go to the real platform."
    assert f"{text} Add this line before its other scripts:" in in_one_line(shown)
    assert f'<script src="{known.url}/_emulator/sdk.js"></script>' in shown
    assert [] == entries_of(known)


# What commands print for mistakes that get 200


def test_a_refusal_has_the_hint(extcli):
    extcli("json-store", "set", "level", "a=1", "--as", "broadcaster")
    result = extcli("json-store", "get", "levle", exits=4)

    assert "  hint: there is no JSON store levle; did you mean level?" in result.stderr.splitlines()


def test_logs_show_the_client_ids_if_there_are_several(extcli):
    extcli("vote", "cast", "--value", "1")
    assert " of my-extension" not in extcli("logs", "-o", "table").stdout
    extcli("vote", "cast", "--value", "1", "--client-id", "my-extention")

    text = " ".join(extcli("logs", "-o", "table").stdout.split())
    assert "viewer:U1@1001 of my-extension" in text
    assert "viewer:U1@1001 of my-extention" in text


def test_explain_cors_says_which_headers_pages_may_send(extcli):
    text = " ".join(extcli("explain", "cors", "-o", "table").stdout.split())

    assert "docs: CORS" in text
    assert "with any method and the headers Authorization and Content-Type" in text


def test_explain_shows_the_latest_refused_preflight(extcli, live: LiveServer):
    headers = {"Origin": "https://page.example", "Access-Control-Request-Headers": "x-panel"}
    httpx.options(f"{live.url}/v1/e/vote", headers=headers)

    text = " ".join(extcli("explain", "-o", "table").stdout.split())
    assert "Header not allowed: a page may not send the header x-panel" in text


def test_listen_names_the_similar_event_that_was_sent_meanwhile(extcli, listening):
    process = listening("partty", "--count", "1", "--timeout", "2s")
    extcli("broadcast", "send", "party", "{}")

    assert "hint: party was sent meanwhile; did you mean that?" == read_until(process, "hint:")
    assert 7 == process.wait(TIMEOUT)


def test_listen_names_other_events_that_were_sent_meanwhile(extcli, listening):
    process = listening("partty", "--timeout", "2s", "--client-id", "my&game")
    extcli("broadcast", "send", "round", "{}", "--client-id", "my&game")

    assert "hint: other events were sent meanwhile: round" == read_until(process, "hint:")
    assert 0 == process.wait(TIMEOUT)


def test_listen_says_nothing_if_no_other_event_was_sent(extcli, live: LiveServer):
    result = extcli("listen", "partty", "--count", "1", "--timeout", "200ms")

    assert (7, False) == (result.exit_code, "hint" in result.stderr)
    assert "use a longer --timeout" in result.stderr
