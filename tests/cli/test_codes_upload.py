"""`extcli codes upload`: what it sends and replaces, when it asks, and which codes it refuses."""

from __future__ import annotations

import gzip
import json

import pytest

from support.program import http_response


@pytest.fixture
def upload(extcli):
    return lambda *args, **settings: extcli("codes", "upload", *args, **settings)


def redeemed_by(backend, viewer, index: int, count: int) -> list[str]:
    """Redeem the first codes of a set."""
    backend.post("codes/mark_from_list", json={"users": ["5551"], "prizes": [index] * count, "prize_limits": [99] * 10})
    for _ in range(count):
        viewer().post("codes/redeem", json={"prize": index})
    return list(viewer().get("codes/redeemed").json()["redeemed"][index])


def test_content_length_is_exact_for_codes_that_json_escapes(upload, lines, backend, viewer):
    codes = ['quo"te', "back\\slash", "Ü", "🎁", "in side", "a,b", "[x]"]

    upload("--set", f'Häte "q" \\={lines(*codes)}', exits=0)

    assert ['Häte "q" \\'] == backend.get("codes").json()["names"]
    assert codes == redeemed_by(backend, viewer, 0, 7)


@pytest.mark.long
def test_a_set_of_the_maximum_size_is_uploaded(upload, lines, backend, viewer):
    source = lines(*[f"{number:06d}-{number * 7919 % 999_983:06d}" for number in range(999_999)])

    result = upload("--set", f"Full={source}", exits=0)

    assert "1 set of 999,999 codes sent" in result.stderr
    assert ["000000-000000"] == redeemed_by(backend, viewer, 0, 1)


def test_an_expired_token_is_renewed_and_the_body_sent_again(upload, lines, answering):
    token = http_response("200 OK", json.dumps({"token": "t.o.k"}))
    expired = http_response("401 Unauthorized", x_emulator_code="auth.expired")
    url = answering(token, http_response("200 OK", '{"names":[]}'), expired, token, http_response("200 OK"))

    result = upload("--set", f"A={lines('A1', 'A2')}", "-v", "--url", url, exits=0)

    assert 2 == result.stderr.splitlines().count(f"> PUT {url}/v1/e/codes")


def test_sets_listed_without_indices_have_their_positions(upload, file, answering):
    token = http_response("200 OK", json.dumps({"token": "t.o.k"}))
    ready = http_response("200 OK", '{"status":"ready","environment":"production","version":"1","data":"sqlite"}')
    url = answering(token, http_response("200 OK", '{"names":["Old","Older"]}'), ready)

    assert (
        "set 1: 'New' replaces 'Older' and its codes"
        in upload("--set", f"New={file('A')}", "--index", "1", "--url", url, exits=2).stderr
    )
    unknown = answering(token, http_response("200 OK", '{"names":3}'))
    upload("--set", f"New={file('A')}", "--url", unknown, exits=5)


# Files


@pytest.mark.parametrize(
    ("name", "content", "args"),
    [
        ("codes.json", '["C1", "C2"]', ()),
        ("codes.jsonl", '"C1"\n\n"C2"\n', ()),
        ("codes.ndjson", '{"code": "C1"}\n{"code": "C2"}\n', ("--column", "code")),
        ("codes.lst", '["C1", "C2"]', ("--format", "json")),
        ("codes.csv", "C1\r\n  \r\n C2 \r\n", ("--format", "text")),
        ("codes.csv", "x;C1\ny;C2\n", ("--column", "2")),
        ("codes.csv.gz", gzip.compress(b'who,Code\nx,C1\n"y,z",C2\n', mtime=0), ("--column", "code")),
        ("codes.txt", gzip.compress(b"C1\nC2\n", mtime=0), ()),
        ("codes", "\ufeffC1\nC2", ()),
    ],
)
def test_the_extension_or_the_option_decides_the_format(upload, file, backend, viewer, name, content, args):
    upload("--set", f"A={file(content, name)}", *args, exits=0)

    assert ["C1", "C2"] == redeemed_by(backend, viewer, 0, 2)


def test_a_set_can_come_from_standard_input(upload, file, backend, viewer):
    upload("--set", "A=-", "--set", f"B={file('B1')}", input="A1\nA2\n", exits=0)

    assert ["A1", "A2"] == redeemed_by(backend, viewer, 0, 2)


