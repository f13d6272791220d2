"""`extcli json-store`."""

from __future__ import annotations


def test_a_stored_object_is_read_by_viewers(extcli):
    assert 0 == extcli("json-store", "set", "score", "best=4", "name=Ann").exit_code

    assert [["best", "4"], ["name", '"Ann"']] == extcli("json-store", "get", "score").rows
    assert {"best": 4, "name": "Ann"} == extcli("json-store", "get", "score", "-o", "json").json


def test_an_id_that_starts_with_global_is_one_store_for_all_channels(extcli):
    extcli("json-store", "set", "global-motd", '{"text": "hello"}')

    assert [["text", '"hello"']] == extcli("json-store", "get", "global-motd", "--channel", "2002").rows


def test_an_absent_json_store_exits_4(extcli):
    result = extcli("json-store", "get", "absent", exits=4)

    assert "nothing is stored under absent" in result.stderr
