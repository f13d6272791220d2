"""`extcli exec` on a full disk: no traceback, and no part of a file that looks like all of it."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from extcli.api import local_http
from extcli.errors import UsageError
from extcli.running.exec_run import RunDirectory
from extcli.running.failure_report import FailureReport
from support.service import LiveServer


def test_a_report_that_does_not_fit_leaves_no_part_of_a_file(live: LiveServer, tmp_path: Path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            FailureReport(tmp_path).fetch(live.url)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert [] == list(tmp_path.iterdir())


def test_a_failed_write_of_a_response_is_not_a_failed_connection(live: LiveServer):
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        local_http.get(live.url, "/_emulator/metrics", seconds=10, write=full.write)


def test_a_secret_that_cannot_be_written_is_a_usage_error(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    directory = RunDirectory()
    directory.remove()

    with pytest.raises(UsageError, match="cannot write to"):
        directory.write_secret(None)
