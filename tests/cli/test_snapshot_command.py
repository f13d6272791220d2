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
@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "-"])
def test_a_saved_file_is_loaded_and_saved_as_the_same_bytes(extcli, live, tmp_path: Path, name: str):
    first, second = (name, name) if name == "-" else (str(tmp_path / name), str(tmp_path / f"second-{name}"))
    saved = extcli("snapshot", "save", first, exits=0).stdout
    live.reset()

    assert ["entry", "2"] in extcli("snapshot", "load", first, input=saved, exits=0).rows

    assert saved == extcli("snapshot", "save", second, exits=0).stdout
    assert name == "-" or Path(first).read_bytes() == Path(second).read_bytes()
    assert [["1", "1"], ["3", "1"]] == extcli("vote", "get", "lunch").rows


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


@pytest.mark.parametrize("options", [(), ("--with-keys",)])
def test_a_load_without_keys_deletes_the_stored_links(extcli, live, path: Path, options):
    link(extcli)
    extcli("snapshot", "save", str(path), *options)

    extcli("snapshot", "load", str(path), exits=0)

    assert bool(options) == bool(extcli("link", "list").rows)
    assert str(bool(options)).lower() == extcli("pin", "status", "-o", "plain").stdout.strip()


@pytest.mark.usefixtures("used")
def test_a_faulty_file_is_refused_with_its_line_and_changes_nothing(extcli, path: Path):
    extcli("snapshot", "save", str(path))
    before = path.read_text()
    path.write_text(before.replace('"choice":"3"', '"choice":3'))

    assert re.search(r"line \d+: choice", extcli("snapshot", "load", str(path), exits=4).stderr)
    assert before == extcli("snapshot", "save", "-").stdout


def test_load_asks_before_it_replaces_production_data(extcli, production_profile, path: Path):
    path.write_text("{}")

    assert "--yes" in extcli("snapshot", "load", str(path), "-p", "live", exits=2).stderr


@pytest.mark.usefixtures("used")
@pytest.mark.parametrize("is_of_another", [False, True])
def test_an_incomplete_response_keeps_the_old_file(extcli, answering, path: Path, is_of_another: bool):
    path.write_text("old")
    body = b"<html></html>" if is_of_another else extcli("snapshot", "save", "-").stdout.encode()[:-3]

    extcli("snapshot", "save", str(path), "--url", answering(http_response("200 OK", body)), exits=5)

    assert "old" == path.read_text()
    assert ["before.json"] == [each for each in os.listdir(path.parent) if "before" in each]


@pytest.mark.usefixtures("used")
def test_show_counts_records_by_type_and_kind(extcli, path: Path):
    extcli("snapshot", "save", str(path))
    assert 0o600 == path.stat().st_mode & 0o777

    rows = extcli("snapshot", "show", str(path)).rows
    facts = extcli("snapshot", "show", str(path), "-o", "json").json

    assert ["entry", "poll", "2"] in rows
    assert ["list_items", "code_list", "1"] in rows
    assert path.stat().st_size == facts["bytes"]
    assert {"frozen_at"} == set(facts["clock"])
    assert (False, "sandbox") == (facts["keys"], facts["environment"])


@pytest.mark.usefixtures("used")
def test_show_refuses_a_damaged_file(extcli, tmp_path: Path, path: Path):
    extcli("snapshot", "save", str(path))
    path.write_text(path.read_text().replace('"extcli_snapshot":1', '"extcli_snapshot":2'))
    (compressed := tmp_path / "a.json.gz").write_bytes(gzip.compress(path.read_bytes())[:-12])

    for each in (path, compressed):
        extcli("snapshot", "show", str(each), exits=2)


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


def test_diff_prints_no_code_and_at_most_as_many_records_as_the_limit(extcli, two):
    for form in ("table", "plain", "json", "jsonl"):
        result = extcli("snapshot", "diff", *two, "-o", form)
        assert "HAT-" not in result.stdout + result.stderr
    everything, limited = (
        extcli("snapshot", "diff", *two, "-o", "json", *more).json for more in ((), ("--limit", "2"))
    )
    assert 2 == len(limited["records"])
    assert {**everything, "records": []} == {**limited, "records": []}