# Replacing


@pytest.fixture
def old(backend):
    """Upload `Old` at 0 and `Other` at 4 first."""
    body = {"codes": [["O1", "O2"], ["X1"]], "names": ["Old", "Other"], "indices": [0, 4]}
    backend.put("codes", json=body).raise_for_status()


@pytest.mark.usefixtures("old", "production_profile")
def test_in_production_replacing_without_a_terminal_needs_yes(upload, file, backend):
    result = upload("--set", f"New={file('N1')}", fails=2)

    assert "set 0: 'New' replaces 'Old' and its codes" in result.stderr
    assert ["Old", "Other"] == backend.get("codes").json()["names"]
    upload("--set", f"More={file('M1')}", "--index", "1", exits=0)
    upload("--set", f"New={file('N1')}", "--yes", exits=0)
    assert ["New", "More", "Other"] == backend.get("codes").json()["names"]


@pytest.mark.usefixtures("old")
def test_a_dry_run_shows_what_would_be_replaced_and_sends_nothing(upload, lines, backend):
    args = ("--set", f"New={lines('N1', 'N23')}", "--set", f"More={lines('M1', name='m')}", "--dry-run")

    result = upload(*args, "-v")

    assert [["0", "New", "2", "3", "0", "0", "Old"], ["1", "More", "1", "2", "0", "0", ""]] == result.rows
    assert ["Old", None] == [each["replaces"] for each in upload(*args, "-o", "json").json]
    assert "PUT" not in result.stderr
    assert ["Old", "Other"] == backend.get("codes").json()["names"]


# `--dry-run`: every code is validated, and errors are named by place


@pytest.fixture
def check(extcli):
    return lambda *args, **settings: extcli("codes", "upload", *args, "--dry-run", **settings)


def named(result) -> list[str]:
    """Return the errors, with file names for paths."""
    faults = [line.strip() for line in result.stderr.splitlines() if line.startswith("  /")]
    return [" ".join(word.rpartition("/")[2] for word in fault.split(" ")) for fault in faults]


@pytest.mark.parametrize(
    ("name", "content", "column", "faults"),
    [
        ("c.txt", "A\n" + "x" * 64 + "\n", "", [":2: has 64 characters; a code has 1 to 63"]),
        ("c.txt", "A\n" + "x" * 63 + "\n", "", []),
        ("c.txt", "A\r\n\r\nB\u2028C\r\n", "", [":3: has unprintable characters"]),
        ("c.txt", b"A\nB\n\xff\xfe\n", "", [":3: is not UTF-8 text"]),
        ("c.txt", "A\nB\n\nA\n", "", [":4: is the same code as c.txt:1"]),
        ("c.txt", "", "", [": has no entries"]),
        ("c.json", '["A", 5, null, {"a": ["b"]}, ["x"], "B", ""]', "", [f", item {n}: " for n in (3, 4, 5, 7)]),
        ("c.jsonl", '"A"\n5\n{"code": "B"}\nnonsense\n["x"]\n', "", [":3: ", ":4: ", ":5: "]),
        ("c.csv", 'code\nA\n"SECRET\n', "code", [":3: is not CSV, for example because a quote is not closed"]),
        ("c.csv", 'code\n"SECRET"B\n', "code", [":2: is not CSV"]),
        ("c.csv", f"code\nA\n{'SECRET' * 22_000}\n", "code", [":3: is not CSV"]),
        ("c.csv", "code\nA\rSECRET\n", "code", [":2: is not CSV"]),
        ("c.csv", 'n,code\n1,A\n2\n\n3,"B\nC"\n4,\n', "code",
         [":3: has no column 2", ":5: has unprintable", ":7: is empty"]),
        ("c.csv", "\ncode\nB,1\n", "", [":3: has 2 columns; choose one with --column"]),
    ],
)  # fmt: skip
def test_each_error_is_named_by_place_and_rule_without_quoting_it(check, file, name, content, column, faults):
    options = ("--column", column) if column else ()

    result = check("--set", f"A={file(content, name)}", *options, "-v", exits=2 if faults else 0)

    found = named(result)
    assert len(faults) == len(found)
    assert [] == [each for each, fault in zip(found, faults, strict=True) if not each.startswith(f"{name}{fault}")]
    assert "SECRET" not in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "column", "why"),
    [
        ("c.json", '["A", "SECRET"', "", "is not JSON"),
        ("c.json", '{"SECRET": 1}', "", "is not a JSON array of strings"),
        ("c.json", '"SECRET"', "", 'write the codes of one set as ["A-1", "A-2"]'),
        ("c.csv", "code,code\nA,SECRET\n", "code", "must have exactly one column named 'code'"),
        ("c.txt", gzip.compress(b"SECRET\n" * 9, mtime=0)[:-4], "", "is corrupt"),
        ("c.txt", gzip.compress(b"SECRET\n" * 9, mtime=0)[:12] + b"SECRET", "", "is corrupt"),
        ("c.txt", "SECRET" * 200_000, "", "has a line longer than 1 MiB"),
        # a heading is never taken as a code without a word
        *(("c.csv", text, "", "needs --column")
          for text in ("code,size\nA,1\n", "SECRET code\nA\nB\n", "SECRET\nB", "\nSECRET\n")),
        ("c.csv", "code,n\nA1,1\n", "1", "may be a heading"),
        ("c.csv", "n,Code\n1,A1\n", "2", "may be a heading"),
        ("c.csv", "code\nA1\n", "1", "may be a heading"),
        *(("c.txt", f"{text}\nA1\n", "", "--format csv") for text in (" CODE ", "\ufeffcodes", "\n\ncode", "user id")),
    ],
)  # fmt: skip
def test_a_file_of_another_format_or_with_a_heading_is_refused_without_quoting_it(
    upload, file, name, content, column, why
):
    options = ("--column", column) if column else ()

    result = upload("--set", f"A={file(content, name)}", *options, "-v", exits=2)

    assert why in result.stderr
    assert "SECRET" not in result.stderr


