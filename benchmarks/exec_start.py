"""What `extcli exec` adds to the start of the service: `python benchmarks/exec_start.py [--rounds N] [--cpu]`.

The time from the start of `exec` to the start of its command, divided by the time from the start of `extcli serve` to
its first answer. Both are measured in each round; `serve` twice, and its ratio to itself is the noise. `--cpu` compares
processor time until then, which varies less on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from report import Row, ratios, show
from startup import PROGRAM, bytecode_cache, first_answer

COMMAND = ["sh", "-c", "echo started; read end"]


def exec_start(environment: dict[str, str], *, cpu: bool) -> float:
    """Return the seconds until the command runs."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [PROGRAM, "exec", "--quiet", "--", *COMMAND], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    seconds = used(*tree(process.pid)) if cpu else time.perf_counter() - started
    process.stdin.close()
    assert process.wait() == 1, "read at the end of the input exits 1"
    return seconds


def serve_start(environment: dict[str, str], *, cpu: bool) -> float:
    """Return the seconds until the first answer of `serve`."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [PROGRAM, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    port = int(process.stdout.readline().rpartition(b":")[2])
    assert first_answer(port, process).startswith(b"HTTP/1.1 404")
    seconds = used(*tree(process.pid)) if cpu else time.perf_counter() - started
    process.send_signal(signal.SIGTERM)
    process.wait()
    return seconds


def tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in tree(int(child)))]


def used(*pids: int) -> float:
    """Return the processor time of these processes so far, in seconds."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def rows(rounds: int, *, cpu: bool = False) -> list[Row]:
    """Measure, after a round that is not counted."""
    found: dict[str, list[float]] = {"serve": [], "exec": [], "again": []}
    with bytecode_cache() as environment:
        cases: dict[str, Callable[[], float]] = {
            "serve": lambda: serve_start(environment, cpu=cpu),
            "exec": lambda: exec_start(environment, cpu=cpu),
            "again": lambda: serve_start(environment, cpu=cpu),
        }
        for number in range(rounds + 1):
            for name, case in cases.items():
                seconds = case()
                if number:
                    found[name].append(seconds)
    return [
        Row(
            "exec",
            "command's start: exec / first answer: serve",
            ratios(found["exec"], found["serve"]),
            ratios(found["again"], found["serve"]),
            1.15,
            None,
            higher_is_better=False,
            figures={f"{name} s": sorted(found[name])[len(found[name]) // 2] for name in ("exec", "serve")},
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cpu", action="store_true", help="compare processor time")
    args = parser.parse_args()
    show(rows(args.rounds, cpu=args.cpu))


if __name__ == "__main__":
    main()
