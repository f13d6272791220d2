"""The generator of `extcli simulate`, against servers that answer in every way that HTTP allows, and in some others."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from extcli.api.http import httpx
from extcli.simulate.outcome import NO_RESPONSE, NOT_SENT, Measured, Work
from extcli.simulate.pool import Pool

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CLOSING = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
LATER = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
MUCH_LATER = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n"
ENDS = None
"""Stands for closing the connection without a response."""

Answer = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[int]]]:
    """Serve; yields the port and the requests, as they come. `answer` gets the number of each."""
    received: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                received.append(int(head.split()[1][1:]))
                await answer(len(received), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], received


def always(data: bytes | None) -> Answer:
    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        if data is ENDS:
            writer.transport.abort()
        else:
            writer.write(data)

    return answer


def work_of(url: str, viewer: list[int], at: list[float]) -> Work:
    """Return the work of requests that say their index."""
    return Work(lambda index: httpx.Request("GET", f"{url}/{index}"), viewer, at)


async def sent(
    answer: Answer | int,
    count: int = 3,
    *,
    viewers: int | None = None,
    at: float = 0.0,
    tls: ssl.SSLContext | None = None,
    **settings: Any,
) -> tuple[Measured, list[int]]:
    """Send this many requests. Return their outcomes and what the server received. `answer` may be a port instead."""
    options = {"connections": 2, "timeout": 5.0, **settings}
    async with serving(always(OK) if isinstance(answer, int) else answer, tls) as (port, received):
        url = f"http{'s' if tls else ''}://127.0.0.1:{answer if isinstance(answer, int) else port}"
        work = work_of(url, [index % (viewers or count) for index in range(count)], [at] * count)
        return await asyncio.wait_for(Pool(url, work, **options).run(), 20), received


@pytest.mark.parametrize(
    "answer",
    [OK, CLOSING, b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK],
)
async def test_every_form_of_an_answer_is_an_answer(answer: bytes):
    measured, received = await sent(always(answer), 7)

    assert {200} == set(measured.status)
    assert sorted(received) == list(range(7))


async def test_a_response_may_end_with_its_connection():
    async def ending(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n{}")
        writer.close()

    assert [200, 200, 200] == list((await sent(ending))[0].status)


@pytest.mark.parametrize("answer", [ENDS, b"HTTP/1.1 200 OK\r\nContent-Le", b"SSH-2.0-x\r\n"])
async def test_a_connection_that_ends_early_leaves_no_response(answer: bytes | None):
    async def early(number: int, writer: asyncio.StreamWriter) -> None:
        if answer is not ENDS:
            writer.write(answer)
            await writer.drain()
        writer.close()

    measured, _ = await sent(early)
    assert [NO_RESPONSE] * 3 == list(measured.status)


@pytest.mark.parametrize("chunks", [b"zz\r\nhello", b"ff\r\nbusy"])
async def test_a_refusal_in_broken_chunks_is_a_refusal(chunks: bytes):
    head = b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n"

    measured, _ = await sent(always(head + chunks + b"\r\n0\r\n\r\n"), timeout=0.5)

    assert [400] * 3 == list(measured.status)


async def test_an_endless_response_fails_long_before_the_timeout():
    async def endless(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
            await writer.drain()

    measured, _ = await sent(endless, timeout=20)

    assert [NO_RESPONSE] * 3 == list(measured.status)
    assert max(measured.done) < 10


async def test_a_lost_connection_loses_only_one_request():
    async def lose_second(number: int, writer: asyncio.StreamWriter) -> None:
        await always(ENDS if number == 2 else OK)(number, writer)

    measured, _ = await sent(lose_second, 20)
    assert [NO_RESPONSE] + [200] * 19 == sorted(measured.status)


async def test_a_silent_service_leaves_no_response_after_the_timeout():
    async def silent(number: int, writer: asyncio.StreamWriter) -> None:
        pass

    measured, _ = await sent(silent, timeout=0.2)
    assert [NO_RESPONSE] * 3 == list(measured.status)
    assert max(measured.done) < 3


async def test_requests_that_find_no_connection_are_not_sent():
    measured, _ = await sent(1, timeout=0.2)

    assert [NOT_SENT] * 3 == list(measured.status)
    assert 0 == measured.sendings


async def test_one_viewer_has_one_request_at_a_time():
    open_requests: list[int] = []

    async def count(number: int, writer: asyncio.StreamWriter) -> None:
        open_requests.append(number)
        await asyncio.sleep(0)
        assert [number] == open_requests
        open_requests.clear()
        writer.write(OK)

    measured, received = await sent(count, 10, viewers=1)
    assert [200] * 10 == list(measured.status)
    assert received == list(range(10))


async def test_requests_wait_for_a_connection_and_the_wait_counts():
    free = asyncio.Event()

    async def slow(number: int, writer: asyncio.StreamWriter) -> None:
        if number == 2:  # both connections have a request
            asyncio.get_running_loop().call_later(0.2, free.set)
        await free.wait()
        writer.write(OK)

    measured, _ = await sent(slow, 10)

    assert [200] * 10 == list(measured.status)
    assert min(measured.done) >= 0.199, "all were due at 0"


async def test_a_refused_request_is_repeated_when_the_service_says():
    async def refuse_twice(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(LATER if number <= 2 else OK)

    for pauses_all in (False, True):
        measured, received = await sent(refuse_twice, repeats=frozenset({429}), pauses_all=pauses_all)
        assert [200, 200, 200] == list(measured.status)
        assert (5, 2, 5) == (measured.sendings, measured.repeated, len(received))


@pytest.mark.parametrize(("answer", "repeats"), [(LATER, frozenset()), (MUCH_LATER, frozenset({429}))])
async def test_a_refusal_is_final_without_retry_after_or_beyond_the_limit(answer: bytes, repeats: frozenset[int]):
    measured, _ = await sent(always(answer), repeats=repeats)

    assert [429] * 3 == list(measured.status)
    assert 0 == measured.repeated


async def test_requests_are_sent_when_they_are_due():
    measured, _ = await sent(always(OK), at=0.15)

    assert min(measured.sent) >= 0.15
    assert min(measured.done) >= min(measured.sent)


async def test_a_connection_that_idles_is_not_used_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("extcli.simulate.pool._IDLE", 0.1)
    writers: list[asyncio.StreamWriter] = []

    async def note(number: int, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(OK)

    async with serving(note) as (port, _):
        url = f"http://127.0.0.1:{port}"
        await Pool(url, work_of(url, [0, 1], [0.0, 0.3]), connections=1, timeout=5).run()

    assert writers[0] is not writers[1]


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of a server with a certificate of its own, which clients trust."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=127.0.0.1",
               "-addext", "subjectAltName=IP:127.0.0.1"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr("extcli.api.http.certificates", lambda: trusting)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server


async def test_requests_go_through_tls(tls: ssl.SSLContext):
    assert [200] * 20 == list((await sent(always(OK), 20, tls=tls))[0].status)
