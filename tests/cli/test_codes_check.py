"""`extcli codes upload --dry-run`: every code is validated, and errors are named by place."""

from __future__ import annotations

import gzip

import pytest

from extcli.api.http import Http
from extcli.codes.entries import Entries
from extcli.codes.streamed_body import StreamedBody, json_items
from extcli.errors import CliError, UsageError


@pytest.fixture
def check(extcli):
    return lambda *args, **settings: extcli("codes", "upload", *args, "--dry-run", **settings)


def named(result) -> list[str]:
    """Return the errors, with file names for paths."""
    faults = [line.strip() for line in result.stderr.splitlines() if line.startswith("  /")]
    return [" ".join(word.rpartition("/")[2] for word in fault.split(" ")) for fault in faults]


def test_valid_sets_are_counted(check, lines):
    sets = ("--set", f"Hat={lines('A1', 'B22', name='a')}", "--set", f"Häte={lines('C1', name='c')}")

    result = check(*sets)

    assert (0, "") == (result.exit_code, result.stderr)
    assert [["0", "Hat", "2", "3", "0", "0", ""], ["1", "Häte", "1", "2", "0", "0", ""]] == result.rows
    assert [2, 1] == [each["codes"] for each in check(*sets, "-o", "json").json]
    assert [3, 2] == [each["longest"] for each in check(*sets, "-o", "jsonl").jsonl]
    assert ["index", "name", "codes", "longest", "duplicates", "in", "earlier", "sets", "replaces"] == (
        check(*sets, "-o", "table").stdout.splitlines()[0].split()
    )


def test_errors_are_found_without_a_service(check, lines):
    result = check("--set", f"A={lines('A1', 'A1')}", "--url", "http://127.0.0.1:1", exits=2)

    assert [["0", "A", "2", "2", "1", "0"]] == [row[:6] for row in result.rows]


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        ("A\n" + "x" * 64 + "\n", ["codes.txt:2: has 64 characters; a code has 1 to 63"]),
        ("A\n" + "x" * 63 + "\n", []),
        ("A\n\n  \nB\x07\n", ["codes.txt:4: has unprintable characters"]),
        ("A\r\n\r\nB\u2028C\r\n", ["codes.txt:3: has unprintable characters"]),
        (b"A\nB\n\xff\xfe\n", ["codes.txt:3: is not UTF-8 text"]),
        ("A\nB\n\nA\n", ["codes.txt:4: is the same code as codes.txt:1"]),
        ("\n\n", ["codes.txt: has no codes"]),
        ("", ["codes.txt: has no codes"]),
    ],
)
def test_each_error_is_named_by_line_and_rule(check, file, content, faults):
    result = check("--set", f"A={file(content, 'codes.txt')}")

    assert (2 if faults else 0) == result.exit_code
    assert faults == named(result)


