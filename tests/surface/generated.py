"""Random bodies for the calls: definitions, documents, patches, sets of codes."""

from __future__ import annotations

from typing import Any

import jwt
from hypothesis import strategies as st

from support.service import SECRET

DEFINITIONS = st.fixed_dictionaries(
    {},
    optional={
        "prompt": st.sampled_from(["", "Which boss?"]),
        "options": st.sampled_from([["a", "b"], ["a"], []]),
        "userData": st.sampled_from([None, {"hard": [1]}]),
        "disabled": st.sampled_from([False, False, True]),
        "userIDVoting": st.booleans(),
        "global": st.booleans(),
        "totalVotesPerUser": st.sampled_from([1, 2, 4, 4, 4, 0]),
        "votesPerOption": st.integers(1, 3),
        "distinctOptionsPerUser": st.integers(1, 3),
    },
)

BLOBS = st.sampled_from([1, None, {"rating": 5}, ["é", True], 0.5, "x" * 253, "x" * 254, "é" * 126, "é" * 127])

_LEAVES = st.sampled_from([None, True, 1, 2, 1.5, "", "text", [], {}, [1, 2], {"b": 1}, {"b": {"c": [3]}}])
_NAMES = st.sampled_from(["a", "b", "list", "quiz", "x/y", ""])
_OBJECTS = st.dictionaries(_NAMES, _LEAVES, max_size=3)
WRITTEN = _OBJECTS
"""Documents that every store accepts."""
_LARGE = st.builds(
    lambda name, characters: {name: "é" * (characters // 2) + "y" * (characters % 2)},
    st.sampled_from(["a", "b"]),
    st.sampled_from([2_040, 2_041, 40_000, 40_000, 65_528, 65_529]),
)
DOCUMENTS = st.one_of(_OBJECTS, _OBJECTS, _OBJECTS, _OBJECTS, _LARGE, st.sampled_from([[], 5, None]))

_POINTERS = st.sampled_from(
    ["", "/a", "/b", "/a/b", "/a/b/c", "/list", "/list/0", "/list/1", "/list/-", "/list/01", "/a/b/c/0", "/x~1y", "/"]
)
_OPERATIONS = st.one_of(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "add", "add_intermediates"]), "path": _POINTERS, "value": _LEAVES}
    ),
    st.fixed_dictionaries({"op": st.sampled_from(["replace", "test"]), "path": _POINTERS, "value": _LEAVES}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": _POINTERS}),
    st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "path": _POINTERS, "from": _POINTERS}),
)
_ADDITIONS = st.fixed_dictionaries({"op": st.just("add"), "path": _POINTERS, "value": _LEAVES})
PATCHES = st.one_of(
    st.lists(_OPERATIONS, min_size=1, max_size=3),
    st.lists(_ADDITIONS, min_size=1, max_size=3),
    _OBJECTS,
    _LARGE,
)

_CODES = ["A1", "A2", "A3", "B1", "B2"]


def _code_lists(number: int) -> st.SearchStrategy[list[list[str]]]:
    """So many lists, mostly without a code that stands twice."""
    any_lists = st.lists(st.lists(st.sampled_from(_CODES), max_size=5), min_size=number, max_size=number)
    cut = st.tuples(st.permutations(_CODES), st.integers(0, 5), st.integers(0, 5))
    distinct = cut.map(lambda it: [it[0][: it[1]], it[0][it[1] : it[1] + it[2]]][:number])
    return st.one_of(distinct, distinct, any_lists)


