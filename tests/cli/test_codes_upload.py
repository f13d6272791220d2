"""`extcli codes upload`: what it sends, what it replaces, and when it asks for confirmation."""

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


def sets_of(backend) -> dict[int, str]:
    """Return the names of the sets by index."""
    listed = backend.get("codes").json()
    return dict(zip(listed["indices"], listed["names"], strict=True))


def test_sets_and_codes_keep_their_order(upload, lines, backend, viewer):
    sets = ("--set", f"Hat={lines('H1', 'H2', name='h')}", "--set", f"Pistol skin={lines('P1', 'P2')}")
    assert "" == upload(*sets, exits=0).stdout

    assert {0: "Hat", 1: "Pistol skin"} == sets_of(backend)
    assert ["P1", "P2"] == redeemed_by(backend, viewer, 1, 3)


def test_each_index_belongs_to_the_set_in_its_position(upload, file, backend):
    upload("--set", f"A={file('A', 'a')}", "--set", f"B={file('B', 'b')}", "--index", "7", "--index", "2")

    assert {2: "B", 7: "A"} == sets_of(backend)


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

    assert "set 1, 'Older'" in upload("--set", f"New={file('A')}", "--index", "1", "--url", url, exits=2).stderr
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


def test_a_set_can_come_from_a_pipe(shell, upload, file, backend, viewer):
    upload("--set", "A=-", "--set", f"B={file('B1')}", input="A1\n", exits=0)
    process = shell("codes", "upload", "--set", "C=/dev/stdin", "--index", "2")

    _, stderr = process.communicate(b"C1\nC2\n", timeout=20)

    assert 0 == process.returncode, stderr
    assert {0: "A", 1: "B", 2: "C"} == sets_of(backend)
    assert ["C1", "C2"] == redeemed_by(backend, viewer, 2, 2)


# Replacing


@pytest.fixture
def old(backend):
    """Upload `Old` at 0 and `Other` at 4 first."""
    body = {"codes": [["O1", "O2"], ["X1"]], "names": ["Old", "Other"], "indices": [0, 4]}
    backend.put("codes", json=body).raise_for_status()


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize(
    ("options", "names"), [((), ["New", "Other"]), (("--index", "1", "--yes"), ["Old", "New", "Other"])]
)
def test_a_sandbox_replaces_without_confirmation(upload, file, backend, options, names):
    upload("--set", f"New={file('N1')}", *options, exits=0)

    assert names == backend.get("codes").json()["names"]


@pytest.mark.usefixtures("old", "production_profile")
def test_in_production_replacing_without_a_terminal_needs_yes(upload, file, backend):
    result = upload("--set", f"New={file('N1')}", fails=2)

    assert "set 0, 'Old'" in result.stderr
    assert ["Old", "Other"] == backend.get("codes").json()["names"]
    upload("--set", f"More={file('M1')}", "--index", "1", exits=0)
    upload("--set", f"New={file('N1')}", "--yes", exits=0)
    assert ["New", "More", "Other"] == backend.get("codes").json()["names"]


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize(
    ("words", "code"), [(("--set", "Other={}", "--index", "2", "--yes"), 2), (("--set", "A={}", "--as", "viewer"), 4)]
)
def test_what_the_service_would_refuse_is_refused_before_sending(upload, file, words, code):
    result = upload(*[word.format(file("N1")) for word in words], "-v", fails=code)

    assert "> PUT" not in result.stderr


@pytest.mark.usefixtures("old")
def test_a_dry_run_shows_what_would_be_replaced_and_sends_nothing(upload, lines, backend):
    args = ("--set", f"New={lines('N1', 'N23')}", "--set", f"More={lines('M1', name='m')}", "--dry-run")

    result = upload(*args, "-v")

    assert [["0", "New", "2", "3", "0", "0", "Old"], ["1", "More", "1", "2", "0", "0", ""]] == result.rows
    assert ["Old", None] == [each["replaces"] for each in upload(*args, "-o", "json").json]
    assert "replaces" in upload(*args, "-o", "table").stdout
    assert "PUT" not in result.stderr
    assert ["Old", "Other"] == backend.get("codes").json()["names"]


# Secrecy and rights


@pytest.mark.parametrize(
    ("options", "code"),
    [("", 0), ("--as viewer:U1", 4), ("--index 77", 2), ("--format json", 2), ("--format csv --column x", 2)],
)
def test_traces_and_errors_never_contain_codes(upload, file, options, code):
    source = file("SECRET-ONE\nSECRET-TWO\n")

    result = upload("--set", f"A={source}", *options.split(), "-v", "-o", "json", exits=code)

    assert "SECRET" not in result.stdout + result.stderr
