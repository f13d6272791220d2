"""Calls of every kind over REST and the socket, valid and invalid, with secrets wherever clients may put them."""

from __future__ import annotations

import json
import re
import socket
import time
from contextlib import closing, suppress
from typing import Any
from urllib.parse import quote

from websockets.exceptions import ConnectionClosed, InvalidStatus

from production.leak_detector import LeakDetector
from support.pusher_client import PusherClient, pusher_channel
from support.service import CHANNEL, CLIENT_ID, Client, RunningService
from support.socket_client import SocketClient

BROADCASTER = {"role": "broadcaster", "user_id": CHANNEL, "channel_id": CHANNEL}


class Scenario:
    """Runs the calls. `key` signs the tokens."""

    def __init__(self, service: RunningService, detector: LeakDetector, key: bytes) -> None:
        self.service = service
        self.detector = detector
        self.key = key
        self._exp = int(time.time()) + 3_600
        self.http = Client(base_url=service.url)

    def token(self, role: str, **claims: Any) -> str:
        payload = {"role": role, "user_id": "5551", "channel_id": CHANNEL, "exp": self._exp, **claims}
        return self.detector.sign(self.key, f"a token of a {role}", **payload)

    def client(self, role: str, **claims: Any) -> Client:
        return self.service.bearer(self.token(role, **claims))

    def run(self) -> None:
        """Make every call once."""
        self.features()
        pin = self.pins()
        self.invalid_tokens()
        self.malformed_requests()
        self.socket(pin)
        self.pages()
        self.control()
        self.malformed_sockets()  # which may use up what an address may send before authentication

    def features(self) -> None:
        """Call the endpoints as viewer, broadcaster and admin."""
        made, viewer = self.detector.make, self.client("viewer")
        admin, broadcaster = self.client("admin"), self.client("broadcaster", user_id=CHANNEL)
        answers = [
            self.http.post("/v1/e/link/pin", headers={"Authorization": CLIENT_ID}),
            viewer.post("vote?id=rps", json={"value": 1}),
            viewer.post("rank?id=r", json={"key": made("an answer")}),
            viewer.post("accumulate?id=a", json={"text": made("a text in a buffer")}),
            viewer.post("viewer_state", json={"x": made("a viewer's state")}),
            broadcaster.post("channel_state", json={"x": made("a channel's state")}),
            broadcaster.patch("channel_state", json=[{"op": "add", "path": "/y", "value": made("a patch")}]),
            broadcaster.post("json_store?id=j", json={"x": made("a JSON store")}),
            broadcaster.post("broadcast", json={"event": "e", "data": made("a broadcast")}),
            broadcaster.post("whisper_self", json={"event": "e", "data": made("a whisper")}),
            admin.post("vote_config?id=q", json={"config": {"prompt": made("a question"), "options": ["a", "b"]}}),
            *(
                admin.get(path)
                for path in ("vote_logs?id=rps", "rank?id=r", "accumulate?id=a", "all_state", "all_config")
            ),
        ]
        codes = [self.detector.make("a code") for _ in range(4)]
        body = {"codes": [codes], "names": ["Hat"]}
        answers += [
            admin.put("codes", json=body),
            admin.post("codes/mark_from_list", json={"users": ["5551"], "prizes": [0], "prize_limits": [2]}),
            viewer.post("codes/redeem", json={"prize": 0}),
            viewer.get("codes/redeemed"),
        ]
        assert {200} == {each.status_code for each in answers}, [
            (each.url, each.text) for each in answers if each.is_error
        ]
        self.changes_for_good(codes, admin)
        too_long = {"codes": [[codes[0], made("a code") * 9]], "names": ["Hat"]}
        assert 400 == admin.put("codes", json=too_long).status_code
        product = {"transactionId": "t", "userId": "5551", "product": {"sku": "hat"}}
        receipt = self.detector.sign(self.key, "a receipt", data=product, exp=self._exp)
        viewer.post("bits/transactions", json={"transactionReceipt": receipt})
        issued = self.http.post("/v1/e/authtoken", json={"user_ids": ["1", "2"], "role": "viewer"})
        for token in issued.json().get("tokens", []):
            self.detector.add_token(token, "a token of authtoken")

    def changes_for_good(self, codes: list[str], admin: Client) -> None:
        """Make the calls that have audit lines."""
        value = {"x": self.detector.make("a value of the whole extension")}
        for answer in (
            admin.post("extension_state", json=value),
            admin.patch("extension_config", json=value),
            admin.patch("viewer_state", json={"U5": value, "U6": value}),
            admin.post("json_store?id=global", json=value),
            admin.post("vote_config?id=rps", json={"config": {"prompt": value["x"], "disabled": True}}),
            admin.delete("vote?id=rps"),
            admin.delete("rank?id=r"),
            admin.delete("codes"),
            admin.put("codes", json={"codes": [codes], "names": [value["x"]]}),
        ):
            answer.raise_for_status()

    def pins(self) -> str:
        """Validate wrong PINs, then the right one; return a bound PIN."""
        broadcaster = self.client("broadcaster", user_id=CHANNEL)
        issued = self.http.post("/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
        self.detector.add_token(issued["token"], "a game's token")
        for wrong in (self.detector.make("a wrong PIN"), self.detector.add("9Q9Q9Q", "a wrong PIN of six")):
            assert 400 == broadcaster.post("validate_pin", json={"pin": wrong}).status_code
        broadcaster.post("validate_pin", json={"pin": self.detector.add(issued["pin"], "a PIN")}).raise_for_status()
        self.service.bearer(issued["token"]).get("user_info").raise_for_status()
        return self.detector.add(broadcaster.post("link/pin").raise_for_status().json()["pin"], "a PIN")

    def invalid_tokens(self) -> None:
        """Send invalid credentials, and valid ones in wrong places."""
        good = self.token("viewer")
        forged = self.detector.sign(
            b"the key of a forger, 32 bytes long", "a forged token", role="admin", exp=self._exp
        )
        expired = self.token("viewer", exp=1)
        header, payload, signature = good.split(".")
        for credential in (
            *(f"{CLIENT_ID} {token}" for token in (forged, expired, f"{header}.{payload}.", f"{payload}.{signature}")),
            good,
            f"Bearer {good}",
            f"{good} {CLIENT_ID}",
            f"{CLIENT_ID} {good} {good}",
            self.detector.make("a bad credential"),
        ):
            for path in ("vote", "user_info", "link/pin"):
                self.http.request(
                    "GET" if path != "link/pin" else "POST", f"/v1/e/{path}", headers={"Authorization": credential}
                )
        self.http.get(f"/v1/e/vote?token={good}&pin={self.detector.make('a PIN in a query')}")
        self.http.get(f"/v1/e/{good}")
        self.http.get(f"/_ns/{good[:60]}/v1/e/vote", headers={"Authorization": f"{CLIENT_ID} {good}"})
        self.http.get(
            "/v1/e/vote",
            headers={"Cookie": self.detector.make("a cookie"), "X-Api-Key": self.detector.make("a header")},
        )

    def malformed_requests(self) -> None:
        """Send malformed bodies and malformed HTTP."""
        viewer, made = self.client("viewer"), self.detector.make
        for body in (b'{"value": "%s"}', b'{"value": %s', b"%s", b'{"%s": 1}', b"[" * 3_000 + b"%s"):
            for path in ("vote", "rank", "accumulate", "viewer_state", "codes/redeem"):
                viewer.post(path, content=body.replace(b"%s", made("a bad body").encode()))
        viewer.post("vote", content=made("a large body").encode() * 10_000)
        for text in (
            f"GET /v1/e/vote?pin={made('garbage')} HTTP/9.9 {made('garbage')}\r\n\r\n",
            f"{made('garbage')}\r\n\r\n",
            f"GET / HTTP/1.1\r\nAuthorization: {made('garbage')}\x00\r\n\r\n",
            f"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz {made('garbage')}\r\n",
            f"GET / HTTP/1.1\r\nAuthorization: {made('a large header') * 5_000}\r\n\r\n",
            f"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: {made('garbage')}\r\nConnection: upgrade\r\n\r\n",
        ):
            self._raw(text.encode())

    def _raw(self, text: bytes) -> None:
        with closing(self.service.connect()) as wire:
            wire.sendall(text)
            wire.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                while wire.recv(65_536):
                    pass

    def socket(self, pin: str) -> None:
        """Authenticate a game in every way, then write and subscribe."""
        made = self.detector.make
        with SocketClient(self.service) as game:
            game.data("subscribe", "authentication")
            for wrong in (made("a wrong PIN"), self.detector.add("8R8R8R", "a wrong PIN of six")):
                game.error("authenticate", data={"client_id": CLIENT_ID, "pin": wrong})
            linked = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})
            for _ in range(2):
                self.detector.add_token(linked["jwt"], "an access token")
                self.detector.add_token(linked["refresh"], "a refresh token")
                linked = game.data("authenticate", data={"client_id": CLIENT_ID, "refresh": linked["refresh"]})
            self.detector.add_token(linked["jwt"], "an access token")
            self.detector.add_token(linked["refresh"], "a refresh token")
            game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": self.token("broadcaster", user_id=CHANNEL)})
            game.data("subscribe", "state", {"topic_id": "channel"})
            game.data("set", "state", {"state_id": "channel", "state": {"x": made("a state over the socket")}})
            game.data("broadcast", data={"topic": "e", "data": {"x": made("a broadcast over the socket")}})
            game.error(made("an action"), made("a target"), {"x": made("data")})
            game.request("subscribe", made("an event's name"))
            for name in ("pin", "refresh", "jwt"):
                game.error("authenticate", data={"client_id": CLIENT_ID, name: made(f"a wrong {name}")})

    def malformed_sockets(self) -> None:
        """Send malformed frames, and handshakes with secrets in wrong places."""
        made, token = self.detector.make, self.token("broadcaster")
        frames: tuple[str | bytes, ...] = (
            made("a frame of text"), json.dumps([made("a frame of JSON")]), made("a binary frame").encode(),
            made("a large frame") * 200_000,
        )  # fmt: skip
        for frame in frames:
            with SocketClient(self.service) as game, suppress(ConnectionClosed, TimeoutError):
                game.socket.send(frame)
                game.socket.recv(timeout=2)
        for path in (
            f"/ws?token={token}",
            f"/0.2.0/{quote(token)}",
            f"/v1/{made('a path')}",
            f"/app/{made('a key')}?x={token}",
        ):
            with (
                suppress(InvalidStatus),
                SocketClient(self.service, path, additional_headers={"Authorization": f"x {token}"}),
            ):
                pass

    def pages(self) -> None:
        """Subscribe as a page, with credentials in right and in wrong places, and send an event named like a token."""
        token = self.token("viewer")
        broken = f"{token.rpartition('.')[0]}.\u00e9"  # masking of texts does not take this for a token
        self.detector.add(broken[-60:-2], "a broken token")
        for credential in (quote(f"{CLIENT_ID} {token}"), f"{CLIENT_ID}+{token}"):
            with PusherClient(self.service, f"?protocol=7&token={credential}") as page:
                for auth in (f"{CLIENT_ID} {token}", f"{CLIENT_ID} {broken}", broken):
                    page.send("pusher:subscribe", {"channel": pusher_channel(), "auth": auth})
                    page.reply()
                page.send("pusher:subscribe", {"channel": f"private-{token}"[:200]})
                page.reply()
                page.send(token[:80], {"auth": token})
                page.error()
        self.client("broadcaster", user_id=CHANNEL).post("broadcast", json={"event": token, "data": {}})

    def control(self) -> None:
        """Use the control API, which production does not have, with secrets in bodies and in place of ids."""
        caller = {"client_id": CLIENT_ID, "role": "broadcaster", "channel_id": CHANNEL, "user_id": CHANNEL}
        broadcast = {**caller, "method": "POST", "path": "/v1/e/broadcast", "body": {"event": "e", "data": {}}}
        token, pin = self.token("admin"), self.detector.add("7T3W9Q", "a PIN of a call")
        calls: list[dict[str, Any]] = [
            {**caller, "method": "POST", "path": "/v1/e/validate_pin", "body": {"pin": pin}},
            {**caller, "method": "POST", "path": "/v1/e/link/pin"},
            *({**broadcast, member: token[:255]} for member in ("user_id", "channel_id", "opaque_user_id")),
            {**broadcast, "client_id": token[:100]},
        ]
        for call in calls:
            answer = self.http.post("/_emulator/call", json=call).json()
            if "pin" in (answer.get("body") or {}):
                self.detector.add(answer["body"]["pin"], "a PIN that a call requests")
            self.http.post("/_emulator/call", content=json.dumps(call)[:-1])
        self.seeds_and_snapshots()

    def seeds_and_snapshots(self) -> None:
        """Load valid and invalid seeds and snapshots with codes and keys."""
        code = self.detector.make("a code of a seed")
        sets = [{"index": 0, "name": "Hat", "codes": [code]}]
        seed = {"extcli": 1, "client_id": CLIENT_ID, "channel": CHANNEL, "codes": sets, "links": [{}]}
        for link in self.http.put("/_emulator/seed", json=seed).json().get("links", []):
            self.detector.add_token(link["refresh"], "a refresh token of a seed")
        self.http.put("/_emulator/seed", json={**seed, "codes": [{"index": code}]})
        snapshot = self.http.get("/_emulator/snapshot?keys=true")
        keys = re.findall(r'"signing_key"\],"value_text":"(\w+)"', snapshot.text)
        assert bool(keys) is snapshot.is_success
        for key in keys:
            self.detector.add(key, "a key in a snapshot")
        for content in (snapshot.content, snapshot.content[:-20]):
            self.http.put("/_emulator/snapshot", content=content)
