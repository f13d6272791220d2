"""Guards the cost of hot calls: `python benchmarks/guard.py [--update]`.

Counts the processor instructions of each call with valgrind's callgrind, and compares them with `guard.json`. Unlike
times, they hardly depend on the machine and its load. Bytes go into the HTTP protocol of a service in production mode
with its data in a file, and come out of a transport in the same process: everything from parsing to the commit counts,
the kernel and the network do not.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

COUNTS = Path(__file__).with_name("guard.json")
WARM_UP = 300
"""Calls that fill caches, before those that are counted."""
CALLS = 1_000
TOLERANCE = 0.03
USERS = 100
"""Users with known tokens."""
CASES = ("vote with a known token", "vote with a new token", "rank", "read of a store", "socket request")


# In valgrind


class Wire(asyncio.Transport):
    """A transport in memory. Each write ends one call."""

    def __init__(self, protocol: Any) -> None:
        super().__init__()
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._written = self._loop.create_future()

    async def call(self, data: bytes) -> bytes:
        """Hand bytes to the protocol; return what it writes."""
        self._written = self._loop.create_future()
        self._protocol.data_received(data)
        return bytes(await self._written)

    def write(self, data: Any) -> None:
        if not self._written.done():
            self._written.set_result(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 8282) if name in ("peername", "sockname") else default

    def is_closing(self) -> bool:
        return False

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def socket_requests(wire: Wire) -> Iterator[bytes]:
    """Make the connection a WebSocket of channel 1; return frames that read the results of a poll."""
    from audience import authorization
    from common import CLIENT_ID
    from load import request
    from websockets.frames import Frame, Opcode

    def frame(action: str, target: str = "", **data: str) -> bytes:
        message = {"action": action, "params": {"request_id": 1, "target": target}, "data": data}
        return Frame(Opcode.TEXT, json.dumps(message).encode()).serialize(mask=True)

    await wire.call(request("POST", "/v1/e/vote?id=poll", authorization("1"), b'{"value":1}'))
    linked = await wire.call(request("POST", "/v1/e/link/pin", authorization("1", "broadcaster"), b"{}"))
    pin = json.loads(linked.partition(b"\r\n\r\n")[2])["pin"]
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    switched = await wire.call(f"GET /0.2.0/{CLIENT_ID} HTTP/1.1\r\nHost: bench\r\n{upgrade}\r\n".encode())
    assert switched.startswith(b"HTTP/1.1 101"), switched
    reply = await wire.call(frame("authenticate", client_id=CLIENT_ID, pin=pin))
    assert b'"errors"' not in reply, reply
    return (frame("get", "poll", poll_id="poll") for _ in range(WARM_UP + CALLS))


async def requests_of(case: str, wire: Wire) -> Iterable[bytes]:
    """Return the requests of a case."""
    from audience import Newcomers, authorization
    from load import request

    if case == "socket request":
        return await socket_requests(wire)
    if case == "vote with a new token":
        return Newcomers().ballots(WARM_UP + CALLS)
    method, path, body = {
        "vote with a known token": ("POST", "/v1/e/vote?id=poll", b'{"value":%d}'),
        "rank": ("POST", "/v1/e/rank?id=poll", b'{"key":"answer %d"}'),
        "read of a store": ("GET", "/v1/e/channel_state", b""),
    }[case]
    if case == "read of a store":
        await wire.call(request("POST", path, authorization("1", "broadcaster"), b'{"scene":"intro","score":[1,2,3]}'))
    known = [authorization(str(number)) for number in range(USERS)]
    numbers = range(WARM_UP + CALLS)
    return [request(method, path, known[each % USERS], body % (each % 10) if body else body) for each in numbers]


async def run_case(case: str) -> None:
    """Make the calls of one case. `os.getppid` marks the begin and the end of those that count."""
    from common import CLIENT_ID, SECRET
    from servers import LIMITS
    from uvicorn.server import ServerState

    from emulator.config.environment import PRODUCTION
    from emulator.config.extensions import Extension
    from emulator.config.settings import Settings
    from emulator.opening import open_app
    from emulator.server.http_protocol import Protocol
    from emulator.server.http_server import config_of

    sleep = asyncio.sleep
    # Work at intervals would run more often the slower the machine is.
    asyncio.sleep = lambda delay, *result: sleep(delay and 86_400, *result)  # type: ignore[assignment, misc]
    with TemporaryDirectory() as folder:
        settings = Settings(
            environment=PRODUCTION,
            data=f"sqlite:///{folder}/data.db",
            extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))},
            limits=LIMITS,
        )
        async with open_app(settings) as (app, _):
            config = config_of(app)
            config.load()
            loop = asyncio.get_running_loop()
            protocol = Protocol(config=config, server_state=ServerState(), app_state={}, _loop=loop)
            wire = Wire(protocol)
            protocol.connection_made(wire)
            calls = list(await requests_of(case, wire))
            gc.collect()
            gc.freeze()
            for number, call in enumerate(calls):
                if number == WARM_UP:
                    os.getppid()
                reply = await wire.call(call)
            os.getppid()
            assert reply.startswith(b"HTTP/1.1 200") or b'"data"' in reply, reply


def run_cases() -> None:
    """Run each case in a process of its own, forked after all imports, and print its id."""
    import audience  # noqa: F401
    import servers  # noqa: F401
    import uvloop

    import emulator.engines.sqlite
    import emulator.server.run  # noqa: F401

    for case in CASES:
        process = os.fork()
        if not process:
            uvloop.run(run_case(case))
            os._exit(0)
        _, status = os.waitpid(process, 0)
        if status:
            sys.exit(f"{case}: the process failed")
        print(f"{process} {case}", flush=True)


# Comparing


UPDATE = "make bench-guard ARGS=--update"


class Found(NamedTuple):
    """The instructions per call of one case, and those expected."""

    case: str
    instructions: int
    expected: int

    @property
    def change(self) -> float:
        return self.instructions / self.expected - 1

    def __str__(self) -> str:
        counts = f"{self.instructions:,} instructions, expected {self.expected:,}"
        return f"{self.case:26}{counts}: {self.change:+.2%}"


def judge(found: Iterable[Found]) -> tuple[list[str], bool]:
    """Return what to report, and whether a case takes too many instructions."""
    lines, failed = [], False
    for each in found:
        lines.append(str(each))
        if each.change > TOLERANCE:
            lines.append(f"  over {TOLERANCE:.0%}: make it cheaper, or accept it with {UPDATE}")
            failed = True
        elif each.change < -TOLERANCE:
            lines.append(f"  cheaper than expected: keep that with {UPDATE}")
    return lines, failed


def count() -> dict[str, int]:
    """Return the instructions per call of each case."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONHASHSEED"] = "0"
    run = [sys.executable, __file__, "--run"]
    # First without valgrind, which would take a minute to compile modules, and as long to show an error.
    subprocess.run(run, env=environment, stdout=subprocess.DEVNULL, check=True)
    with TemporaryDirectory() as folder:
        valgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/%p", "--dump-before=getppid"]
        output = subprocess.run(
            [*valgrind, *run], env=environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        processes = [line.split(" ", 1) for line in output.splitlines()]
        return {case: instructions(Path(folder) / f"{process}.2") // CALLS for process, case in processes}


def instructions(dump: Path) -> int:
    """Return the total of a callgrind file."""
    total = re.search(r"^(?:summary|totals): (\d+)", dump.read_text(), re.MULTILINE)
    assert total, dump.read_text()[:500]
    return int(total[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the counts to guard.json")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_cases()
        return
    if not shutil.which("valgrind"):
        sys.exit("valgrind is missing: apt-get install valgrind")
    kind = f"python{sys.version_info.major}.{sys.version_info.minor} {platform.machine()}"
    counts = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    if not arguments.update and set(CASES) != set(counts.get(kind, ())):
        sys.exit(f"{COUNTS.name} lacks counts for {kind}: write them with {UPDATE}")
    found = count()
    if arguments.update:
        counts[kind] = found
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n")
        print("\n".join(f"{case:26}{number:,} instructions" for case, number in found.items()))
        return
    lines, failed = judge(Found(case, number, counts[kind][case]) for case, number in found.items())
    print("\n".join(lines))
    sys.exit(failed)


if __name__ == "__main__":
    main()
