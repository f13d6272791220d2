"""Guards the cost of hot calls: `python benchmarks/guard.py [--update]`.

Counts the processor instructions of each call with valgrind's callgrind, and compares them with `guard.json`. Unlike
times, they hardly depend on the machine and its load. Bytes go into the HTTP protocol of a service with its data in a
file, in production mode unless the case says sandbox, and come out of a transport in the same process: everything from
parsing to the commit counts, the kernel and the network do not.

`guard.json` has two counts for each case: what was accepted last, and what the call took when the count began, so
that many small additions are seen as one.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from audience import Newcomers, authorization
from crowd import frame, message
from in_process import Wire, connected, open_socket
from load import request

from emulator.core.environment import PRODUCTION, SANDBOX

COUNTS = Path(__file__).with_name("guard.json")
WARM_UP = 300
"""Calls that fill caches, before those that are counted."""
CALLS = 1_000
TOLERANCE = 0.03
USERS = 100
"""Users with known tokens."""
CASES = (
    *("vote with a known token", "vote with a new token", "rank", "read of a store", "socket request"),
    *("sandbox: vote with a known token", "sandbox: rank", "sandbox: socket request"),
    "sandbox without extensions: vote with a new token",
)
"""What is counted, after the mode if that is not production. The last case is what most developers run."""


# In valgrind


async def requests_of(case: str, wire: Wire) -> Iterable[bytes]:
    """Return the requests of a case, without its mode."""
    if case == "socket request":
        await wire.call(request("POST", "/v1/e/vote?id=poll", authorization("1"), b'{"value":1}'))
        await open_socket(wire)
        return [frame(message("get", "poll", poll_id="poll"))] * (WARM_UP + CALLS)
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
    mode, _, call_name = case.rpartition(": ")
    with TemporaryDirectory() as folder:
        knows_extension = not mode.endswith("without extensions")
        async with connected(SANDBOX if mode else PRODUCTION, folder, knows_extension=knows_extension) as wire:
            calls = list(await requests_of(call_name, wire))
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
    parser = argparse.ArgumentParser(description="Count the instructions of hot calls, and compare them.")
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
    known = counts.setdefault(kind, {})
    if not arguments.update and set(CASES) != set(known):
        sys.exit(f"{COUNTS.name} lacks counts for {kind}: write them with {UPDATE}")
    found = count()
    failed = False
    for case, number in found.items():
        line = f"{case:50}{number:,} instructions"
        if not arguments.update:
            accepted = known[case]["accepted"]
            before = known[case].get("before", accepted)
            change = number / accepted - 1
            line += f", accepted {accepted:,}: {change:+.2%}; {number / before - 1:+.2%} since the reference"
            if change > TOLERANCE:
                line += f"\n  over {TOLERANCE:.0%}: make it cheaper, or accept it with {UPDATE}"
                failed = True
            elif change < -TOLERANCE:
                line += f"\n  cheaper than accepted: keep that with {UPDATE}"
        print(line)
    if arguments.update:
        counts[kind] = {case: {**known.get(case, {}), "accepted": number} for case, number in found.items()}
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
