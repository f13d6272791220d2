"""Random callers, channels, ids and other values for the calls."""

from __future__ import annotations

from hypothesis import strategies as st

from support.service import CLIENT_ID, OTHER_ID
from surface.calls import DAY, HOUR, MINUTE, SECOND, WEEK, Caller
from surface.generated import OPTIONS, PATCHES, QUESTIONS, TO_GAMES
from surface.stores import STORES

PEOPLE = [
    ("viewer", "1", "777", None),
    ("viewer", "1", "888", None),
    ("viewer", "2", "777", "UX2Y"),
    ("viewer", None, "777", "Aabc"),
    ("viewer", None, None, None),
    ("broadcaster", "777", "777", None),
    ("broadcaster", "888", None, None),
    ("admin", "9", "777", None),
    ("admin", "9", None, None),
    ("backend", None, None, None),
    ("backend", None, "888", None),
    # User 2 again, before sharing their id and with a token that names nothing else.
    ("viewer", None, "777", "UX2Y"),
    ("viewer", "2", "777", None),
    ("viewer", "2", None, "UX2Y"),
    # User 888 in another channel than their own.
    ("viewer", "888", "777", None),
]
OURS, THEIRS = ([Caller(client_id, *person) for person in PEOPLE] for client_id in (CLIENT_ID, OTHER_ID))
WITNESSES = [OURS[index] for index in (0, 1, 5, 7, 9, 12)] + [THEIRS[index] for index in (0, 7, 9)]

# Two extensions. One makes most calls, so that its calls affect each other.
ANYONE = st.sampled_from([*OURS, *OURS, *OURS, *THEIRS])
WRITERS = st.sampled_from([caller for caller in [*OURS, *OURS, *THEIRS] if caller.role != "viewer"] + OURS[:1])
MANAGERS = st.sampled_from(
    [caller for caller in [*OURS, *OURS, *THEIRS] if caller.role in ("admin", "backend")] + OURS[5:6]
)
BROADCASTERS = st.sampled_from([OURS[5], OURS[5], OURS[6], THEIRS[5], OURS[7]])
CHANNELS = st.sampled_from([{}, {}, {}, {"channel_id": "777"}, {"channel_id": "888"}])
POLLS = st.sampled_from(["", "quiz", "global-x"])
IDS_IN_BODIES = st.sampled_from([{}, {}, {"id": ""}, {"id": "quiz"}])
BUFFERS = st.sampled_from(["", "global-x"])
ADMINS = st.sampled_from([OURS[7], OURS[8], THEIRS[7], OURS[5]])
MAPS = st.dictionaries(st.sampled_from(["1", "2", "9", "U1", "UX2Y"]), PATCHES, min_size=1)
JSON_STORES = st.sampled_from(["", "globalwarming"])
VALUES = st.sampled_from([0, 1, 2, 3] * 4 + [-99, 99, 63, 64, -100, 100, True, 1.0, "1"])
TIMES = st.sampled_from([None, None, None, 1, 2, 31])
ANSWERS = st.sampled_from(["red", "red", "Red", "", "bl\u00e9", 5])
PRIZES = st.sampled_from([0, 0, 0, 1, 1, 3, 10, -1])
VOTES, ANSWERED = st.tuples(ANYONE, CHANNELS, VALUES, TIMES), st.tuples(ANYONE, CHANNELS, ANSWERS)
ON_TRIVIA = st.tuples(
    st.sampled_from([*OURS[:7], *OURS[9:], OURS[6], OURS[14], THEIRS[0]]), CHANNELS, QUESTIONS, OPTIONS
)
KINDS = ["polls", "rankings", "buffers", "stores", "json_stores", "codes", "trivia", "purchases"]
FOLLOWED = {
    OURS[7]: [("twitchPurchaseBits", "*"), ("transaction", "hat")],
    OURS[10]: [("transaction", "hat")],
    THEIRS[7]: [("transaction", "*")],
}
"""The products that games follow, and as which targets. A purchase is one update."""
GAMES = st.sampled_from([*FOLLOWED])
POSTS = st.tuples(st.sampled_from([OURS[0], OURS[1], OURS[2], OURS[6], OURS[9], THEIRS[0]]), CHANNELS, TO_GAMES)
STORE = st.sampled_from([*STORES])
OWN_PATCHES = st.lists(st.tuples(ANYONE, STORE, PATCHES), min_size=6, max_size=12)
VOTERS = st.sampled_from([*OURS[:4], *OURS[:4], *OURS[11:], THEIRS[0]])
RARELY = st.sampled_from([False, False, False, False, True])
ADDS_UP = {"totalVotesPerUser": 4, "votesPerOption": 3, "distinctOptionsPerUser": 2}
FIRST_SETS = {"codes": [["A1", "A2", "A3"], ["B1", "B2"]], "names": ["Hat", "Sword"]}
FIRST_GRANT = {"prizes": [0, 1], "prize_limits": [2, 2]}
SHORT = st.sampled_from([0, 1, 999, SECOND, 30 * SECOND, 5 * MINUTE - 1, HOUR, 5 * HOUR])
BACK = st.sampled_from([1, SECOND, HOUR])
LONG = st.sampled_from([DAY - 1, DAY, WEEK - 1, WEEK, 14 * DAY, 90 * DAY - 1, 90 * DAY])
