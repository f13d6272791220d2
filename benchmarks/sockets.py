"""Sockets: `python benchmarks/sockets.py [ROUNDS] [SOCKETS]`.

Prints how many sockets connect and authenticate per second, the processor time of the server per request on an open
socket, and how long the update of one vote takes to reach all of them.
"""

from __future__ import annotations

import gc
import http.client
import json
import resource
import time
from contextlib import ExitStack, closing

from audience import authorization
from common import CLIENT_ID, Address, argument, pin_to_core, processor_time, start_server
from crowd import Crowd, Socket
from report import spread

REQUESTING, REQUESTS = 100, 20
"""Sockets that send requests at the same time, and requests of each in a round."""


def socket_request(action: str, target: str = "", **data: object) -> bytes:
    """Return the text of a socket request."""
    return json.dumps({"action": action, "params": {"request_id": 1, "target": target}, "data": data}).encode()


def post(address: Address, path: str, role: str, body: object, user: str = "1") -> dict[str, object]:
    """Send a REST request for channel 1; return the response."""
    with closing(http.client.HTTPConnection(*address)) as connection:
        connection.request("POST", f"/v1/e/{path}", json.dumps(body), {"Authorization": authorization(user, role)})
        response = connection.getresponse()
        assert response.status == 200, response.status
        return dict(json.loads(response.read()))


def authentication(address: Address) -> bytes:
    """Return the request that links a socket to channel 1, with a token that another socket got for a PIN."""
    with closing(Socket(address)) as first:
        first.finish_handshake()
        pin = post(address, "link/pin", "broadcaster", {})["pin"]
        first.send(socket_request("authenticate", client_id=CLIENT_ID, pin=pin))
        token = json.loads(first.message())["data"]["jwt"]
    return socket_request("authenticate", client_id=CLIENT_ID, jwt=token)


def measure_requests(crowd: Crowd, process: int, rounds: int) -> None:
    """Measure requests that do little: a subscription that exists, and an action that does not."""
    requests = {
        "subscribe": socket_request("subscribe", "poll", topic_id="poll"),
        "unknown action": socket_request("x"),
    }
    sockets = crowd.sockets[:REQUESTING]
    for name, request in requests.items():
        costs = []
        for _ in range(rounds + 1):
            before = processor_time(process)
            for _ in range(REQUESTS):
                for each in sockets:
                    each.send(request)
                for each in sockets:
                    each.message()
            costs.append((processor_time(process) - before) / REQUESTS / len(sockets) * 1e6)
        print(f"{name}: {spread(costs[1:], '.1f')} µs of processor time per request, the kernel's included")


def measure(address: Address, process: int, size: int, rounds: int) -> None:
    """Measure connecting, and the update of one vote."""
    requests = [authentication(address)]
    with closing(Crowd(address, 200, requests)):
        pass  # warm-up: the first sockets load modules
    crowd = Crowd(address, size, requests)
    print(f"{size:,} sockets: {crowd.opened_per_second:.0f} authenticated per second")
    for each in crowd.sockets:
        each.send(socket_request("subscribe", "poll", topic_id="poll"))
    for each in crowd.sockets:
        assert b'"errors"' not in each.message()
    measure_requests(crowd, process, rounds)
    first, last = [], []
    for number in range(rounds + 1):
        time.sleep(1.2)  # updates of a poll are at least a second apart
        post(address, "vote?id=poll", "viewer", {"value": 1}, user=str(10 + number))
        started = time.perf_counter()
        if not number:
            (length,) = {len(each.message()) for each in crowd.sockets}
            continue
        times = crowd.wait_for(1, length)
        assert len(times) == size
        first.append((times[0] - started) * 1e3)
        last.append((times[-1] - started) * 1e3)
    assert crowd.is_idle()
    print(f"update of one vote to {size:,}: first after {spread(first, '.1f')} ms, last after {spread(last, '.1f')} ms")
    crowd.close()


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    pin_to_core(1)
    gc.disable()  # so that the clients do not pause during a measurement
    with ExitStack() as stack:
        measure(*start_server(stack, "sockets"), size=int(argument(2, 5_000)), rounds=int(argument(1, 7)))


if __name__ == "__main__":
    main()
