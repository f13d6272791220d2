"""Faulty seeds, each with its faults: line, column, field, what is wrong and what is allowed."""

from __future__ import annotations

from emulator.contract.names import CLIENT_ID_RULE

HEAD = 'extcli = 1\nchannel = "777"\n'
POLL = HEAD + '[[polls]]\nid = "lunch"\n'
BUFFER = HEAD + '[[buffers]]\nid = "ratings"\n'
FAULT = HEAD + '[[faults]]\nmatch = "POST /v1/e/vote"\n'
CODES = HEAD + '[[codes]]\nindex = 0\nname = "Hat"\n'

FAULTY: list[tuple[str, list[str]]] = [
    ("extcli = 1\npolls = [", ["2:1: not valid TOML: invalid value"]),
    ("extcli = 1\nextcli = 1", ["2:1: not valid TOML: cannot overwrite a value"]),
    ("", ["1:1: extcli: missing; must be 1"]),
    ("extcli = 2", ["1:1: extcli: must be 1"]),
    ('extcli = "1"', ["1:1: extcli: must be 1"]),
    (
        HEAD + "colour = 1",
        [
            "3:1: colour: unknown field; the fields are extcli, client_id, channel, clock, polls, rankings, buffers, "
            "stores, json_stores, codes, links, faults"
        ],
    ),
    (HEAD + "[[poll]]\nid = 'lunch'", ["3:1: poll: unknown field; did you mean polls?"]),
    ("extcli = 1\nchannel = 777", ["2:1: channel: must be a text of 1 to 64 printable characters, in quotes"]),
    (
        'extcli = 1\nclient_id = "my extension"',
        [f"2:1: client_id: must be a client id: {CLIENT_ID_RULE}"],
    ),
    (HEAD + "polls = 3", ["3:1: polls: must be a list of tables; in TOML, write [[polls]] above each"]),
    (HEAD + "[polls.lunch]\nvotes = {}", ["3:1: polls: must be a list of tables; in TOML, write [[polls]] above each"]),
    (
        HEAD + "[[polls]]\nprompt = 'Where?'",
        ["3:1: polls[0].id: missing; must be 1 to 64 letters, digits, '$', '-' and '_', and not just 'global-'"],
    ),
    (
        HEAD + "[[polls]]\nid = 'lunch time'",
        ["4:1: polls[0].id: must be 1 to 64 letters, digits, '$', '-' and '_', and not just 'global-'"],
    ),
    (
        HEAD + "[[polls]]\nid = 'global-'",
        ["4:1: polls[0].id: must be 1 to 64 letters, digits, '$', '-' and '_', and not just 'global-'"],
    ),
    (POLL + "promt = 'Where?'", ["5:1: polls[0].promt: unknown field; did you mean prompt?"]),
    (POLL + "options = []", ["5:1: polls[0].options: has 0 options; must be 1 to 64"]),
    (POLL + "options = ['Pizza', 2]", ["5:21: polls[0].options[1]: must be a text of at most 128 bytes, in quotes"]),
    (
        POLL + f"options = [\n  'Pizza',\n  '{'é' * 65}',\n]",
        ["7:3: polls[0].options[1]: has 130 bytes; the limit is 128"],
    ),
    (POLL + f"prompt = '{'?' * 257}'", ["5:1: polls[0].prompt: has 257 bytes; the limit is 256"]),
    (
        POLL + f"user_data = '{'x' * 1023}'",
        ["5:1: polls[0].user_data: has 1025 bytes of compact JSON; the limit is 1024"],
    ),
    (
        POLL + "votes = [1, 2]",
        ["5:1: polls[0].votes: must be a table from user to a whole number from -99 to 99, or a list of them"],
    ),
    (POLL + "votes = { U1 = 0, U2 = 100 }", ["5:19: polls[0].votes.U2: 100 is not within -99 to 99"]),
    (POLL + "votes.U1 = -100", ["5:1: polls[0].votes.U1: -100 is not within -99 to 99"]),
    (
        POLL + "[polls.votes]\nU1 = 1\nU2 = '2'",
        ["7:1: polls[0].votes.U2: must be a whole number from -99 to 99, or a list of them"],
    ),
    (POLL + "votes = { U1 = true }", ["5:11: polls[0].votes.U1: must be a whole number from -99 to 99"]),
    (POLL + "votes = { 'a: b' = 100 }", ['5:11: polls[0].votes["a: b"]: 100 is not within -99 to 99']),
    (POLL + "votes = { '' = 1 }", ['5:11: polls[0].votes[""]: a user must be a text of 1 to 256 printable characters']),
    (POLL + "votes = { U1 = [0, 1] }", ["5:11: polls[0].votes.U1: 2 votes; total_votes_per_user is 1"]),
    (
        POLL + "total_votes_per_user = 3\nvotes = { U1 = [0, 0] }",
        ["6:11: polls[0].votes.U1: 2 votes for one option; votes_per_option is 1"],
    ),
    (
        POLL + "total_votes_per_user = 3\nvotes = { U1 = [0, 1] }",
        ["6:11: polls[0].votes.U1: votes for 2 options; distinct_options_per_user is 1"],
    ),
    (POLL + "total_votes_per_user = 1025", ["5:1: polls[0].total_votes_per_user: 1025 is not within 1 to 1024"]),
    (POLL + "disabled = 'no'", ["5:1: polls[0].disabled: must be true or false"]),
    (
        POLL + "starts_at = 'tomorrow'",
        ['5:1: polls[0].starts_at: must be a time with a zone in RFC 3339, such as "2026-12-24T18:00:00Z"'],
    ),
    (
        POLL + "starts_at = 2026-12-24T18:00:00",
        ['5:1: polls[0].starts_at: must be a time with a zone in RFC 3339, such as "2026-12-24T18:00:00Z"'],
    ),
    (
        POLL + "starts_at = 2026-12-24T18:00:00Z\nends_at = 2026-12-24T17:00:00Z",
        ["5:1: polls[0].starts_at: must not be after ends_at"],
    ),
    (POLL + "[[polls]]\nid = 'other'\n[[polls]]\nid = 'lunch'", ["8:1: polls[2].id: polls[0] has the same id"]),
    (
        HEAD + "[[rankings]]\nid = 'color'\nanswers = { U1 = 5 }",
        ["5:13: rankings[0].answers.U1: must be a text, in quotes"],
    ),
    (HEAD + "[[rankings]]\nid = 'color'", ["3:1: rankings[0].answers: missing; must be a table from user to a text"]),
    (
        BUFFER + "entries = [{ user = 'U1' }]",
        ["5:12: buffers[0].entries[0].data: missing; must be a JSON value of at most 255 bytes"],
    ),
    (
        BUFFER + f"entries = [\n{{ user = 'U1', data = 1 }},\n{{ user = 'U1', data = '{'x' * 254}' }}]",
        ["7:16: buffers[0].entries[1].data: has 256 bytes of compact JSON; the limit is 255"],
    ),
    (
        BUFFER + "entries = [{ user = 'U1', data = { at = 2026-12-24 } }]",
        ["5:36: buffers[0].entries[0].data.at: must be a JSON value; write a date as a text"],
    ),
    (BUFFER + "entries = [{ user = 'U1', data = [1, nan] }]", ["5:38: buffers[0].entries[0].data[1]: must be finite"]),
    (
        HEAD + "[[stores]]\nstore = 'channel'\ndata = {}",
        [
            "4:1: stores[0].store: must be one of extension_state, channel_state, viewer_state, "
            "extension_viewer_state, extension_hidden_state, extension_config, channel_config"
        ],
    ),
    (
        HEAD + "[[stores]]\nstore = 'channel_state'\ndata = [1]",
        ["5:1: stores[0].data: must be a JSON object of at most 65536 bytes"],
    ),
    (
        HEAD + "[[stores]]\nstore = 'viewer_state'\ndata = {}",
        ["3:1: stores[0].user: missing; viewer_state belongs to a user"],
    ),
    (
        HEAD + "[[stores]]\nstore = 'channel_state'\ndata = {}\nuser = 'U1'",
        ["6:1: stores[0].user: must be left out; channel_state belongs to no user"],
    ),
    (
        HEAD + f"[[json_stores]]\nid = 'high'\ndata = {{ name = '{'x' * 2048}' }}",
        ["5:1: json_stores[0].data: has 2059 bytes of compact JSON; the limit is 2048"],
    ),
    (CODES, ["3:1: codes[0].codes: give either file or codes"]),
    (CODES + "codes = ['A', 'B', 'A']", ["6:20: codes[0].codes[2]: is the same code as codes[0].codes[0]"]),
    (CODES + f"codes = ['{'A' * 64}']", ["6:10: codes[0].codes[0]: must be a text of 1 to 63 printable characters"]),
    (CODES + "file = 'missing.txt'", ["6:1: codes[0].file: cannot read missing.txt; No such file or directory"]),
    (CODES + "file = 'codes.csv'", ["6:1: codes[0].file: codes.csv has 2 columns and needs column"]),
    (CODES + "file = 'empty.txt'", ["6:1: codes[0].file: empty.txt has 0 codes; must be 1 to 999999"]),
    (
        CODES + "file = 'codes.txt'",
        [
            "6:1: codes[0].file: codes.txt:4 is the same code as codes.txt:1",
            "6:1: codes[0].file: codes.txt:5 has 64 characters; a code has 1 to 63",
        ],
    ),
    (CODES + "codes = ['A']\ncolumn = 'code'", ["7:1: codes[0].column: is for file only"]),
    (CODES + "codes = ['A']\nmarked = { U1 = 0 }", ["7:12: codes[0].marked.U1: 0 is not within 1 to 1000"]),
    (HEAD + "[[codes]]\nindex = 10\nname = 'Hat'\ncodes = ['A']", ["4:1: codes[0].index: 10 is not within 0 to 9"]),
    (
        CODES + "codes = ['A']\n[[codes]]\nindex = 1\nname = 'Hat'\ncodes = ['B']",
        ["9:1: codes[1].name: codes[0] has the same name"],
    ),
    (
        HEAD + "[clock]\nat = '2026-13-01T00:00:00Z'",
        ['4:1: clock.at: must be a time with a zone in RFC 3339, such as "2026-12-24T18:00:00Z"'],
    ),
    (
        HEAD + "[clock]\nat = '1970-01-01T00:00:00+01:00'",
        ['4:1: clock.at: must be a time with a zone in RFC 3339, such as "2026-12-24T18:00:00Z"'],
    ),
    (HEAD + "[clock]", ["3:1: clock: give at, or frozen, or both"]),
    (HEAD + "[[links]]\n[[links]]", ["4:1: links[1].channel: links[0] has the same channel"]),
    (HEAD + "[[links]]\nchannel = '${NOWHERE}'", ["4:1: links[0].channel: the variable NOWHERE is not set"]),
    (
        HEAD + "[[links]]\nchannel = '${NOWHERE'",
        ["4:1: links[0].channel: ${ must be followed by a name and }; write $${ for the text ${"],
    ),
    (
        FAULT,
        [
            "3:1: faults[0]: give one effect: status, delay, drop, reset, truncate, stall, close, lose, double or "
            "reorder"
        ],
    ),
    (FAULT + "status = 503\ndrop = true", ["6:1: faults[0].drop: a fault has one effect, and status is also given"]),
    (FAULT + "status = 'x'", ["5:1: faults[0].status: must be a whole number from 400 to 599"]),
    (FAULT + "drop = false", ["5:1: faults[0].drop: must be true, or left out"]),
    (FAULT + "drop = true\nretry_after = 1", ["6:1: faults[0].retry_after: is for status only"]),
    (FAULT + "drop = true\nseed = 1", ["6:1: faults[0].seed: is for share, or a range of delay, only"]),
    (
        FAULT + "lose = true",
        ["5:1: faults[0].lose: does not act on requests; use status, delay, drop, reset, truncate or stall"],
    ),
    (
        FAULT + "drop = true\nevent = 'news'",
        ["6:1: faults[0].event: must be absent: requests have only the conditions role, channel, user, client_id"],
    ),
    (FAULT + "drop = true\nshare = 2", ["6:1: faults[0].share: must be a number over 0, at most 1"]),
    (
        FAULT + "delay = 200",
        ['5:1: faults[0].delay: must be a duration or two, such as "200ms" or "200ms..2s"'],
    ),
    (
        FAULT + "delay = '2s..200ms'",
        ['5:1: faults[0].delay: must be a duration or two, such as "200ms" or "200ms..2s"'],
    ),
    (FAULT + "drop = true\nfor = 'long'", ['6:1: faults[0].for: must be a duration, such as "10s"']),
    (
        FAULT + "drop = true\nlasts = '1s'",
        [
            "6:1: faults[0].lasts: unknown field; the fields are id, match, event, "
            "role, user, client_id, channel, status, retry_after, delay, drop, reset, "
            "truncate, stall, close, lose, double, reorder, times, share, seed, for"
        ],
    ),
    (HEAD + "[[faults]]\nstatus = 503", ["3:1: faults[0].match: give match, such as 'POST /v1/e/vote'"]),
    (
        HEAD + "[[faults]]\nlose = true",
        ["3:1: faults[0].match: give match, such as 'BROADCAST *', or event for the broadcasts of an event"],
    ),
    (
        FAULT + "drop = true\nid = 'a'\n[[faults]]\nevent = 'e'\nlose = true\nid = 'a'",
        ["10:1: faults[1].id: faults[0] has the same id"],
    ),
    (
        '{"extcli": 1,\n "polls": [{"id": "a b"}]}',
        ["2:13: polls[0].id: must be 1 to 64 letters, digits, '$', '-' and '_', and not just 'global-'"],
    ),
    ('{"extcli": 1,\n "channel": "\\ud800"}', ["2:2: channel: must be Unicode text"]),
    ('{"extcli": 1,\n "stores": [{"data": {"\\ud800": 1}}]}', ["2:14: stores[0].data: must be Unicode text"]),
    ('{"extcli": ' + "1" * 5_000 + "}", ["1:1: not valid JSON: a number has too many digits"]),
    ("extcli = " + "1" * 5_000, ["1:1: not valid TOML: a number has too many digits"]),
    ('{"extcli": 1, "a": ' + "[" * 5_000 + "]" * 5_000 + "}", ["1:1: nested too deeply"]),
    ("extcli = 1\na = " + "[" * 5_000 + "]" * 5_000, ["1:1: nested too deeply"]),
    ('{"extcli": 1,\n "polls": [}', ["2:12: not valid JSON: expecting value"]),
    ('{"extcli": 1,\n "polls": [], "polls": []}', ["2:15: polls: appears twice"]),
]
"""The text of a seed, and its faults without the file's name in front. extcli finds them by itself."""

REFUSED = [
    (
        POLL + "starts_at = 2999-01-01T00:00:00Z\nvotes = { 'a: b' = 0 }",
        ['6:11: polls[0].votes["a: b"]: the poll has not started, has ended or is disabled'],
    ),
    (
        POLL + "starts_at = 2999-01-01T00:00:00Z\nvotes = { U1 = 0, U2 = 1 }",
        ["6:11: polls[0].votes.U1: the poll has not started, has ended or is disabled"],
    ),
    (
        HEAD + "".join(f"[[polls]]\nid = 'p{number}'\nvotes = {{ U1 = 0 }}\n" for number in range(1_002)),
        [
            "3004:1: polls[1000].id: 1000 of this kind are in use in channel 777; the limit is 1000",
            "3007:1: polls[1001].id: 1000 of this kind are in use in channel 777; the limit is 1000",
        ],
    ),
]
"""The same for errors that only the service finds."""

FILES = {"codes.csv": "code,size\nA,1\n", "empty.txt": "\n", "codes.txt": "A\nB\n\nA\n" + "C" * 64 + "\n"}
"""The files next to them."""
