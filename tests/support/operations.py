"""Every operation of the service, and a command that reaches it.

`docs/cli.md` shows the table. `tests/cli/test_operations.py` compares it with what the service declares, and runs each
command, from top to bottom.
"""

from __future__ import annotations

from typing import NamedTuple

FILES = {
    "seed.toml": "extcli = 1\n",
    "hats.txt": "HAT-1\nHAT-2\n",
    "faults.toml": '[[faults]]\nmatch = "GET /v1/e/rank"\nstatus = 503\n',
    "game.json": '{"identifier": "my-extension", "jwt": "a.b.c"}',
    "state-patch.json": '{"state_id": "channel", "state": [{"op": "add", "path": "/a", "value": 1}]}',
    "config-patch.json": '{"config_id": "channel", "config": [{"op": "add", "path": "/b", "value": 1}]}',
}
"""The files that the commands read, by name."""

TABLE = """
POST   vote                          vote cast lunch --value 3
GET    vote                          vote get lunch
GET    vote_logs                     vote logs lunch
POST   vote_config                   vote define rps --prompt "Which?" --options "Rock,Paper"
GET    vote_config                   vote config rps
GET    polls                         vote list
DELETE vote                          vote rm rps
POST   rank                          rank submit color --key blue
GET    rank                          rank get color
GET    rankings                      rank list
DELETE rank                          rank rm color
POST   accumulate                    accumulate add ratings '{"stars": 5}'
GET    accumulate                    accumulate get ratings
GET    buffers                       accumulate list

POST   extension_state               state set extension round=1
PATCH  extension_state               state patch extension round=2
GET    extension_state               state get extension
POST   channel_state                 state set channel round=1
PATCH  channel_state                 state patch channel round=2
GET    channel_state                 state get channel
POST   viewer_state                  state set viewer team=red
PATCH  viewer_state                  state patch viewer team=blue
GET    viewer_state                  state get viewer --user U1 --channel 1001
POST   extension_viewer_state        state set extension-viewer xp=1
PATCH  extension_viewer_state        state patch extension-viewer xp=2
GET    extension_viewer_state        state get extension-viewer --users 1,2
POST   extension_hidden_state        state set hidden seed=7
PATCH  extension_hidden_state        state patch hidden seed=8
GET    extension_hidden_state        state get hidden
GET    all_state                     state all
POST   extension_config              store-config set extension theme=dark
PATCH  extension_config              store-config patch extension theme=light
GET    extension_config              store-config get extension
POST   channel_config                store-config set channel theme=dark
PATCH  channel_config                store-config patch channel theme=light
GET    channel_config                store-config get channel
GET    all_config                    store-config all
POST   json_store                    json-store set highscore score=4
GET    json_store                    json-store get highscore

PUT    codes                         codes upload --set Hat=hats.txt --yes
GET    codes                         codes list
POST   codes/mark_from_poll          codes mark-from-poll lunch --correct 3 --prize 0
POST   codes/mark_from_list          codes mark-from-list U1 U2 --prize 0
GET    codes/eligibility             codes eligible
POST   codes/redeem                  codes redeem 0
GET    codes/redeemed                codes redeemed
DELETE codes                         codes rm --yes

GET    broadcast                     broadcast send round '{"number": 2}'
POST   broadcast                     broadcast send round '{"number": 2}' --post
GET    extension_broadcast           broadcast send news 1 --extension-wide
POST   extension_broadcast           broadcast send news 1 --extension-wide --post
GET    whisper_self                  broadcast whisper-self draft 1
POST   whisper_self                  broadcast whisper-self draft 1 --post
POST   pusher_broadcast              api POST pusher_broadcast -f event=sandbox:my-extension:round -f data=1
POST   datastream                    datastream send '{"click": 1}'

POST   curated_poll_edit             trivia define q1 --name "Which team wins?"
POST   curated_poll_edit_option      trivia define-option q1 red --name "Red team"
POST   curated_poll_state            trivia move q1 unlocked
GET    curated_poll                  trivia list
POST   curated_poll                  trivia vote q1 red
GET    curated_poll_leaderboard      trivia leaderboard
POST   team_membership               trivia join
GET    team_membership               trivia team
DELETE curated_poll_edit_option      trivia rm-option q1 red
DELETE curated_poll_edit             trivia rm q1

POST   authtoken                     token sandbox --role broadcaster
GET    user_info                     user info
GET    user_ids                      user list
POST   link/pin                      pin request
POST   pin                           pin request --game
POST   validate_pin                  pin request --game -o plain | cut -f1 | extcli pin validate
POST   unauthed/validate_pin         api POST unauthed/validate_pin --input game.json --no-auth
GET    pin_token_exists              pin status

POST   bits/transactions             bits purchase hat --id t1
socket get transaction               bits list
socket validate transaction          bits validate t1
socket refund transaction            bits refund t2

socket authenticate                  pin request -o plain | extcli pin login
socket set state                     socket send set state --data '{"state_id": "channel", "state": {"round": 1}}'
socket patch state                   socket send patch state --data @state-patch.json
socket get state                     socket send get state --data '{"state_id": "channel"}'
socket subscribe state               socket send subscribe state --data '{"topic_id": "channel"}'
socket unsubscribe state             socket send unsubscribe state --data '{"topic_id": "channel"}'
socket subscribe channel             socket send subscribe channel --data '{"topic_id": "1001"}'
socket set config                    socket send set config --data '{"config_id": "channel", "config": {"a": 1}}'
socket patch config                  socket send patch config --data @config-patch.json
socket get config                    socket send get config --data '{"config_id": "channel"}'
socket subscribe config              socket send subscribe config --data '{"topic_id": "channel"}'
socket create poll                   socket send create poll --data '{"poll_id": "p1", "prompt": "Which?"}'
socket get poll                      socket send get poll --data '{"poll_id": "p1"}'
socket reconfigure poll              socket send reconfigure poll --data '{"poll_id": "p1", "config": {"endsAt": -1}}'
socket subscribe poll                socket send subscribe poll --data '{"topic_id": "p1"}'
socket delete poll                   socket send delete poll --data '{"poll_id": "p1"}'
socket broadcast                     socket send broadcast --data '{"topic": "round", "data": {"number": 2}}'
socket subscribe broadcast           socket send subscribe broadcast --data '{"topic_id": "round"}'
socket subscribe authentication      socket send subscribe authentication
socket subscribe datastream          socket send subscribe datastream --data '{}'
socket subscribe twitchPurchaseBits  socket send subscribe twitchPurchaseBits --data '{"sku": "*"}'
POST   /_emulator/pins/expire        pin request -o plain | extcli pin expire -
DELETE pin                           link end

GET    /_emulator/clock              clock now
POST   /_emulator/clock              clock advance 1h
GET    /_emulator/clock/next         clock next
GET    /_emulator/contents           contents
GET    /_emulator/contents/polls     contents polls
GET    /_emulator/contents/rankings  contents rankings
GET    /_emulator/contents/buffers   contents buffers
GET    /_emulator/contents/stores    contents stores
GET    /_emulator/contents/json_stores  contents json-stores
GET    /_emulator/contents/codes     contents codes
GET    /_emulator/contents/pins      contents pins
GET    /_emulator/contents/links     contents links
GET    /_emulator/contents/trivia    contents trivia
GET    /_emulator/contents/purchases contents purchases
GET    /_emulator/wait               expect sockets --count =0
GET    /_emulator/parity             expect parity pin-guesses
GET    /_emulator/explain            explain
GET    /_emulator/journal            logs --status 4xx
GET    /_emulator/journal/entry      logs show latest
GET    /_emulator/journal/stream     logs -f --since 0 --count 1
POST   /_emulator/call               logs replay latest
GET    /_emulator/snapshot           snapshot save before.json
PUT    /_emulator/snapshot           snapshot load before.json
GET    /_emulator/sockets            socket list
POST   /_emulator/sockets/close      socket close --all
POST   /_emulator/sockets/stall      socket stall --all --release
POST   /_emulator/faults             fault add --id f1 --match 'GET /v1/e/rank' --drop
GET    /_emulator/faults             fault list
POST   /_emulator/faults/remove      fault rm f1
PUT    /_emulator/faults             fault load faults.toml
DELETE /_emulator/faults             fault clear
POST   /_emulator/demo               demo
POST   /_emulator/demo/stop          demo --stop
POST   /_emulator/reset              reset --keep 1m
POST   /_emulator/undo               reset --undo
PUT    /_emulator/seed               seed apply seed.toml
GET    /_emulator/ready              wait
GET    /_emulator/live               api GET /_emulator/live --no-auth
GET    /_emulator/metrics            api GET /_emulator/metrics --no-auth
GET    /_emulator/sdk.js             api GET /_emulator/sdk.js --no-auth
GET    /_emulator/platform-helper.js api GET /_emulator/platform-helper.js --no-auth
GET    /_ns                          ns list
POST   /_ns                          ns new
POST   /_ns/NAME                     ns fork default red
DELETE /_ns/NAME                     ns rm blue
"""
"""Operation and command. An operation is a method and a path, under `/v1/e/` unless it starts with a slash, or
`socket`, an action and its target."""

_WIDTH = 37


class Row(NamedTuple):
    """One line of the table."""

    operation: str
    command: str
    """Without `extcli` in front. It may be a pipe."""


def _row(line: str) -> Row:
    end = line.index(" ", _WIDTH - 1)  # a path may be longer than the column
    place, command = line[:end].split(), line[end:].strip()
    if place[0] == "socket":
        return Row(" ".join(place), command)
    method, path = place
    return Row(f"{method} {path}" if path.startswith("/") else f"{method} /v1/e/{path}", command)


ROWS = [_row(line) for line in TABLE.splitlines() if line]
