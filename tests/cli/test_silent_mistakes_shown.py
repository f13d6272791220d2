"""What commands say of mistakes that the service answers with 200."""

from __future__ import annotations

import httpx

from support.listen_process import TIMEOUT, read_until
from support.service import LiveServer


def test_a_refusal_has_the_hint(extcli):
    extcli("json-store", "set", "level", "a=1", "--as", "broadcaster")
    result = extcli("json-store", "get", "levle", exits=4)

    assert "  hint: there is no JSON store levle; did you mean level?" in result.stderr.splitlines()


def test_logs_show_the_client_ids_if_there_are_several(extcli):
    extcli("vote", "cast", "--value", "1")
    assert " of my-extension" not in extcli("logs", "-o", "table").stdout
    extcli("vote", "cast", "--value", "1", "--client-id", "my-extention")

    text = " ".join(extcli("logs", "-o", "table").stdout.split())
    assert "viewer:U1@1001 of my-extension" in text
    assert "viewer:U1@1001 of my-extention" in text


def test_explain_cors_says_which_headers_pages_may_send(extcli):
    text = " ".join(extcli("explain", "cors", "-o", "table").stdout.split())

    assert "docs: CORS" in text
    assert "with any method and the headers Authorization and Content-Type" in text


def test_explain_shows_the_latest_refused_preflight(extcli, live: LiveServer):
    headers = {"Origin": "https://page.example", "Access-Control-Request-Headers": "x-panel"}
    httpx.options(f"{live.url}/v1/e/vote", headers=headers)

    text = " ".join(extcli("explain", "-o", "table").stdout.split())
    assert "Header not allowed: a page may not send the header x-panel" in text


def test_listen_names_the_similar_event_that_was_sent_meanwhile(extcli, listening):
    process = listening("partty", "--count", "1", "--timeout", "2s")
    extcli("broadcast", "send", "party", "{}")

    assert "hint: party was sent meanwhile; did you mean that?" == read_until(process, "hint:")
    assert 7 == process.wait(TIMEOUT)


def test_listen_names_other_events_that_were_sent_meanwhile(extcli, listening):
    process = listening("partty", "--timeout", "2s")
    extcli("broadcast", "send", "round", "{}")

    assert "hint: other events were sent meanwhile: round" == read_until(process, "hint:")
    assert 0 == process.wait(TIMEOUT)


def test_listen_says_nothing_if_no_other_event_was_sent(extcli, live: LiveServer):
    result = extcli("listen", "partty", "--count", "1", "--timeout", "200ms")

    assert (7, False) == (result.exit_code, "hint" in result.stderr)
    assert "use a longer --timeout" in result.stderr
