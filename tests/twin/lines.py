"""Command lines beyond the examples: mistakes, seeds, snapshots, and files of many lines."""

from __future__ import annotations

import json

BALLOTS = "user,value\n" + "".join(f"U{number},{number % 5}\n" for number in range(300)) + "U1,999\nU2,x\n,1\nU3\n"
MORE_FILES = {
    "many.csv": BALLOTS,
    "good.csv": "user,value\n" + "".join(f"U{number},{number % 3}\n" for number in range(100)),
    "answers.jsonl": "".join(json.dumps({"user": f"U{n}", "key": "é" * (n % 3)}) + "\n" for n in range(50)) + "{\n",
    "codes.json": json.dumps([f"C-{number}" for number in range(500)]),
    "bad-codes.txt": "A\n\nA\n" + "x" * 70 + "\n",
    "broken.toml": "extcli = 1\n[[polls]]\nid = \n",
    "wrong.toml": 'extcli = 1\nnothing = 2\n[[polls]]\nid = 5\nvotes = { U1 = 1000 }\n[[stores]]\nstore = "x"\n',
    "small.toml": 'extcli = 1\nclient_id = "my-extension"\nchannel = "1"\n[[polls]]\nid = "s"\nvotes = { U1 = 5 }\n',
    "broken.json": '{"extcli_snapshot": 1,',
    "bad-profiles.toml": "[profiles.dev]\nurl = 5\nnothing = 1\n",
}
_TEXT = """
extcli
extcli nonsense
extcli votes list
extcli vote cast lunch --value 999
extcli vote cast lunch --value x
extcli vote cast lunch
extcli vote cast lunch --value 1 --as moderator
extcli vote cast lunch --value 1 --as viewer:U7 -v
extcli vote cast lunch --value 1 --dry-run
extcli vote cast lunch --from many.csv
extcli vote cast lunch --from many.csv --keep-going
extcli vote cast lunch --from good.csv
extcli vote cast lunch --from good.csv --dry-run
extcli vote cast lunch --from missing.csv
extcli vote get lunch -o jsonl
extcli vote get lunch --query stats.count
extcli vote get lunch --query 'stats['
extcli vote get lunch -p missing
extcli vote logs lunch
extcli vote rm lunch --as viewer
extcli vote rm lunch && extcli vote get lunch
extcli vote define lunch --options A
extcli vote define lunch --prompt X --options A,B --ends-in 5x
extcli vote close lunch && extcli vote cast lunch --value 1
extcli rank submit colour --from answers.jsonl
extcli accumulate add ratings '{' ; extcli accumulate get ratings
extcli codes upload --set Hat=bad-codes.txt --yes
extcli codes upload --set Hat=codes.json --yes && extcli codes list && extcli codes redeem 0
extcli codes rm --yes
extcli state patch channel round=5 team=null && extcli state get channel
extcli state set channel '[1]'
extcli json-store get missing
extcli token mint --role backend
extcli token explain abc
extcli token sandbox --role viewer | extcli token explain -
extcli pin validate AAAAAA
extcli pin status
extcli pin request -o plain | extcli pin login && extcli token refresh
extcli seed check broken.toml
extcli seed check wrong.toml
extcli seed check small.toml
extcli seed apply small.toml && extcli vote list
extcli seed apply wrong.toml
extcli seed apply seed.toml
extcli snapshot save one.json && extcli vote cast lunch --value 1 --as viewer:U55 && extcli snapshot save two.json && \
extcli snapshot diff one.json two.json
extcli snapshot save - | wc -c
extcli snapshot save one.json --with-keys && extcli reset && extcli snapshot load one.json --yes
extcli snapshot load broken.json
extcli snapshot load missing.json
extcli snapshot diff before.json broken.json
extcli clock advance 8d && extcli vote list
extcli clock set 2031-01-01T00:00:00Z && extcli clock now && extcli clock next
extcli clock advance -5
extcli fault add --match 'GET /v1/e/vote' --status 503 && extcli vote get lunch
extcli fault add --match x
extcli fault load faults.toml && extcli fault list
extcli ns new red && extcli ns list && extcli --url $EXTCLI_URL/_ns/red vote list
extcli ns rm nothing
extcli reset --undo
extcli reset --keep 1m && extcli vote list && extcli reset --undo && extcli vote list
extcli vote get nothing --as viewer -q ; extcli explain
extcli vote rm lunch --as viewer ; extcli explain
extcli explain Z9
extcli logs show latest
extcli expect votes lunch --count 1 --timeout 1s
extcli expect votes lunch --count 9 --timeout 1s
extcli expect store channel --path round --equals 4 --timeout 1s
extcli expect nonsense
extcli wait --timeout 1s
extcli wait --url http://127.0.0.1:9 --timeout 1s
extcli api GET /v1/e/polls
extcli api GET /v1/e/polls -v
extcli api POST /v1/e/vote --data '{"value": 3}'
extcli api GET nothing
extcli api TRACE /v1/e/polls
extcli socket send get state --data '{"state_id": "channel"}'
extcli socket send get state --data '{'
extcli socket send frobnicate
extcli broadcast send round '{"number": 2}'
extcli broadcast send round '{'
extcli datastream send '{"click": 1}'
extcli profile add dev2 --url http://x.example ; extcli profile list ; extcli profile rm dev2
EXTCLI_CONFIG=bad-profiles.toml extcli vote list
EXTCLI_URL=nonsense extcli vote list
EXTCLI_TIMEOUT=x extcli vote list
EXTCLI_OUTPUT=yaml extcli vote list
extcli config set timeout 5x
extcli extension init --client-id new --extensions new.toml ; ls -l new* | cut -c1-10
extcli extension rotate --client-id my-extension && extcli extension retire --client-id my-extension
extcli extension init --client-id my-extension
extcli data verify missing.db
extcli data verify seed.toml
extcli vote list --token-file missing
extcli vote list --channel ''
extcli vote list --channel $'a\\tb'
extcli vote cast $'\\xff' --value 1
extcli vote list >&-
extcli vote list | true
extcli vote list <&- 2>&-
"""
MISTAKES = ("--nonsense", "x y z </dev/null", "-o jsonl --url http://127.0.0.1:9")
"""What is added to each command."""
LINES = [line for line in _TEXT.splitlines() if line]
