"""The lines of a snapshot, and what is wrong with faulty ones."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.control.snapshots.codec import (
    LAST_LINE,
    SnapshotHeader,
    decode_record,
    encode_header,
    encode_record,
    read_header,
    read_records,
    type_name,
)
from emulator.core.clock import ClockState
from emulator.core.errors import BadRequest
from emulator.core.keys import NEVER, Key
from emulator.storage.records import (
    BallotRecord,
    ChoiceRecord,
    DocumentRecord,
    EntryRecord,
    HandedRecord,
    ItemRecord,
    ListItemsRecord,
    ListRecord,
    MemberRecord,
    PoolRecord,
    Record,
    RosterRecord,
    SpentRecord,
)
from emulator.storage.shapes import BallotEntry, Terms
from support.examples import examples

POLL = Key("poll", "my-extension", "rps", "777")
HEADER = encode_header(SnapshotHeader(1, "0.1.0", "sandbox", ClockState(), False, {"roster": 2}))
ROSTERS = [b'{"type":"roster","key":["marked","e","a"]},\n', b'{"type":"roster","key":["marked","e","b"]}\n']

LIST, POOL = Key("code_list", "e", "n"), Key("codes", "e", "0")

LINES: list[tuple[Record, str, str]] = [
    (DocumentRecord(Key("trivia", "e", ""), 5, b"{}"), '["trivia","e"]', ',"expires_at":5,"value":{}'),
    (DocumentRecord(Key("a", "", "", "", "u"), NEVER, b"x"), '["a","","","","u"]', ',"value_text":"x"'),
    (BallotRecord(POLL, 5, None, Terms()), "", ',"expires_at":5'),
    (BallotRecord(POLL, 5, b"1", Terms(disabled=True)), "", ',"expires_at":5,"definition":1,"disabled":true'),
    (ChoiceRecord(POLL, "3"), "", ',"choice":"3"'),
    (EntryRecord(POLL, BallotEntry("U1", "3", 1, 9, b"")), "", ',"voter":"U1","choice":"3","cast_at":9'),
    (
        EntryRecord(POLL, BallotEntry("U1", "3", 2, 9, b"[1]")),
        "",
        ',"voter":"U1","choice":"3","times":2,"cast_at":9,"note":[1]',
    ),
    (ItemRecord(POLL, 1, 2, b"[]"), "", ',"at":1,"expires_at":2,"value":[]'),
    (ListRecord(LIST, 5), '["code_list","e","n"]', ',"expires_at":5'),
    (ListItemsRecord(LIST, ("A", "B")), '["code_list","e","n"]', ',"items":["A","B"]'),
    (PoolRecord(POOL, 1, 5, None, b""), '["codes","e","0"]', ',"number":1,"expires_at":5'),
    (
        PoolRecord(POOL, 2, 5, LIST, b"1"),
        '["codes","e","0"]',
        ',"number":2,"expires_at":5,"source":["code_list","e","n"],"note":1',
    ),
    (HandedRecord(POOL, 1, "U1", "A"), '["codes","e","0"]', ',"number":1,"user":"U1","item":"A"'),
    (SpentRecord(Key("codes", "e", ""), "0" * 32), '["codes","e"]', f',"digest":"{"0" * 32}"'),
    (RosterRecord(Key("marked", "e", "r"), 5, b""), '["marked","e","r"]', ',"expires_at":5'),
    (MemberRecord(Key("marked", "e", "r"), "U1"), '["marked","e","r"]', ',"member":"U1"'),
]
"""Records, their keys (by default a poll's key) and the rest of their lines."""


@pytest.mark.parametrize(("record", "key", "rest"), LINES)
def test_a_record_is_one_line_that_leaves_out_default_values(record: Record, key: str, rest: str):
    line = encode_record(record).decode()

    name, _, fields = line.removeprefix('{"type":"').partition('","key":')
    assert type_name(record) == name
    assert (key or '["poll","my-extension","rps","777"]') + rest + "}" == fields
    assert record == decode_record(line.encode(), 1)


JSON = st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode())


