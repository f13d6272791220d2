"""`extcli codes redeem` and `redeemed`: where codes are masked, and what other deployments respond."""

from __future__ import annotations

import pytest

from extcli.codes.views import masked
from support.program import http_response
from support.terminal import Terminal

CODE = "SECRET-0001-OF-HAT"


@pytest.fixture
def codes(extcli):
    return lambda *args, **settings: extcli("codes", *args, **settings)


@pytest.fixture
def sets(backend):
    """Upload `Hat` at 1 and `Cap` at 4, and let U1 and U2 redeem one hat each."""
    body = {"codes": [[CODE, "SECRET-0002-OF-HAT"], ["C1"]], "names": ["Hat", "Cap"], "indices": [1, 4]}
    backend.put("codes", json=body).raise_for_status()
    grant = {"users": ["U1", "U2"], "prizes": [1], "prize_limits": [0, 1]}
    backend.post("codes/mark_from_list", json=grant).raise_for_status()


@pytest.mark.usefixtures("sets")
def test_a_table_masks_codes_without_reveal(codes):
    for verb, *args in (("redeem", "1"), ("redeemed",)):
        shown = codes(verb, *args, "-o", "table")
        assert "SE" + "•" * 14 + "AT\n" in shown.stdout
        assert CODE not in shown.stdout + shown.stderr

    assert CODE in codes("redeemed", "-o", "table", "--reveal").stdout
    assert "SECRET-0002-OF-HAT\n" == codes("redeem", "1", "-o", "table", "--reveal", "--as", "viewer:U2").stdout


@pytest.mark.usefixtures("sets", "environment")
def test_a_terminal_masks_the_code():
    with Terminal("codes", "redeem", "1") as terminal:
        assert 0 == terminal.wait()

    assert "SE•" in terminal.screen
    assert CODE not in terminal.screen


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("A", "•"),
        ("AB", "••"),
        ("ABC", "A••"),
        ("ABCDEF", "A••••F"),
        ("ABCDEFGHI", "AB••••••I"),
        ("ABCDEFGHIJKL", "AB••••••••KL"),
        ("A" * 63, "AA" + "•" * 59 + "AA"),
        ("\x1bBC", "\\x1b••"),
    ],
)
def test_a_mask_shows_at_most_a_third_of_a_code(code, shown):
    assert shown == masked(code)


# Other deployments


@pytest.mark.parametrize(
    ("args", "body", "exit_code"),
    [
        (("list",), '{"names":null}', 0),
        (("list",), '{"names":["A"]}', 0),
        (("eligible",), '{"eligible":null}', 0),
        (("redeemed",), '{"redeemed":[null]}', 0),
        (("redeem", "0"), '{"code":null,"all_prizes":null}', 7),
        (("redeem", "0", "-o", "json"), "5", 7),
        (("rm", "--yes"), '{"names":[],"distributed":[1,2]}', 0),
    ],
)
def test_responses_of_other_deployments_are_read_or_reported(codes, answering, args, body, exit_code):
    token = http_response("200 OK", '{"token":"t.o.k"}')

    result = codes(*args, "--url", answering(token, http_response("200 OK", body), http_response("200 OK", body)))

    assert exit_code == result.exit_code, result.stderr
    assert "Traceback" not in result.stderr
