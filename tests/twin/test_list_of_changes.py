"""The list of intended differences, `docs/changes.toml`, hides nothing that it does not name."""

from __future__ import annotations

from fnmatch import fnmatchcase

from twin import changes
from twin.calls import ENDPOINTS
from twin.commands import _place
from twin.comparing import Difference
from twin.control import KINDS, MONITORING, SCREENS, SCRIPTS
from twin.lines import LINES
from twin.test_planted_differences import PLANTS

CONTROL = [
    *("explain", "journal", "journal/entry", "journal/stream", "snapshot", "enter", "rig", "ui", "wait"),
    *(*MONITORING, *SCRIPTS, *(f"contents/{kind}" for kind in KINDS), *(f"ui/{screen}" for screen in SCREENS)),
]
CALLS = [
    *(f"{each.method} /v1/e/{each.path}" for each in ENDPOINTS),
    *(f"GET /_emulator/{each}" for each in CONTROL),
    *(f"{each} /_emulator/clock" for each in ("PUT", "POST")),
    *(
        "GET /_emulator",
        "PUT /_emulator/seed",
        "PUT /_emulator/snapshot",
        "POST /_emulator/call",
        "POST /_emulator/reset",
    ),
    *("GET /_ns", "POST /_ns/red", "DELETE /_ns/red", "GET /schema", "GET /schema/openapi.json", "raw bytes"),
]
FRAMES = ["socket handshake", "frame", "frame update", "frame authenticate", "frame get state", "frame subscribe poll",
          "page event in sandbox", "page event in production"]  # fmt: skip
COMMANDS = [*dict.fromkeys(_place(line) for line in LINES), "extcli serve", "extcli exec", "extcli listen"]
PLACES = [
    *CALLS,
    *(f"after kill {each}" for each in CALLS if "/v1/e/" in each),
    *FRAMES,
    *COMMANDS,
    *(f"{each} --help" for each in COMMANDS),
    "stderr of extcli serve",
]
DIFFERENCES = [
    *(
        "status: 200 -> 500",
        "status: 404 -> 200",
        "status: 200 -> 404",
        "status: 200 -> 403",
        "status: closed without a response -> 200",
        "status: 409 -> 400 (in use)",
    ),
    *("header content-type: 'application/json' -> 'text/html'", "header retry-after: '1' -> absent"),
    *("connection: kept open -> closed", 'body order: ["a", "b"] -> ["b", "a"]', "body.count: 3 -> 2"),
    *('body.errors[0].detail: "no such poll" -> "no poll"', 'body.next: absent -> "0"', "body line 3: 'a' -> 'b'"),
    *("body line ends: 'a' -> 'a'", "body as text: '1.0' -> '1'", "body.rules[0].count: 3 -> 2"),
    *('body.stats.code: absent -> ""', 'body.rows[0].hint: "a" -> "b"', "body.rows[0].expires_at: 5 -> absent"),
    *(
        'body line 2: \'"pin":"<hex16>","expires_at":5}\' -> \'"pin":"<hex16>","expires_at":7}\'',
        "body line 48: '<dt>Journal entries</dt><dd>19 in 2.1 KiB' -> '<dt>Journal entries</dt><dd>18 in 2.0 KiB'",
    ),
    *(f'body.explanation.{name}: "a" -> "b"' for name in ("rule", "title", "held", "needed", "next_step")),
    *(
        "body.entries[0].status: 200 -> 201",
        "body.entries[0].request.size: 3 -> 4",
        "body.entries: 3 items -> 2 items; '' -> ''",
    ),
    *(
        "exit code: 0 -> 1",
        "stdout line 3: 'a' -> absent",
        "stdout.count: 3 -> 2",
        "stderr line 1: 'extcli: no' -> 'extcli: n'",
    ),
    *(
        "file votes.csv: written -> absent",
        "file votes.csv: mode 0600 -> 0644",
        "snapshot.records: 3 items -> 2 items; '' -> ''",
    ),
    *("reply of connection 0, 1: data -> errors ({} -> {})", "reply of connection 0, 1.data.ok: true -> false"),
    *('connection 1: {"event":"state"} -> absent', 'connection 1: absent -> {"event":"whisper-U5"}'),
    *('connection 1 of 5: {"event":"whisper-5"} -> absent', 'connection 1 of 5: {"event":"whisper-U5"} -> absent'),
    *(
        "reply of connection 1, 0: pusher_internal:subscription_succeeded -> connection lost",
        "line 5: 'started' -> absent",
    ),
]
"""Differences of every kind, which no change intends."""
REWRITTEN = {
    "GET /_emulator",
    "GET /_emulator/",
    "GET /_emulator/ui/*",
    "POST /_emulator/ui",
    "GET /_emulator/rig",
    "GET /_emulator/explain",
    "GET /_emulator/platform-helper.js",
    "GET /_emulator/sdk.js",
    "extcli policies",
    "extcli policies -o",
}
"""What is intended to have another text as a whole. All else about these places is compared."""
REWORDED = (
    "body.explanation.title:",
    "body.explanation.held:",
    "body.explanation.needed:",
    "body.explanation.next_step:",
)
ENTRIES = changes.read().entries


def listed(difference: Difference) -> list[changes.Change]:
    """Return the entries that excuse a difference, unless its place has another text as a whole."""
    found = [each for each in ENTRIES if each.excuses(difference)]
    names = {each for each in REWRITTEN if fnmatchcase(difference.where, each)}
    is_rewritten = names and difference.what.startswith(("body line", "stdout line", *REWORDED))
    return [each for each in found if not (is_rewritten and each.where in names)]


def test_an_entry_without_a_match_names_one_place():
    broad = [each for each in ENTRIES if not each.match and set("*?") & set(each.where)]

    assert [] == broad


def test_no_entry_excuses_a_difference_that_no_change_intends():
    excused = {
        (each, entry.where, entry.match)
        for what in DIFFERENCES
        for each in PLACES
        for entry in listed(Difference(each, what))
    }

    assert set() == excused


def test_no_entry_excuses_a_planted_difference():
    planted = [
        Difference(where, each.what) for each in PLANTS.values() for where in ([each.where] if each.where else PLACES)
    ]

    assert [] == [(each, entry) for each in planted for entry in listed(each)]
