"""Faulty seeds, each with its faults: line, column and field."""

from __future__ import annotations

HEAD = 'extcli = 1\nchannel = "777"\n'
POLL = HEAD + '[[polls]]\nid = "lunch"\n'
FAULT = HEAD + '[[faults]]\nmatch = "POST /v1/e/vote"\n'
CODES = HEAD + '[[codes]]\nindex = 0\nname = "Hat"\n'

FAULTY: list[tuple[str, list[str]]] = [
    ("extcli = 1\npolls = [", ["2:1: not valid TOML"]),
    ("", ["1:1: extcli"]),
    (POLL + "options = ['Pizza', 2]", ["5:21: polls[0].options[1]"]),
    (CODES + "codes = ['A', 'B', 'A']", ["6:20: codes[0].codes[2]"]),
    (CODES + "file = 'codes.csv'", ["6:1: codes[0].file"]),
    (CODES + "file = 'codes.txt'", ["6:1: codes[0].file", "6:1: codes[0].file"]),
    (HEAD + "[clock]\nat = '2026-13-01T00:00:00Z'", ["4:1: clock.at"]),
    (HEAD + "[[links]]\nchannel = '${NOWHERE}'", ["4:1: links[0].channel"]),
    (FAULT + "status = 503\ndrop = true", ["6:1: faults[0].drop"]),
    (FAULT + "drop = true\nid = 'a'\n[[faults]]\nevent = 'e'\nlose = true\nid = 'a'", ["10:1: faults[1].id"]),
    ('{"extcli": 1,\n "channel": "\\ud800"}', ["2:2: channel"]),
    ('{"extcli": 1, "a": ' + "[" * 5_000 + "]" * 5_000 + "}", ["1:1: nested too deeply"]),
    ('{"extcli": 1, "polls": [], "polls": []}', ["1:1: an object has the member 'polls' twice"]),
    ('{"extcli": 1,\n "polls": [}', ["2:12: not valid JSON"]),
]
"""The text of a seed, and its faults without the file's name in front. extcli finds them by itself."""

REFUSED = [
    (POLL + "starts_at = 2999-01-01T00:00:00Z\nvotes = { 'a: b' = 0 }", ['6:11: polls[0].votes["a: b"]']),
    (POLL + "starts_at = 2999-01-01T00:00:00Z\nvotes = { U1 = 0, U2 = 1 }", ["6:11: polls[0].votes.U1"]),
    (
        HEAD + "".join(f"[[polls]]\nid = 'p{number}'\nvotes = {{ U{number // 250} = 0 }}\n" for number in range(1_002)),
        ["3004:1: polls[1000].id", "3007:1: polls[1001].id"],
    ),
]
"""The same for errors that only the service finds."""

FILES = {"codes.csv": "code,size\nA,1\n", "empty.txt": "\n", "codes.txt": "A\nB\n\nA\n" + "C" * 64 + "\n"}
"""The files next to them."""
