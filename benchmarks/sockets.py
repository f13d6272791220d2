"""Sockets: `python benchmarks/sockets.py [ROUNDS] [SOCKETS]`.

Prints how many sockets a second connect and authenticate, what one of them keeps of memory, and how long one vote's
update takes to reach all.
"""

from __future__ import annotations

import gc
import http.client
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import jwt
from crowd import Crowd, Socket
from servers import CLIENT_ID, SECRET

Place = tuple[str, int]


def start(stack: ExitStack, name: str) -> tuple[Place, int]:
    """Start one of the servers; returns where it listens, and its process."""
    command = [sys.executable, str(Path(__file__).with_name("servers.py")), name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait, 20)
    stack.callback(process.terminate)
    assert process.stdout is not None
    url = urlsplit(process.stdout.readline().strip())
    assert url.hostname, f"{name} did not start"
    assert url.port, f"{name} did not start"
    return (url.hostname, url.port), process.pid


def resident(process: int) -> int:
    """Bytes of memory in use, after the process has collected its garbage."""
    os.kill(process, signal.SIGUSR1)
    time.sleep(1)
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def ask(action: str, target: str = "", **data: object) -> bytes:
    """One request over a socket."""
    return json.dumps({"action": action, "params": {"request_id": 1, "target": target}, "data": data}).encode()


def post(place: Place, path: str, role: str, body: object, user: str = "1") -> dict[str, object]:
    """One REST call for channel 1."""
    claims = {"role": role, "user_id": user, "channel_id": "1", "exp": int(time.time()) + 3_600}
    headers = {"Authorization": f"{CLIENT_ID} {jwt.encode(claims, SECRET)}"}
    with closing(http.client.HTTPConnection(*place)) as connection:
        connection.request("POST", f"/v1/e/{path}", json.dumps(body), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        return dict(json.loads(answer.read()))


def authentication(place: Place) -> bytes:
    """What makes a socket one of channel 1: the token that another got for a PIN."""
    with closing(Socket(place)) as first:
        first.shaken()
        first.send(ask("authenticate", client_id=CLIENT_ID, pin=post(place, "link/pin", "broadcaster", {})["pin"]))
        token = json.loads(first.message())["data"]["jwt"]
    return ask("authenticate", client_id=CLIENT_ID, jwt=token)


def median(values: list[float], form: str = ".2f") -> str:
    """Median and range."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def many(place: Place, process: int, size: int, rounds: int) -> None:
    """Connecting, memory, and one vote's update to all."""
    asks = [authentication(place)]
    with closing(Crowd(place, 200, asks)):
        pass  # so that what the first ones load counts for nobody
    before = resident(process)
    crowd = Crowd(place, size, asks)
    each = (resident(process) - before) / size / 1024
    print(f"{size:,} sockets: {crowd.opened_per_second:.0f} connected and authenticated a second, {each:.1f} KiB each")
    for one in crowd.sockets:
        one.send(ask("subscribe", "poll", topic_id="poll"))
    for one in crowd.sockets:
        assert b'"errors"' not in one.message()
    first, last = [], []
    for number in range(rounds + 1):
        time.sleep(1.2)  # for the poll's pause to end
        post(place, "vote?id=poll", "viewer", {"value": 1}, user=str(10 + number))
        answered = time.perf_counter()
        if not number:
            bodies = {len(one.message()) for one in crowd.sockets}  # and how long one is
            assert len(bodies) == 1, bodies
            (length,) = bodies
            continue
        times = crowd.hear(1, length)
        assert len(times) == size
        first.append((times[0] - answered) * 1e3)
        last.append((times[-1] - answered) * 1e3)
    assert crowd.heard_nothing_more()
    print(f"one vote's update to {size:,}: first after {median(first, '.1f')} ms, last after {median(last, '.1f')} ms")
    crowd.close()


def main() -> None:
    """Measure and report."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {1})
    gc.disable()  # a collection in the midst of a measurement is not the server's
    with ExitStack() as stack:
        many(*start(stack, "sockets"), size, rounds)


if __name__ == "__main__":
    main()
