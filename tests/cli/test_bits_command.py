"""`extcli bits`."""

from __future__ import annotations

from support.program import SECRET_BASE64


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