@settings(max_examples=examples(60), deadline=None)
@given(st.binary() | st.text().map(str.encode) | JSON)
def test_any_value_is_kept_byte_for_byte(value: bytes):
    record = EntryRecord(POLL, BallotEntry("U1", "3", 1, 9, value))
    line = encode_record(record)

    json.loads(line)
    assert b"\n" not in line
    assert record == decode_record(line, 1)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"type":"vote","key":["a"]}', "type: invalid value 'vote'"),
        ('{"type":"list","key":["a"],"expires":1}', "unknown field `expires`"),
        ('{"type":"list"}', "key: is missing"),
        ('{"type":"list","key":[]}', "key: expected an array of length >= 1"),
        ('{"type":"list","key":["a","b","c","d","e","f"]}', "key: expected an array of length <= 5"),
        ('{"type":"list","key":["a",null]}', "key[1]: expected a string, got null"),
        ('{"type":"list","key":["a"],"expires_at":4611686018427387905}', "expires_at: expected an integer <="),
        ('{"type":"list","key":["a"],"expires_at":-1}', "expires_at: expected an integer >= 0"),
        ('{"type":"list_items","key":["a"],"items":["a\\u0000b"]}', "must not contain NUL"),
        ('{"type":"list_items","key":["a"],"items":[]}', "items: expected an array of length >= 1"),
        *(
            (f'{{"type":"spent","key":["a"],"digest":"{digest}"}}', "digest: expected a string matching regex")
            for digest in ("xyz", "0a 0a " + "0" * 26, "0A" * 16, "0a" * 15, "0a" * 17, "٣" * 32, "0a" * 16 + "\\n", "")
        ),
        ('{"type":"member","key":["a"],"member":"\\u0000"}', "must not contain NUL"),
        ('{"type":"document","key":["a"]}', "the field `value` is missing"),
        ('{"type":"document","key":["a"],"value":1,"value_text":"1"}', "give exactly one of value, value_text"),
        ('{"type":"document","key":["a"],"value_base64":"?"}', "value_base64: must be base64"),
        ("[]", "expected an object, got an array"),
        ("{", "input data was truncated"),
    ],
)
def test_a_faulty_line_names_the_field(line: str, problem: str):
    with pytest.raises(BadRequest) as error:
        decode_record(line.encode(), 1)

    assert problem in error.value.details[0]


def read(text: bytes) -> list[tuple[int, Record]]:
    file = BytesIO(text)
    read_header(file)
    return [each for page in read_records(file) for each in page]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_records_have_the_numbers_of_their_lines(line_end: bytes):
    found = read(b"".join([HEADER, *ROSTERS, LAST_LINE]).replace(b"\n", line_end))

    assert [(2, "a"), (3, "b")] == [(line, record[0].name) for line, record in found]


def test_an_empty_snapshot_has_a_header_and_an_end():
    assert [] == read(HEADER + LAST_LINE)
    assert "sandbox" == read_header(BytesIO(HEADER)).environment


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "line 1: this is not the first line of a snapshot"),
        (b"{}\n", "line 1: this is not the first line of a snapshot"),
        (b"\x1f\x8b\x08\n", "line 1: the snapshot is compressed"),
        (HEADER.replace(b'"extcli_snapshot":1', b'"extcli_snapshot":2'), "line 1: extcli_snapshot: format 2"),
        (HEADER.replace(b'"keys":false', b'"keys":0'), "line 1: keys: expected true or false"),
        (HEADER.replace(b'"clock":{}', b'"clock":{"offset":"x"}'), "line 1: clock.offset: expected an integer"),
        (HEADER, "line 1: the snapshot is incomplete"),
        (HEADER + ROSTERS[1], "line 2: the snapshot is incomplete"),
        (HEADER + ROSTERS[0] + LAST_LINE, "line 2: the last record must not end with a comma"),
        (HEADER + ROSTERS[1] + ROSTERS[1], "line 2: the line must end with a comma"),
        (HEADER + ROSTERS[0] + b"\n", "line 3: input data was truncated"),
        (HEADER + LAST_LINE + b"x\n", "line 3: there is text after the end"),
        (HEADER + b"\xff\n", "line 2: "),
    ],
)  # fmt: skip
def test_a_faulty_snapshot_names_the_line(text: bytes, problem: str):
    with pytest.raises(BadRequest) as error:
        read(text)

    assert error.value.details[0].startswith(problem)
