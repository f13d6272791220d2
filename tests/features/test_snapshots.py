"""Saving and loading all data of a service: `/_emulator/snapshot`."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.core.settings import Settings
from engines.filled_file import write_filled_file
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server
from support.socket_polls import create, subscribe, vote

DAY = 86_400_000


def save(client: Client, **query: str) -> bytes:
    return client.get("/_emulator/snapshot", params=query).raise_for_status().content


def load(client: Client, snapshot: bytes) -> dict[str, Any]:
    return dict(client.put("/_emulator/snapshot", content=snapshot).raise_for_status().json())


def records(snapshot: bytes) -> list[dict[str, Any]]:
    return list(json.loads(snapshot)["records"])


@pytest.fixture
def used(viewer: Callable[..., Client], broadcaster: Client, backend: Client) -> None:
    """Data of many kinds."""
    for user, value in (("1", 3), ("2", 1), ("3", 3)):
        viewer(user).post("vote", params={"id": "rps"}, json={"value": value}).raise_for_status()
    viewer().post("rank", json={"key": "blue"}).raise_for_status()
    viewer().post("accumulate", json={"text": "é\n"}).raise_for_status()
    broadcaster.post("channel_state", json={"round": 4}).raise_for_status()
    broadcaster.post("link/pin").raise_for_status()
    backend.put("codes", json={"codes": [["A", "B", "C"]], "names": ["Hats"]}).raise_for_status()
    backend.post("codes/mark_from_list", json={"prizes": [0], "prize_limits": [1], "users": ["1"]}).raise_for_status()
    viewer("1").post("codes/redeem", json={"prize": 0}).raise_for_status()


@pytest.mark.usefixtures("used")
def test_the_answer_counts_what_has_not_expired(stranger: Client):
    saved = save(stranger)
    eight_days_later = saved.replace(b'"clock":{}', b'"clock":{"offset":%d}' % (8 * DAY), 1)

    counts = load(stranger, eight_days_later)["counts"]

    assert Counter(each["type"] for each in records(save(stranger))) == counts
    assert "ballot" in json.loads(saved)["counts"].keys() - counts.keys()


@pytest.mark.parametrize("frozen", [True, False])
def test_the_clock_is_restored(live: LiveServer, stranger: Client, frozen: bool):
    if frozen:
        live.set(5 * DAY)
    else:
        live.advance(3 * DAY)
    clock, snapshot = stranger.get("/_emulator/clock").json(), save(stranger)
    live.reset()

    load(stranger, snapshot)

    compared = ("frozen", "now" if frozen else "offset")
    loaded = stranger.get("/_emulator/clock").json()
    assert [clock[each] for each in compared] == [loaded[each] for each in compared]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"extcli_snapshot":1', '"extcli_snapshot":9', "line 1: extcli_snapshot: format 9 is unknown"),
        ('"sandbox"', '"production"', "line 1: environment: "),
        ('"clock":{}', '"clock":{"frozen_at":-1}', "line 1: clock: "),
        ('"ballot":2', '"ballot":3', "ballot: the first line counts 3 records, but there are 2"),
        ('"type":"entry"', '"type":"enter"', "type: invalid value 'enter'"),
        ('"type":"member","key":["marked"', '"type":"member","key":["other"', "there is no roster with this key"),
        ('"type":"document","key":["channel_state"', '"type":"document","key":["viewer_state"', "not in order"),
        ("\n]}", "", "incomplete"),
    ],
)
@pytest.mark.usefixtures("used")
def test_an_invalid_snapshot_is_refused_with_its_line_and_changes_nothing(
    stranger: Client, old: str, new: str, problem: str
):
    before = save(stranger)
    assert old in before.decode()

    answer = stranger.put("/_emulator/snapshot", content=before.decode().replace(old, new))

    assert 400 == answer.status_code
    assert "Invalid snapshot" == answer.json()["reason"]
    assert answer.json()["info"].startswith("line ")
    assert problem in answer.json()["info"]
    assert before == save(stranger)


def test_a_namespace_is_saved_and_loaded_alone(live: LiveServer, stranger: Client, viewer: Callable[..., Client]):
    viewer().post("vote", json={"value": 1}).raise_for_status()
    snapshot = save(stranger)
    with Client(base_url=f"{live.url}/_ns/blue") as blue:
        load(blue, snapshot)
        assert snapshot == save(blue)

        live.reset()

        assert snapshot == save(blue)
        assert [] == records(save(stranger))
        live.reset()
    stranger.delete("/_ns/blue").raise_for_status()


def test_tokens_that_the_service_issued_stay_valid_after_a_load_without_keys(live: LiveServer, stranger: Client):
    body = {"app_id": CLIENT_ID, "channel_id": CHANNEL, "role": "viewer", "user_id": "5551"}
    token = stranger.post("/v1/e/authtoken", json=body).raise_for_status().json()["token"]

    load(stranger, save(stranger))

    assert 200 == live.bearer(token).get("vote").status_code


def test_a_service_adopts_the_signing_key_of_a_snapshot_with_keys(live: LiveServer, stranger: Client):
    with live_server() as other, Client(base_url=other.url) as client:
        token = client.post("/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()["token"]
        saved = save(client, keys="true")
    own = save(stranger, keys="true")

    load(stranger, saved)
    adopted = live.bearer(token).get("vote").json()["info"]
    load(stranger, own)

    assert "validate its PIN" in adopted


def test_subscribers_of_a_poll_receive_its_loaded_results_and_later_its_end(live: LiveServer, stranger: Client, game):
    live.freeze()
    create(game, config={"endsIn": 60})
    vote(live, "1", 2)
    saved = save(stranger)
    subscribe(game)
    vote(live, "2", 2)
    assert [0, 0, 2] == game.update()["data"]["results"]

    load(stranger, saved)
    assert [0, 0, 1] == game.update()["data"]["results"]
    live.advance(61_000)

    assert "expired" == game.update()["data"]["poll"]["status"]


Line = dict[str, Any]


def saved_from(folder: Path) -> list[Line]:
    """The lines of a snapshot of a service that used every feature."""
    file = write_filled_file(folder / "data.db")
    with live_server(Settings(data=f"sqlite://{file}")) as live, Client(base_url=live.url) as client:
        text = client.get("/_emulator/snapshot?keys=true").raise_for_status().text
    records = [json.loads(each.removesuffix(",")) for each in text.splitlines()[1:-1]]
    return [*records, {**header_of(text), "counts": Counter(each["type"] for each in records)}]


def header_of(text: str) -> Line:
    return dict(json.loads(text.splitlines()[0].removesuffix(',"records":[') + "}"))


def document_of(lines: list[Line]) -> str:
    *records, header = lines
    first = json.dumps(header, separators=(",", ":"))[:-1] + ',"records":['
    texts = [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in records]
    return "\n".join([first, ",\n".join(texts), "]}\n"])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    return json.dumps(saved_from(tmp_path_factory.mktemp("saved")))


@pytest.fixture
def lines(saved: str) -> list[Line]:
    return list(json.loads(saved))


@pytest.fixture
def client(live: LiveServer) -> Client:
    return Client(base_url=live.url)


def text_of(text: str) -> Callable[[Line], None]:
    """Store this text in place of the JSON of a document."""

    def change(line: Line) -> None:
        line.pop("value", None)
        line.pop("value_text", None)
        line["value_text"] = text

    return change


def bytes_of(value: bytes, field: str = "value") -> Callable[[Line], None]:
    def change(line: Line) -> None:
        line.pop(field, None)
        line.pop(f"{field}_text", None)
        line[f"{field}_base64"] = base64.b64encode(value).decode()

    return change


def members(field: str, **changed: Any) -> Callable[[Line], None]:
    def change(line: Line) -> None:
        line[field] = {**line[field], **changed}

    return change


def fields(**changed: Any) -> Callable[[Line], None]:
    return lambda line: line.update(changed)


CASES: list[tuple[str, str, Callable[[Line], None], str]] = [
    ("choice", "poll", fields(choice="abc"), "choice: 'abc' is not within -99 to 99"),
    ("entry", "poll", fields(choice="07"), "choice: '07' is not within -99 to 99"),
    ("entry", "poll", fields(times=2000), "times: 2000 is not within 1 to 1024"),
    ("ballot", "poll", members("definition", prompt="x" * 300), "definition: prompt: has 300 bytes; the limit is 256"),
    ("ballot", "poll", members("definition", id="other"), "definition: id: 'other' is not the id of the poll"),
    ("ballot", "poll", members("definition", totalVotesPerUser=7), "per_voter: 1 differs from 7 in the definition"),
    ("ballot", "rank", fields(definition={}), "definition: a ranking has no definition"),
    ("item", "accumulate", text_of("}"), "value: "),
    ("item", "accumulate", members("value", data="x" * 300), "value: data: 302 bytes; the limit is 255"),
    ("document", "channel_state", text_of("not json \x1b"), "value: JSON is malformed"),
    ("document", "extension_state", fields(value=[]), "value: must be a JSON object"),
    ("document", "viewer_state", fields(value={"a": "x" * 70_000}), "bytes of compact JSON; the limit is 65536"),
    ("document", "json_store", fields(value={"a": "x" * 3_000}), "bytes of compact JSON; the limit is 2048"),
    ("document", "id_counts", fields(value={"soon": 1}), "value: "),
    ("document", "ids/poll", fields(value="soon"), "value: expected an array, got a string"),
    ("document", "user", bytes_of(b"\xff\xfe"), "value: must be text"),
    ("document", "link", fields(value=[1]), "value: expected an object, got an array"),
    ("document", "pin", fields(value={"until": "soon"}), "value.until: expected an integer, got a string"),
    ("document", "signing_key", text_of("short"), "value: must be 64 hexadecimal digits"),
    ("document", "transaction", fields(value=7), "value: expected an object, got an integer"),
    ("document", "outstanding", members("value", cost="much"), "value.cost: expected an integer, got a string"),
    ("document", "trivia", fields(value={"q": 7}), "value.[...]: expected an object, got an integer"),
    ("document", "trivia_voter", fields(value={"votes": 7}), "value.votes: expected an object, got an integer"),
    ("roster", "marked", fields(note={"set": [1, "many"]}), "note.[...][1]: expected an integer, got a string"),
    ("pool", "codes", fields(note={"name": 7}), "note.name: expected a string, got an integer"),
    ("list_items", "code_list", fields(items=["x" * 64]), "items[0]: has 64 characters; a code has 1 to 63"),
    ("handed", "codes", fields(item=""), "item: has 0 characters; a code has 1 to 63"),
]


@pytest.mark.parametrize(("type", "kind", "change", "problem"), CASES, ids=[f"{a} {b}: {d}" for a, b, _, d in CASES])
def test_a_record_that_its_feature_could_not_read_is_refused_by_name(
    live: LiveServer, client: Client, lines: list[Line], type: str, kind: str, change: Callable[[Line], None], problem
):
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).raise_for_status()
    number, line = next(
        (number, each)
        for number, each in enumerate(lines[:-1], 2)
        if (each["type"], each["key"][0]) == (type, kind)
        if (type, kind) != ("ballot", "poll") or "definition" in each
    )
    change(line)

    answer = client.put("/_emulator/snapshot", content=document_of(lines).encode())

    assert (400, "Invalid snapshot") == (answer.status_code, answer.json()["reason"])
    assert answer.json()["info"].startswith(f"line {number}: {kind}")
    assert problem in answer.json()["info"]
    assert 1 == live.client("viewer", user="1", channel="777").get("vote").json()["count"]


@pytest.mark.parametrize("kind", ["signing_key", "pin", "link"])
def test_a_secret_in_a_snapshot_without_keys_is_refused(client: Client, lines: list[Line], kind: str):
    kept = [each for each in lines[:-1] if each["key"][0] == kind]
    counts = {kind: 0 for kind in lines[-1]["counts"]} | {"document": len(kept)}

    answer = client.put(
        "/_emulator/snapshot", content=document_of([*kept, {**lines[-1], "counts": counts, "keys": False}])
    )

    assert 400 == answer.status_code
    assert f'line 2: {kind}: the first line says "keys":false' in answer.json()["info"]


def test_a_snapshot_of_every_feature_loads(client: Client, lines: list[Line]):
    assert 200 == client.put("/_emulator/snapshot", content=document_of(lines).encode()).status_code
