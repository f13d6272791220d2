"""The progress bar of commands with many lines."""

from __future__ import annotations

import os
import pty


def test_one_line_is_singular_in_the_progress_bar(shell):
    controller, terminal = pty.openpty()
    process = shell("vote", "cast", "--from", "-", stderr=terminal, env={"TERM": "xterm-256color", "COLUMNS": "80"})
    os.close(terminal)
    process.stdin.write(b"U1,3\n")
    process.stdin.flush()

    shown = b""
    while b"1 line" not in shown:
        shown += os.read(controller, 65536)
    process.stdin.close()
    try:
        while chunk := os.read(controller, 65536):
            shown += chunk
    except OSError:  # the program has ended
        pass
    os.close(controller)

    assert 0 == process.wait(timeout=20)
    assert b"0 lines" in shown
    assert b"1 lines" not in shown