@pytest.mark.parametrize(
    ("name", "content", "faults"),
    [
        ("c.json", '["A", 5, null, {"a": ["b"]}, ["x"], "B", ""]', [2, 3, 4, 5, 7]),
        ("c.jsonl", '"A"\n5\n{"code": "B"}\nnonsense\n["x"]\n', [2, 3, 4, 5]),
    ],
)
def test_each_entry_that_is_not_a_string_is_an_error(check, file, name, content, faults):
    result = check("--set", f"A={file(content, name)}", exits=2)

    assert [f"{name}, item {n}" if name == "c.json" else f"{name}:{n}" for n in faults] == [
        fault.partition(": ")[0] for fault in named(result)
    ]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("c.json", '["A", "SECRET"', "is not JSON"),
        ("c.json", '["A", "SECRET" "B"]', "is not JSON"),
        ("c.json", '["SECRET"] []', "is not JSON"),
        ("c.json", '{"SECRET": 1}', "is not a JSON array of strings"),
        ("c.json", '"SECRET"', "is not a JSON array of strings"),
        ("c.json", "", "is not JSON"),
        ("c.csv", 'code\nA\n"SECRET\n', "is not CSV"),
        ("c.csv", 'code\nA\n"SECRET\n', "a quote at or before line 3 is misplaced or not closed"),
        ("c.csv", 'code\n"SECRET"B\n', "a quote at or before line 2 is misplaced or not closed"),
        ("c.csv", f"code\nA\n{'SECRET' * 22_000}\n", "line 3 has a cell longer than 131,072 characters"),
        ("c.csv", "code\nA\rSECRET\n", "line 2 has a carriage return that ends no line"),
        ("c.csv", "SECRET\n", "does not name exactly one column 'code'"),
        ("c.csv", "code,code\nA,SECRET\n", "does not name exactly one column 'code'"),
        ("c.txt", gzip.compress(b"SECRET\n" * 9, mtime=0)[:-4], "is corrupt"),
        ("c.txt", gzip.compress(b"SECRET\n" * 9, mtime=0)[:12] + b"SECRET", "is corrupt"),
        ("c.txt", "SECRET" * 200_000, "has a line longer than 1 MiB"),
    ],
)
def test_a_file_of_another_format_is_refused_without_quoting_it(check, file, name, content, why):
    result = check("--set", f"A={file(content, name)}", "--column", "code", "-v", fails=2)

    assert why in result.stderr
    assert "SECRET" not in result.stderr


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"SECRET": ["A"]}', ["it begins with an object", "--set NAME=FILE"]),
        ('"SECRET"', ["it begins with a single value", '["A-1", "A-2"]']),
        ('[["SECRET"]]', ["item 1: is an array, not a string; each set has its own file"]),
        ('["A", {"code": "SECRET"}]', ["item 2: is an object, not a string", "JSON lines, and use --column"]),
    ],
)
def test_json_in_a_wrong_form_is_refused_with_the_form_to_write(check, file, content: str, why: list[str]):
    stderr = check("--set", f"A={file(content, 'c.json')}").stderr

    assert all(each in stderr for each in why), stderr
    assert "SECRET" not in stderr


def test_missing_empty_and_multiline_cells_are_errors(check, file):
    source = file('n,code\n1,A\n2\n\n3,"B\nC"\n4,\n5,D\n', "c.csv")

    result = check("--set", f"A={source}", "--column", "code")

    assert [
        "c.csv:3: has no column 2",
        "c.csv:5: has a quoted cell that spans several lines",
        "c.csv:7: is empty",
    ] == named(result)


def test_csv_of_several_columns_needs_a_column(check, file):
    source = file("code,size\nA,1\n", "c.csv")

    result = check("--set", f"A={source}", exits=2)

    assert "c.csv has 2 columns and needs --column\n" in result.stderr


@pytest.mark.parametrize(
    "content", ["code\nA\n \nB\n", "\n \nCode\nA\nB", "\ufeffCode\r\n\r\nA\r\nB\r\n", '"id"\n"A"\n"B"\n']
)
def test_csv_of_one_column_with_a_heading_needs_no_column(check, file, content):
    result = check("--set", f"A={file(content, 'c.csv')}", "-o", "json")

    assert (0, 2) == (result.exit_code, result.json[0]["codes"])


@pytest.mark.parametrize("content", ["SECRET code\nA\nB\n", "SECRET\nB", "\nSECRET\n"])
def test_csv_whose_first_line_may_be_a_heading_needs_a_column(check, file, content):
    source = file(content, "c.csv")

    result = check("--set", f"A={source}", "-v", fails=2)

    assert "c.csv needs --column: its first line is not a known heading" in result.stderr
    assert "SECRET" not in result.stderr
    assert 0 == check("--set", f"A={source}", "--column", "1").exit_code


def test_a_later_line_with_more_columns_is_an_error(check, file):
    source = file("\ncode\nB,1\n", "c.csv")

    result = check("--set", f"A={source}")

    assert ["c.csv:3: has 2 columns: --column names the one to read"] == named(result)