@pytest.mark.parametrize("command", [("upload", "--set", "Hat=-"), ("mark-from-list", "--prize", "0", "--from", "-")])
def test_a_list_with_a_heading_on_standard_input_is_refused(extcli, command):
    assert "--format csv" in extcli("codes", *command, input="code\nA1\n", fails=2).stderr


@pytest.mark.parametrize(
    ("content", "args"),
    [
        *((content, ()) for content in ("code\nA\n \nB\n", "\n \nCode\nA\nB", "\ufeffCode\r\n\r\nA\r\nB\r\n")),
        ("\n \nn,code\n1,A\n2,B\n", ("--column", "code")),
        ("n,code\n1,A\n\n  \n2,B\n \t \n", ("--column", "code")),
    ],
)
def test_blank_lines_are_skipped_and_a_single_column_needs_no_name(check, file, content, args):
    result = check("--set", f"A={file(content, 'c.csv')}", *args, "-o", "json")

    assert (0, 2) == (result.exit_code, result.json[0]["codes"])


# Duplicates


def test_duplicates_are_counted_by_set_and_named_with_the_first_place(check, lines):
    first, second = lines("A", "B", "A", name="a"), lines("C", "B", "B", name="b")

    sets = ("--set", f"One={first}", "--set", f"Two={second}", "--url", "http://127.0.0.1:1")

    result = check(*sets, exits=2)

    assert [["0", "One", "3", "1", "1", "0"], ["1", "Two", "3", "1", "1", "1"]] == result.rows
    assert '"faults": ["' in check(*sets, "-o", "json").stderr
    assert [
        "a:3: is the same code as a:1",
        "b:2: is the same code as a:2 of set 'One'",
        "b:3: is the same code as a:2 of set 'One'",
    ] == named(result)


def test_twenty_errors_are_named_and_all_are_counted(check, lines):
    codes = [f"CODE-{number}" for number in range(3_000)]

    result = check("--set", f"A={lines(*codes, name='a')}", "--set", f"B={lines(*codes, name='b')}")

    assert "extcli: found 3,000 errors; nothing was sent" == result.stderr.splitlines()[0]
    assert 20 == len(named(result))
    assert "  and 2,980 more" in result.stderr.splitlines()
    assert "3000" == result.rows[1][5]
