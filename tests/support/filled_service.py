"""Fills a service with something of every kind, under plain or under hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import httpx

from emulator.core.settings import Settings
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server
from support.socket_client import SocketClient, linked_game

PLAIN: Final = ("lunch", "boss-7", "soup_of_the_day")
HOSTILE: Final = (
    "<script>window.owned = 1</script>",
    '"><img src=x onerror="window.owned = 1">',
    "' hx-on:click='window.owned = 1' hx-get='/_emulator/clock",
    '<b hx-get="/_emulator/reset" hx-trigger="load">x</b>',
    "</textarea></script></style><svg onload=window.owned=1>",
    "{{ 7 * 7 }}{% raw %}${7 * 7}<!--",
    "javascript:window.owned=1//&lt;&#39;&quot;",
    "\u202egnp.exe\u2066 \u200f\u0627\u0644",
    "\ufeff\u200b \U0001f468\u200d\U0001f469\u200d\U0001f467 \u0300\u0301\u0302",
    "x" * 64,
)
"""Names that would run, load, bend or break something in a page that does not escape them."""
LARGE: Final = "<b hx-on:click=window.owned=1>\u202e" * 1_700
"""Nearly 64 KiB of UTF-8."""


@contextmanager
def filled_service(*words: str, settings: Settings | None = None) -> Iterator[LiveServer]:
    """Run a service that holds something of every kind under these names; with none of them, an empty service."""
    with live_server(settings) as live, ExitStack() as stack:
        if words:
            _fill(live, words)
            stack.enter_context(_connections(live))
        live.freeze()  # texts such as "3 s ago" stay equal
        yield live


def _fill(live: LiveServer, words: tuple[str, ...]) -> None:
    backend = live.client("backend", user=None, channel=None)
    admin = live.client("admin", user="9001", channel=CHANNEL)
    broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    viewers = [live.client("viewer", user=str(user), channel=CHANNEL) for user in range(5551, 5556)]
    hostile = [live.client("viewer", user=word, opaque=f"U{word}", channel=CHANNEL) for word in words]
    is_plain = words == PLAIN
    for word in words:
        values = {"text": word, word: [word, {"deep": [1, 2.5, None, True]}]}
        at = {"id": word}
        for number, viewer in enumerate([*viewers[:2], hostile[words.index(word)]]):
            _send(is_plain, viewer, "vote", {"value": number % 4}, at)
            _send(is_plain, viewer, "rank", {"key": word}, at)
            _send(is_plain, viewer, "accumulate", values, at)
        _send(is_plain, broadcaster, "vote_config", {"config": {"prompt": word, "options": [word, "b"]}}, at)
        _send(is_plain, broadcaster, "json_store", values, at)
        _send(is_plain, broadcaster, "broadcast", {"event": word, "data": values})
        _send(is_plain, backend, "extension_broadcast", {"event": word, "data": values})
    for number, word in enumerate(words):  # the ids of polls have few characters, and their texts have any
        at = {"id": f"poll-{number}"}
        _send(True, broadcaster, "vote_config", {"config": {"prompt": word, "options": [word, "b"]}}, at)
        for viewer in (*viewers[:2], hostile[number]):
            _send(is_plain, viewer, "vote", {"value": number}, at)
    for number, word in enumerate(words):
        question, option = {"id": f"q{number}", "name": word}, {"id": f"o{number}", "name": word}
        _send(True, backend, "curated_poll_edit", question)
        _send(True, backend, "curated_poll_edit_option", {"id": question["id"], "option": option})
        purchase = {"transactionReceipt": "none", "transactionId": f"t{number}", "sku": word, "userId": word}
        _send(is_plain, viewers[0], "bits/transactions", purchase)
    _send(True, backend, "curated_poll_state", {"transition": "state-unlocked"}, {"id": "q0"})
    everything = {word: word for word in words} | ({} if is_plain else {"large": LARGE})
    for name in ("extension_config", "extension_state", "channel_config", "channel_state", "extension_hidden_state"):
        _send(is_plain, admin, name, everything)
    _send(is_plain, viewers[0], "viewer_state", everything)
    _send(is_plain, viewers[0], "extension_viewer_state", everything)
    admin.put("codes", json={"codes": [["A1", "A2", "A3"]], "names": [words[0][:32]]})
    _send(True, admin, "codes/mark_from_list", {"prizes": [0], "prize_limits": [2], "users": ["5551", "5552"]})
    viewers[0].post("codes/redeem", json={"prize": 0})
    _send(True, backend, "link/pin", {"identifier": CLIENT_ID})
    for word in words:  # refusals, each with the word where the request can have it
        viewers[0].post("vote", params={"id": word}, json={"value": word})
        viewers[0].delete("vote", params={"id": word})
        viewers[0].post(f"json_store?id={LARGE[:2_000] if not is_plain else 'x'}", content=word.encode())
        viewers[0].get("nothing", params={word: word})
        if word.isascii():  # another extension, channel and role
            stranger = live.client(word, user=word, channel=word, client_id=word.replace(" ", "/"))
            stranger.post("vote", params={"id": word}, json={"value": 1})
            stranger.post("channel_state", json={})
    httpx.post(f"{live.url}/_ns/blue").raise_for_status()
    refusing = {"match": "POST /v1/e/datastream", "effect": "status", "times": 1, "share": 1}
    losing = [{"match": f"BROADCAST {word}", "effect": "lose", "user": word, "client_id": word} for word in words]
    httpx.put(f"{live.url}/_emulator/faults", json={"faults": [refusing, *losing]}).raise_for_status()
    viewers[0].post("datastream", json={})


def _send(must_succeed: bool, client: Client, path: str, body: object, at: dict[str, str] | None = None) -> None:
    answer = client.post(path, json=body, params=at or {})
    if must_succeed:
        answer.raise_for_status()


@contextmanager
def _connections(live: LiveServer) -> Iterator[None]:
    """Open a linked game and a connection that is not authenticated."""
    with linked_game(live) as game, SocketClient(live):
        game.request("subscribe", "poll", {"poll_id": "lunch"})
        game.request("get", "state", {"state_id": "nothing"})
        yield
