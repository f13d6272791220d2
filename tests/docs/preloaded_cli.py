"""An `extcli` for documents: forks one process that has imported everything, so that a command takes a few ms.

`python preloaded_cli.py FOLDER` puts a program `extcli` into FOLDER and prints `ready`. That program hands its
arguments, folder, environment and streams over a Unix socket and ends with the exit code of the command. `extcli serve`
is the real one.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

CLIENT = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] == ["serve"]:
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
wire = socket.socket(socket.AF_UNIX)
wire.connect({place!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(wire, [len(call).to_bytes(4, "big")], [0, 1, 2])
wire.sendall(call)
sys.exit((wire.recv(1) or b"\\1")[0])
"""


def serve(folder: Path) -> None:
    """Answer the program in `folder` until this process is killed."""
    import_all()
    from extcli.main import main

    listener = socket.socket(socket.AF_UNIX)
    place = folder / "calls"
    listener.bind(str(place))
    listener.listen(100)
    program = folder / "extcli"
    real = str(Path(sys.executable).with_name("extcli"))
    program.write_text(CLIENT.format(python=sys.executable, real=real, place=str(place)))
    program.chmod(0o755)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)  # noqa: T201
    while True:
        wire, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(wire, main)
        wire.close()


def import_all() -> None:
    """Import what a command would import when it runs; `serve` stays out, as it runs for itself."""
    from extcli.app import NOUNS

    for noun in NOUNS:
        if noun != "serve":
            import_module(f"extcli.commands.{noun.replace('-', '_')}")
    for path in (Path(import_module("extcli").__file__ or "").parent).rglob("[a-z]*.py"):
        if path.parent.name not in ("extcli", "commands"):
            import_module(f"extcli.{path.parent.name}.{path.stem}")
    for library in ("httpx", "ijson", "jwt", "msgspec", "rich.table", "rich.console", "rich.progress", "tomlkit"):
        import_module(library)
    import_module("websockets.asyncio.client")
    import_module("websockets.sync.client")


def answer(wire: socket.socket, main: Any) -> None:
    """Run one command in this process, with the caller's streams, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(wire, 4, 3)
    call = b""
    while len(call) < int.from_bytes(head, "big"):
        call += wire.recv(1 << 16)
    args, folder, environ = json.loads(call)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    threading.Thread(target=end_with, args=(wire,), daemon=True).start()
    code = main(args)
    sys.stdout.flush()
    sys.stderr.flush()
    wire.sendall(bytes([code]))
    os._exit(0)


def end_with(wire: socket.socket) -> None:
    """End this process as soon as the program that called is gone."""
    wire.recv(1)
    os._exit(1)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
