"""The log on standard error: text or JSON, redacted and deduplicated, with the end of each outage."""

from __future__ import annotations

import json
import logging
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.core.observability.logs import LOG_FORMATTERS, JsonFormatter, TextFormatter
from emulator.core.observability.request_context import RequestContext, in_context
from engines.redis_server import RedisServer
from support.process import ServerProcess, server_process
from support.service import CHANNEL

RFC_3339_MS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


def logged(served: ServerProcess) -> list[str]:
    """Stop the service and return its log."""
    assert 0 == served.stop(signal.SIGTERM)
    assert served.process.stderr is not None
    return served.process.stderr.read().splitlines()


def record(message: str, *args: object, level: int = logging.ERROR, **more: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "emulator", "levelno": level, "levelname": "ERROR", "msg": message,
                                  "args": args, **more})  # fmt: skip


def failure(message: str) -> dict[str, Any]:
    """Return the record fields of an exception with a cause."""
    try:
        try:
            raise KeyError(message)
        except KeyError as error:
            raise ValueError(message) from error
    except ValueError:
        return {"exc_info": sys.exc_info()}


def test_a_text_line_has_time_level_logger_and_request_id(redis: RedisServer):
    with server_process("--data", redis.url()) as served:
        redis.kill()
        served.client("viewer", user="1", channel=CHANNEL).get("all_state", headers={"X-Request-Id": "mine"})
        (line,) = [line for line in logged(served) if "storage failed" in line]

    message = "storage failed in GET /v1/e/all_state: .+"
    assert re.fullmatch(rf"[\d-]{{10}} [\d:,]{{12}} ERROR emulator \[mine\]: {message}", line)


def test_json_lines_are_objects_and_a_repeated_failure_is_logged_once_a_second(redis: RedisServer):
    with server_process("--data", redis.url(), "--log-format", "json") as served:
        client = served.client("viewer", user="1", channel=CHANNEL)
        redis.kill()
        started = time.monotonic()
        statuses = {client.get("vote", headers={"X-Request-Id": "mine"}).status_code for _ in range(200)}
        elapsed = time.monotonic() - started
        lines = [json.loads(line) for line in logged(served)]

    assert {503} == statuses
    assert all(re.fullmatch(RFC_3339_MS, line["time"]) for line in lines)
    failures = [line for line in lines if line["message"].startswith("storage failed in GET /v1/e/vote")]
    facts = {"level": "error", "logger": "emulator", "request_id": "mine"}
    assert all(facts.items() <= line.items() for line in failures)
    assert 1 <= len(failures) <= elapsed + 1
    assert sum(1 + line.get("left_out", 0) for line in failures) <= 200


def test_json_has_the_exception_and_extra_fields():
    line = json.loads(JsonFormatter().format(record("it %s", "failed", extra_field=5, **failure("what a client sent"))))

    assert ("it failed", 5, "ValueError") == (line["message"], line["extra_field"], line["exception"]["type"])
    assert re.search(r"(?s)KeyError.*which led to:.*in failure.*ValueError", line["exception"]["traceback"])


def test_a_traceback_has_no_exception_messages_and_a_token_as_request_id_is_redacted():
    # A traceback has no exception messages
    for formatter in LOG_FORMATTERS.values():
        line = formatter().format(record("it failed", **failure("what a client sent")))

        assert "in failure" in line
        assert "what a client sent" not in line

    # A token that a client sends as request id is redacted
    for formatter in LOG_FORMATTERS.values():
        with in_context(RequestContext("eyJhbGciOiJIUzI1NiJ9.eyJoaWRkZW4iOjF9.hidden-signature")):
            line = formatter().format(record("it"))

        assert "hidden" not in line
        assert "…" in line


@pytest.mark.parametrize("formatter", LOG_FORMATTERS.values())
@pytest.mark.parametrize(
    "message",
    [
        "with eyJhbGciOiJIUzI1NiJ9.eyJoaWRkZW4iOjF9.hidden-signature in it",
        "cut after eyJhbGciOiJIUzI1NiJ9.eyJoaWRkZW4",
        "cannot reach redis://app:hidden@host:6379/0",
        "ERR unknown command 'EVALSHA', with args beginning with: 'sha' '{\"hidden\": \n1}' 'hidden'",
    ],
)
def test_secrets_in_messages_of_libraries_are_redacted(formatter: Callable[[], logging.Formatter], message: str):
    lines = [formatter().format(each) for each in (record(message), record("%s", message), record("it", extra=message))]

    assert not any("hidden" in line or "oaWRkZW4" in line for line in lines)
    assert all(message.split()[0] in line for line in lines[:2])


UNSAFE = ["a\r\nERROR b", "a\x1b[31mb", "a\u2028b", "a\x00b", "a\udcffb", "a\x9bb", "a\u202eb", "a\U000e0041b"]


@pytest.mark.parametrize("text", UNSAFE)
def test_control_and_bidi_characters_in_a_line_are_escaped(text: str):
    lines = [formatter().format(record("%s", text, named=text)) for formatter in (TextFormatter, JsonFormatter)]
    line = json.loads(lines[1])

    assert [True, True] == [each.isprintable() for each in lines]
    assert {text.encode(errors="backslashreplace").decode()} == {line["message"], line["named"]}


STORAGE_BACK = r"INFO emulator(?: \[.+\])?: storage works again after \d+\.\d s\n"
DISCONNECTED = "cannot receive messages from other processes: "
RECONNECTED = "INFO emulator.engines: receiving messages from other processes again"


@pytest.mark.long
def test_the_end_of_each_outage_is_logged_once_by_an_idle_node(redis: RedisServer):
    with server_process("--data", redis.url()) as served:
        viewer = served.client("viewer", user="1", channel=CHANNEL)
        assert served.process.stderr is not None
        log = []
        for _ in range(2):
            redis.kill()
            assert [503] * 5 == [viewer.get("vote").status_code for _ in range(5)]
            redis.start()
            missing = {STORAGE_BACK, RECONNECTED}
            while missing:
                line = served.process.stderr.readline()
                assert line, "the service has ended"
                log.append(line)
                missing -= {each for each in missing if re.search(each, line)}
        assert 0 == served.stop(signal.SIGTERM)
        log += served.process.stderr

    assert [2, 2] == [len(re.findall(each, "".join(log))) for each in (STORAGE_BACK, RECONNECTED)]
    assert DISCONNECTED in "".join(log)
