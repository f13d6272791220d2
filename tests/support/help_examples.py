"""The files and data that the examples in the help of the commands assume."""

from __future__ import annotations

import base64
import gzip

from support.constants import SECRET

FILES = {
    "ballots.csv": "user,value\nU1,0\nU2,1\n",
    "answers.csv": "user,key\nU1,blue\n",
    "ratings.jsonl": '{"user": "U1", "stars": 4}\n',
    "news.json": '{"text": "hello"}',
    "pistol.txt": "P-1\n",
    "hats.txt": "H-1\nH-2\n",
    "more-hats.csv": "code,size\nH-3,1\n",
    "winners.csv": "user,place\nU1,1\n",
    "receipt.txt": "",
    "live.secret": base64.b64encode(SECRET).decode(),
    "tests/.keep": "",
    "home/.config/fish/completions/.keep": "",
    "backend.js": "",
    "faults.toml": '[[faults]]\nmatch = "POST /v1/e/vote"\nstatus = 503\n',
}
COMPRESSED = gzip.compress(b"H-4\n", mtime=0)
"""The content of `hats.txt.gz`."""
FILLED_BY = """
extcli vote define lunch --prompt 'Which?' --options A,B --ends-in 10m
extcli vote cast lunch --value 0
extcli vote cast quiz --value 2 --as viewer:U2
extcli rank submit colour --key blue
extcli accumulate add ratings '{"stars": 5}'
extcli state set channel '{"round": 4, "team": "red"}'
extcli store-config set channel '{"round": 4, "team": "red"}'
extcli json-store set highscore '{"score": 4}'
extcli trivia define q1 --name 'Which team?'
extcli trivia define-option q1 red --name Red
extcli trivia move q1 unlocked
extcli codes upload --set Pistol=pistol.txt --set Coat=hats.txt --yes
extcli codes mark-from-list U2 --prize 0
extcli bits purchase hat --id a1b2c3
extcli bits purchase hat --as viewer:7
extcli seed example > seed.toml
extcli extension init --client-id my-extension --owner 7
extcli profile add dev --url "$EXTCLI_URL"
extcli profile add live --url https://ext.example --production
extcli snapshot save before.json
extcli snapshot save after.json
"""
LINK = "extcli pin request -o plain | extcli pin login"
BEFORE = {
    "extcli link token": LINK,
    "$(extcli link token": LINK,
    "extcli link end": LINK,
    'echo "$game"': "game=$(extcli pin request --game -o plain); echo $game | cut -d' ' -f1 | extcli pin validate",
    "extcli config unset timeout": "extcli config set timeout 10s -p dev",
    "extcli extension retire": "extcli extension rotate --client-id my-extension",
    "extcli extension init": "rm extensions.toml",
    "extcli profile add": "rm config.toml",
    "extcli logs replay": "extcli vote get lunch",
    "extcli fault rm": "extcli fault add --id f1 --match 'POST /v1/e/vote' --drop",
    "extcli token mint": "export EXTCLI_SECRET=$(cat live.secret)",
}
"""What runs before an example that contains the text."""
NOT_RUN = {
    "extcli serve --port 0 --data sqlite:///srv/": "writes to /srv",
    "extcli data ": "needs a data file; test_data_command.py",
    "extcli exec --": "needs a project with npm; test_exec.py runs others",
    "extcli exec --quiet": "runs pytest in pytest; test_exec.py runs others",
    "extcli status": "needs a named service; test_named_services.py",
    'eval "$(extcli status': "needs a named service; test_named_services.py",
    "extcli stop": "needs a named service; test_named_services.py",
    "extcli socket close": "needs an open socket; test_socket_commands.py",
    "extcli socket stall": "needs an open socket; test_socket_commands.py",
    "extcli logs -f": "follows without end; test_logs_command.py",
    "extcli serve &": "leaves a service behind; test_wait_command.py",
    "extcli extension init /etc/": "writes to /etc",
    "extcli pin validate --channel": "asks at a terminal; test_pin_commands.py",
    "extcli pin login": "asks at a terminal; test_pin_commands.py",
    "extcli bits purchase --receipt": "needs a signed receipt; test_bits_command.py",
    "extcli seed apply seed.toml": "the example names files of its own; test_seed_command.py",
    "extcli seed check": "the example names files of its own; test_seed_command.py",
    "extcli connect node >": "runs a backend in Node; test_connect_command.py",
}
ENDLESS = ("--watch", "extcli listen", "extcli socket repl", "--wait 1", "extcli wait", "extcli expect")
"""Examples that wait for something. They are interrupted, and must have begun without an error."""
