"""Sets of reward codes: define, list, redeem and delete (Game codes, rulings C2, C5, C6)."""

from __future__ import annotations

import json

import pytest

from support.codes import define, eligible, grant, redeem, redeemed
from support.service import OTHER_ID, Client, LiveServer


@pytest.fixture
def other_backend(live: LiveServer) -> Client:
    return live.client("backend", client_id=OTHER_ID)


@pytest.mark.ruling("C7")
def test_an_empty_code_is_refused_with_its_place(backend: Client):
    refused = backend.put("codes", json={"codes": [["A"], ["B", ""]], "names": ["Hat", "Sword"]})

    assert (400, True) == (refused.status_code, "codes[1][1]: has 0 characters" in refused.json()["info"])
    assert [] == backend.get("codes").json()["names"]


@pytest.mark.parametrize("member", ["prize", "all_prizes", "index"])
@pytest.mark.ruling("C5")
def test_the_prize_has_three_names(backend: Client, viewer, member: str):
    define(backend, ["A1"], ["B1"])
    grant(backend, "5551", prizes=[1])

    answer = viewer().post("codes/redeem", json={member: 1})

    assert {"code": "B1", "all_prizes": ["B1"]} == answer.json()


@pytest.mark.ruling("C5")
def test_eligibility_and_redeemed_have_an_entry_for_each_index(backend: Client, viewer):
    define(backend, ["A1", "A2"], ["D1"], indices=[0, 3])
    grant(backend, "5551", prizes=[0, 0, 3])

    redeem(viewer(), 3)

    assert [2, 0, 0, 0] == eligible(viewer())
    assert [[], [], [], ["D1"]] == redeemed(viewer())


@pytest.mark.ruling("C2")
def test_a_put_keeps_the_sets_at_other_indices(backend: Client, viewer):
    define(backend, ["A1"], names=["Hat"], indices=[0])
    define(backend, ["B1"], names=["Sword"], indices=[1])
    grant(backend, "5551", prizes=[0, 1])

    assert ["A1", "B1"] == [redeem(viewer(), index)["code"] for index in (0, 1)]


@pytest.mark.ruling("C2")
def test_a_second_put_replaces_name_and_list_and_keeps_eligibility(backend: Client, viewer):
    define(backend, ["A1", "A2"], names=["Hat"])
    grant(backend, "5551", prizes=[0, 0])
    redeem(viewer())

    define(backend, ["Z1"], names=["Cap"])

    assert ["Cap"] == backend.get("codes").json()["names"]
    assert ([1], [["A1"]]) == (eligible(viewer()), redeemed(viewer()))
    assert {"code": "Z1", "all_prizes": ["A1", "Z1"]} == redeem(viewer())


@pytest.mark.ruling("C2")
def test_a_code_is_never_handed_out_twice(backend: Client, viewer):
    define(backend, ["A1", "A2"])
    grant(backend, "1", prizes=[0])
    assert "A1" == redeem(viewer("1"))["code"]

    define(backend, ["A1", "A2", "A3"])
    grant(backend, "2", "3", "4", prizes=[0])

    assert ["A2", "A3", None] == [redeem(viewer(user)).get("code") for user in ("2", "3", "4")]


def test_codes_of_different_extensions_are_separate(backend: Client, other_backend: Client, viewer):
    define(backend, ["A1"])
    grant(backend, "5551", prizes=[0])
    define(other_backend, ["X1"])

    assert [0] == eligible(viewer(client_id=OTHER_ID))
    assert {"distributed": [0]} == other_backend.delete("codes").json()
    assert "A1" == redeem(viewer())["code"]


def test_codes_belong_to_the_extension_in_every_channel(backend: Client, viewer):
    define(backend, ["A1", "A2"])
    grant(backend, "5551", prizes=[0, 0])

    codes = [redeem(viewer(channel=channel))["code"] for channel in ("777", "888")]

    assert ["A1", "A2"] == codes


def test_a_user_without_a_shared_id_is_granted_prizes_by_opaque_id(backend: Client, viewer):
    define(backend, ["A1"])
    grant(backend, "Aabc", prizes=[0])

    assert "A1" == redeem(viewer(None, opaque="Aabc"))["code"]


def test_a_body_inside_a_json_string_is_accepted(backend: Client):
    body = json.dumps(json.dumps({"codes": [["A1"]], "names": ["Hat"]}))

    answer = backend.put("codes", content=body)

    assert (200, ["Hat"]) == (answer.status_code, backend.get("codes").json()["names"])
