"""`extcli bits`."""

from __future__ import annotations

import json
import shlex

import pytest

from support.listen_process import TIMEOUT
from support.program import SECRET_BASE64


def test_a_purchase_is_listed_until_a_game_validates_it(extcli):
    [[bought]] = extcli("bits", "purchase", "hat", "--cost", "50", "--as", "viewer:7").rows
    extcli("bits", "purchase", "cap", "--id", "t2")

    [[listed, sku, cost, currency, user, posted]] = extcli("bits", "list", "hat").rows
    assert (bought, "hat", "50", "bits", "7") == (listed, sku, cost, currency, user)
    assert posted.isdecimal()

    for code in (0, 4):
        extcli("bits", "validate", bought, exits=code)
    assert ["t2"] == [row[0] for row in extcli("bits", "list").rows]


@pytest.mark.parametrize("buyer", ["U2", "2"])
def test_a_purchase_lists_the_buyer_as_given_and_is_settled_under_any_spelling(extcli, buyer):
    for user in ("U2", "2"):
        extcli("bits", "purchase", "hat", "--as", f"viewer:{buyer}")

        assert [buyer] == [row[4] for row in extcli("bits", "list").rows]
        assert 0 == extcli("bits", "refund", "--sku", "hat", "--user", user).exit_code


def test_the_example_of_the_help_receives_a_purchase(extcli, shell):
    documented = extcli("bits", "purchase", "--help").stdout
    [follow] = [line.strip() for line in documented.splitlines() if "extcli socket send subscribe" in line]

    process = shell(*shlex.split(follow)[1:])
    assert b'{"ok":true}\n' == process.stdout.readline()
    extcli("bits", "purchase", "hat", "--id", "t1")
    output, _ = process.communicate(timeout=TIMEOUT)

    assert "t1" == json.loads(output)["data"]["id"]


def test_a_receipt_comes_from_a_file_or_a_pipe_never_from_an_argument(extcli, file, live):
    import jwt

    product = {"sku": "hat", "cost": {"amount": 5, "type": "bits"}}
    token = jwt.encode({"data": {"transactionId": "t9", "userId": "1", "product": product}}, "k" * 32)

    assert 0 == extcli("bits", "purchase", "--receipt", file(f"{token}\n")).exit_code
    assert 0 == extcli("bits", "purchase", "--receipt", "-", input=token).exit_code
    assert ["t9"] == [row[0] for row in extcli("bits", "list").rows]


def test_production_accepts_a_receipt_signed_with_the_secret(extcli, production):
    where = {"EXTCLI_URL": production.url, "EXTCLI_SECRET": SECRET_BASE64}

    assert [["p1"]] == extcli("bits", "purchase", "hat", "--id", "p1", "--as", "viewer:7", env=where, exits=0).rows
    assert ["p1"] == [row[0] for row in extcli("bits", "list", env=where).rows]
    extcli("bits", "validate", "p1", env=where, exits=0)
