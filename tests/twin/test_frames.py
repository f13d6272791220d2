"""Sockets of the comparison, with a service that sends chosen bytes."""

from __future__ import annotations

import socket
import threading

from twin.frames import FrameSocket, read_while

PING, PONG, TEXT, CLOSE = 0x89, 0x8A, 0x81, 0x88


def connected(listener: socket.socket) -> tuple[FrameSocket, socket.socket]:
    """Return a connection of the comparison, and the service's end of it."""
    client = FrameSocket(listener.getsockname()[1], "/")
    service, _ = listener.accept()
    service.recv(4_096)
    service.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    client.handshake()
    return client, service


def test_a_connection_answers_pings_while_another_one_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (client, service), (other, other_service) = connected(listener), connected(listener)
        received = []

        def serve() -> None:
            other_service.sendall(bytes([PING, 0]))
            received.append(other_service.recv(4_096)[0])
            service.sendall(bytes([TEXT, 2]) + b"ok")

        thread = threading.Thread(target=serve)
        thread.start()
        read_while(lambda: not client.frames, [client, other], [], seconds=30)
        for each in (client, other, service, other_service):
            each.close()
        thread.join()

    assert (["ok"], [PONG]) == (client.frames, received)


def test_a_closed_connection_is_known_as_closed_when_the_service_has_ended_it():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client, service = connected(listener)
        ended = []

        def serve() -> None:
            service.sendall(bytes([CLOSE, 2]) + (1008).to_bytes(2, "big"))
            service.recv(4_096)
            ended.append(list(client.frames))
            service.close()

        thread = threading.Thread(target=serve)
        thread.start()
        read_while(lambda: client.is_open, [client], [], seconds=30)
        thread.join()

    assert ([[]], ["closed: 1008 "]) == (ended, client.frames)
