"""`extcli snapshot`."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from support.program import http_response


@pytest.fixture
def used(extcli, live) -> None:
    """Votes of two viewers and a reward code, at an instant that stays."""
    live.freeze()
    extcli("vote", "cast", "lunch", "--value", "3")
    extcli("vote", "cast", "lunch", "--value", "1", "--as", "viewer:U2")
    extcli("codes", "upload", "--set", "Hats=-", input="HAT-1\nHAT-2\n")


def link(extcli) -> None:
    """Link a game to the channel."""
    extcli("pin", "login", input=extcli("pin", "request", "-o", "plain").stdout, exits=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "before.json"


@pytest.mark.usefixtures("used")
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_saved_file_is_loaded_and_saved_as_the_same_bytes(extcli, live, tmp_path: Path, name: str):
    first, second = tmp_path / name, tmp_path / f"second-{name}"
    assert 0 == extcli("snapshot", "save", str(first)).exit_code
    live.reset()

    result = extcli("snapshot", "load", str(first))

    assert ["entry", "2"] in result.rows
    assert 0 == extcli("snapshot", "save", str(second)).exit_code
    assert first.read_bytes() == second.read_bytes()
    assert [["1", "1"], ["3", "1"]] == extcli("vote", "get", "lunch").rows


@pytest.mark.usefixtures("used")
def test_a_file_is_one_json_document_with_a_record_per_line(extcli, path: Path):
    extcli("snapshot", "save", str(path))

    document = json.loads(path.read_text())

    assert len(path.read_text().splitlines()) == len(document["records"]) + 2
    assert 0o600 == path.stat().st_mode & 0o777


@pytest.mark.usefixtures("used")
def test_a_compressed_file_holds_the_same_bytes(extcli, tmp_path: Path, path: Path):
    compressed = tmp_path / "before.json.gz"
    for each in (path, compressed):
        extcli("snapshot", "save", str(each))

    assert path.read_bytes() == gzip.decompress(compressed.read_bytes())


@pytest.mark.usefixtures("used")
def test_a_dash_is_standard_output_and_input(extcli, live, path: Path):
    extcli("snapshot", "save", str(path))
    saved = extcli("snapshot", "save", "-").stdout
    live.reset()

    assert 0 == extcli("snapshot", "load", "-", input=saved).exit_code

    assert path.read_text() == saved
    assert saved == extcli("snapshot", "save", "-").stdout


@pytest.mark.usefixtures("used")
def test_secrets_are_saved_only_with_keys(extcli, live, path: Path):
    link(extcli)
    kinds = {"signing_key", "pin", "link"}

    extcli("snapshot", "save", str(path))
    assert not kinds & {record["key"][0] for record in json.loads(path.read_text())["records"]}
    key = live.service.control._key.value
    assert key not in path.read_text()

    extcli("snapshot", "save", str(path), "--with-keys")
    assert kinds <= {record["key"][0] for record in json.loads(path.read_text())["records"]}
    assert key in path.read_text()


def test_a_load_without_keys_deletes_the_stored_links(extcli, live, path: Path):
    extcli("snapshot", "save", str(path))
    link(extcli)

    result = extcli("snapshot", "load", str(path))

    assert "deleted the stored link to channel 1001" in result.stderr
    assert "false" == extcli("pin", "status", "-o", "plain").stdout.strip()


def test_a_load_with_keys_keeps_the_links_of_the_snapshot(extcli, live, path: Path):
    link(extcli)
    extcli("snapshot", "save", str(path), "--with-keys")

    result = extcli("snapshot", "load", str(path))

    assert "deleted the stored link" not in result.stderr
    assert "true" == extcli("pin", "status", "-o", "plain").stdout.strip()


@pytest.mark.usefixtures("used")
def test_a_faulty_file_is_refused_with_its_line_and_changes_nothing(extcli, path: Path):
    extcli("snapshot", "save", str(path))
    before = path.read_text()
    path.write_text(before.replace('"choice":"3"', '"choice":3'))

    result = extcli("snapshot", "load", str(path), exits=4)

    assert re.search(r"line \d+: choice: expected a string, got an integer", result.stderr)
    assert "nothing was changed" in result.stderr
    assert before == extcli("snapshot", "save", "-").stdout


def test_load_asks_before_it_replaces_production_data(extcli, production_profile, path: Path):
    path.write_text("{}")

    result = extcli("snapshot", "load", str(path), "-p", "live", exits=2)

    assert "all data is replaced" in result.stderr


@pytest.mark.parametrize("command", ["load", "show"])
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{}", id="not-compressed"),
        # Without `mtime=0`, gzip writes the current second, and pytest-xdist's workers collect different tests.
        pytest.param(gzip.compress(b"{}" * 1_000, mtime=0)[:-12], id="cut"),
    ],
)
def test_a_damaged_compressed_file_is_a_usage_error(extcli, tmp_path: Path, command: str, content: bytes):
    path = tmp_path / "a.json.gz"
    path.write_bytes(content)

    result = extcli("snapshot", command, str(path), exits=2)

    assert re.search("damaged or incomplete|not compressed", result.stderr)


@pytest.mark.usefixtures("used")
def test_an_incomplete_response_keeps_the_old_file(extcli, answering, path: Path):
    path.write_text("old")
    whole = extcli("snapshot", "save", "-").stdout.encode()
    url = answering(http_response("200 OK", whole[:-3]))

    extcli("snapshot", "save", str(path), "--url", url, exits=5)

    assert "old" == path.read_text()
    assert ["before.json"] == [each for each in os.listdir(path.parent) if "before" in each]


def test_a_response_of_another_program_keeps_the_old_file(extcli, answering, path: Path):
    path.write_text("old")

    extcli("snapshot", "save", str(path), "--url", answering(http_response("200 OK", b"<html></html>")), exits=5)

    assert "old" == path.read_text()


@pytest.mark.usefixtures("used")
def test_show_counts_records_by_type_and_kind(extcli, path: Path):
    extcli("snapshot", "save", str(path))

    rows = extcli("snapshot", "show", str(path)).rows
    facts = extcli("snapshot", "show", str(path), "-o", "json").json

    assert ["entry", "poll", "2"] in rows
    assert ["list_items", "code_list", "1"] in rows
    assert path.stat().st_size == facts["bytes"]
    assert {"frozen_at"} == set(facts["clock"])
    assert (False, "sandbox") == (facts["keys"], facts["environment"])


@pytest.mark.usefixtures("used")
def test_show_prints_the_clock_on_a_terminal(extcli, live, path: Path):
    live.set(1_764_000_000_000)
    extcli("snapshot", "save", str(path))

    stdout = extcli("snapshot", "show", str(path), "-o", "table").stdout

    assert "frozen at 2025-11-24 16:00:00Z" in stdout


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\n]}\n", "\n", "incomplete"),
        ('{"type":"entry"', '["type","entry"', "not a record"),
        ('"extcli_snapshot":1', '"extcli_snapshot":2', "format 2 is unknown"),
        ('"records":[', '"records": [', "not the first line"),
        ('"entry":2', '"entry":3', "its first line counts"),
    ],
)
@pytest.mark.usefixtures("used")
def test_show_refuses_a_damaged_file(extcli, path: Path, old: str, new: str, problem: str):
    extcli("snapshot", "save", str(path))
    path.write_text(path.read_text().replace(old, new))

    result = extcli("snapshot", "show", str(path), exits=2)

    assert problem in result.stderr


@pytest.mark.usefixtures("used")
def test_equal_files_have_no_difference(extcli, tmp_path: Path, path: Path):
    extcli("snapshot", "save", str(path))
    extcli("snapshot", "save", str(tmp_path / "b.json.gz"))

    result = extcli("snapshot", "diff", str(path), str(tmp_path / "b.json.gz"), "-o", "json", exits=0)

    assert result.json["equal"]


@pytest.fixture
def two(extcli, used, tmp_path: Path) -> tuple[str, str]:
    """Files from before and after a vote was changed, a store written and a code redeemed."""
    files = (str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    extcli("snapshot", "save", files[0])
    extcli("vote", "cast", "lunch", "--value", "2")
    extcli("codes", "mark-from-list", "U1", "--prize", "0")
    extcli("codes", "redeem", "0")
    extcli("clock", "advance", "1s")
    extcli("snapshot", "save", files[1])
    return files


def test_diff_lists_added_removed_and_changed_records_and_exits_7(extcli, two):
    result = extcli("snapshot", "diff", *two, exits=7)

    rows = [row[:3] for row in result.rows]
    assert ["~", "header", "clock"] in rows
    assert ["+", "entry", "poll my-extension lunch 1001 U1 2"] in rows
    assert ["-", "entry", "poll my-extension lunch 1001 U1 3"] in rows
    assert ["+", "handed", "codes my-extension 0 1 U1 #1"] in rows
    assert ["~", "list_items", "code_list"] in [[*row[:2], row[2].split()[0]] for row in rows]
    assert "records: " in result.stderr


def test_diff_never_prints_a_code(extcli, two):
    for form in ("table", "plain", "json", "jsonl"):
        result = extcli("snapshot", "diff", *two, "-o", form)

        assert "HAT-" not in result.stdout + result.stderr


def test_diff_names_the_changed_fields(extcli, two):
    changed = [each for each in extcli("snapshot", "diff", *two, "-o", "jsonl").jsonl if each["change"] == "changed"]

    assert {"items"} in [set(each["fields"]) for each in changed if each["type"] == "list_items"]


def test_diff_prints_at_most_as_many_records_as_the_limit(extcli, two):
    everything = extcli("snapshot", "diff", *two, "-o", "json").json

    result = extcli("snapshot", "diff", *two, "-o", "json", "--limit", "2")

    assert 2 == len(result.json["records"])
    assert {**everything, "records": []} == {**result.json, "records": []}
    assert f"{len(everything['records']) - 2} more are not shown" in result.stderr


@pytest.mark.usefixtures("used")
def test_diff_finds_another_order_of_the_same_records(extcli, tmp_path: Path, path: Path):
    extcli("snapshot", "save", str(path))
    lines = path.read_text().splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if line.startswith('{"type":"choice"'))
    lines[at : at + 2] = reversed(lines[at : at + 2])
    other = tmp_path / "other.json"
    other.write_text("".join(lines))

    result = extcli("snapshot", "diff", str(path), str(other), "-o", "table", exits=7)

    assert "another order" in result.stdout


@pytest.mark.usefixtures("used")
def test_the_version_that_saved_a_file_makes_no_difference(extcli, tmp_path: Path, path: Path):
    extcli("snapshot", "save", str(path))
    other = tmp_path / "other.json"
    other.write_text(re.sub('"version":"[^"]*"', '"version":"9.9.9"', path.read_text()))

    assert 0 == extcli("snapshot", "diff", str(path), str(other)).exit_code