@pytest.mark.parametrize("content", ["\n \nn,code\n1,A\n2,B\n", "n,code\n1,A\n\n  \n2,B\n \t \n"])
def test_blank_lines_around_a_named_heading_are_skipped(check, file, content):
    source = file(content, "c.csv")

    result = check("--set", f"A={source}", "--column", "code", "-o", "json")

    assert (0, 2) == (result.exit_code, result.json[0]["codes"])


# Duplicates


def test_duplicates_are_counted_by_set_and_named_with_the_first_place(check, lines):
    first, second = lines("A", "B", "A", name="a"), lines("C", "B", "B", name="b")

    result = check("--set", f"One={first}", "--set", f"Two={second}", exits=2)

    assert [["0", "One", "3", "1", "1", "0"], ["1", "Two", "3", "1", "1", "1"]] == result.rows
    assert [
        "a:3: is the same code as a:1",
        "b:2: is the same code as a:2 of set 'One'",
        "b:3: is the same code as a:2 of set 'One'",
    ] == named(result)


def test_twenty_errors_are_named_and_all_are_counted(check, lines):
    codes = [f"CODE-{number}" for number in range(30_000)]

    result = check("--set", f"A={lines(*codes, name='a')}", "--set", f"B={lines(*codes, name='b')}")

    assert "extcli: found 30,000 errors; nothing was sent" == result.stderr.splitlines()[0]
    assert 20 == len(named(result))
    assert "  and 29,980 more" in result.stderr.splitlines()
    assert "30000" == result.rows[1][5]


def test_json_errors_list_the_faults(check, lines):
    result = check("--set", f"A={lines('A', 'A')}", "-o", "json")

    assert 1 == result.json[0]["duplicates"]
    assert '"faults": ["' in result.stderr


def test_codes_with_equal_hashes_are_not_duplicates(check, lines, monkeypatch):
    monkeypatch.setattr("extcli.codes.validation._MASK", 7)

    result = check("--set", f"A={lines('A', 'B', *map(str, range(100)), 'B', name='a')}", exits=2)

    assert ["a:103: is the same code as a:2"] == named(result)
    assert [["0", "A", "103", "2", "1", "0"]] == [row[:6] for row in result.rows]


# Limits


@pytest.mark.long
def test_a_set_with_a_million_codes_is_refused(check, lines):
    codes = [f"{number:07d}" for number in range(1_000_001)]

    result = check("--set", f"A={lines(*codes, name='many')}", exits=2)

    assert ["many:1000000: exceeds the limit of 999,999 codes per set"] == named(result)
    assert "999999" == result.rows[0][2]


@pytest.mark.parametrize("indices", [("10",), ("-1",), ("0", "0"), ("1", "2", "3")])
def test_each_set_needs_its_own_index(extcli, lines, indices):
    sets = ("--set", f"A={lines('A', name='a')}", "--set", f"B={lines('B', name='b')}")[: 4 if len(indices) > 1 else 2]

    result = extcli("codes", "upload", *sets, *[f"--index={index}" for index in indices], fails=2)

    assert "ind" in result.stderr


# Files that change


def test_a_file_that_changes_during_the_upload_defines_no_set(lines, live, backend):
    path = lines(*[f"CODE-{number}" for number in range(50_000)])
    entries = Entries(path)
    size = sum(len(json_items(batch.items)) for batch in entries)
    body = StreamedBody("codes", [entries], [size], nested=True, others={"names": ["A"]})
    http = Http(live.url, timeout=10, trace=lambda _: None)
    with open(path, "a") as codes:
        codes.write("LATER\n")

    request = http.stream("PUT", "/v1/e/codes", body=body, authorization=backend.headers["authorization"])
    with pytest.raises(CliError, match="changed while it was sent"), request:
        pass

    assert [] == backend.get("codes").json()["names"]
    entries.close()
    http.close()


def test_a_file_truncated_after_opening_is_a_usage_error(file):
    path = file(gzip.compress(b"A\n" * 100))
    entries = Entries(path)
    with open(path, "r+b") as codes:
        codes.truncate(15)

    with pytest.raises(UsageError, match="is corrupt"):
        list(entries)
    entries.close()