_SETS = st.integers(1, 2).flatmap(
    lambda number: st.fixed_dictionaries(
        {
            "codes": _code_lists(number),
            "names": st.lists(
                st.sampled_from(["Hat", "Sword", "Boots"]), min_size=number, max_size=number, unique=True
            ),
        },
        optional={"indices": st.lists(st.sampled_from([0, 1, 3]), min_size=number, max_size=number, unique=True)},
    )
)
_INVALID = st.sampled_from(
    [
        {"codes": [["A1"]], "names": []},
        {"codes": [], "names": []},
        {"codes": [["A1"], ["B1"]], "names": ["Hat", "Hat"]},
        {"codes": [["A1"], ["x" * 64]], "names": ["Hat", "Sword"]},
        {"codes": [["A1"], [""]], "names": ["Hat", "Sword"]},
        {"codes": [["A1"]], "names": ["Hat"], "indices": [10]},
        {"codes": [["A1"], ["B1"]], "names": ["Hat", "Sword"], "indices": [1, 1]},
    ]
)
CODE_SETS = st.one_of(_SETS, _SETS, _SETS, _INVALID)
GRANTS = st.fixed_dictionaries(
    {
        "prizes": st.lists(st.sampled_from([0, 0, 0, 1, 1, 3]), min_size=1, max_size=3),
        "prize_limits": st.lists(st.integers(0, 3), max_size=4),
    }
)
CUTOFFS = st.tuples(st.sampled_from([-1000, 0, 0, 1, 500, 1000, 3_600_000]), st.booleans())
"""The age of a cutoff in ms, and whether it is sent in seconds."""

_HAT = {"displayName": "A hat", "cost": {"amount": 50, "type": "bits"}}
_SKUS, _BUYERS = st.sampled_from(["hat", "sword"]), st.sampled_from(["1", "U1", "2", "UX2Y"])
_PURCHASES = st.sampled_from(["t1", "t2", "t3", "t4", "t5"])
_STATED = st.fixed_dictionaries(
    {"transactionReceipt": st.just(""), "transactionId": _PURCHASES}, optional={"sku": _SKUS, "userId": _BUYERS}
)
_SIGNED = st.builds(
    lambda id, sku, user: {
        "displayName": "Ann",
        "transactionReceipt": jwt.encode(
            {"data": {"transactionId": id, "userId": user, "product": {"sku": sku, **_HAT}}}, SECRET
        ),
    },
    _PURCHASES, _SKUS, _BUYERS,
)  # fmt: skip
_EVENTS = st.sampled_from([{"click": 1}, [1, 2], 7, "text", None, "x" * 4_094, "x" * 4_095, "é" * 2_047, "é" * 2_048])
TO_GAMES = st.one_of(
    st.tuples(st.just("bits/transactions"), _STATED | _SIGNED), st.tuples(st.just("datastream"), _EVENTS)
)
SETTLED = st.tuples(
    st.sampled_from(["transaction_id", "muxy_id", "id", "sku", "sku"]), st.sampled_from(["1", "U1", "2", "UX2Y", "9"])
)
"""The member by which a purchase is settled, and a user."""

QUESTIONS, OPTIONS = st.sampled_from(["q1", "q1", "q1", "q2", "q3"]), st.sampled_from(["o1", "o1", "o2", "o2", "o3"])
_STATES = st.sampled_from(["results", "results", "unlocked", "unlocked", "locked", "inactive", "open"])
_TEXTS = {
    "name": st.sampled_from(["Which?", "é"]),
    "short_name": st.sampled_from(["W", "\U0001f600" * 64, "x" * 65]),
    "image": st.just("b.png"),
    "order": st.sampled_from([-1.5, 7, 10**9, 10**9, 10**9 + 1]),
}


def _edit(method: str, path: str, body: dict[str, Any], query: dict[str, Any] | None = None) -> st.SearchStrategy[Any]:
    optional = {} if "transition" in body or method == "DELETE" or "option" in body else _TEXTS
    bodies = st.fixed_dictionaries(body, optional=optional)
    return st.tuples(st.just(method), st.just(path), st.fixed_dictionaries(query or {}), bodies)


_STATE = _edit(
    "POST",
    "curated_poll_state",
    {"transition": _STATES.map("state-{}".format), "winner": st.sampled_from(["o1", "o1", "o2", ""])},
    {"id": QUESTIONS},
)
TRIVIA_EDITS = st.one_of(
    _STATE,
    _STATE,
    _edit("POST", "curated_poll_edit", {"id": QUESTIONS}),
    _edit(
        "POST",
        "curated_poll_edit_option",
        {"id": QUESTIONS, "option": st.fixed_dictionaries({"id": OPTIONS}, optional=_TEXTS)},
    ),
    _edit("DELETE", "curated_poll_edit_option", {"question": QUESTIONS, "option": OPTIONS}),
    _edit("DELETE", "curated_poll_edit", {"id": st.sampled_from(["q2", "q3"])}),
)
"""Method, path, query and body of an edit."""
