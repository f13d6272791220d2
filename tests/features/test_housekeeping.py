"""Background tasks of a service that fail."""

from __future__ import annotations

import asyncio

import pytest

from emulator.app import SharedParts
from emulator.core.errors import EngineError
from emulator.core.extensions import Extensions
from emulator.core.settings import Settings
from emulator.feature_list import FEATURES
from emulator.process import opening
from emulator.storage.opening import open_medium


@pytest.mark.parametrize(
    ("failure", "logged"),
    [
        (EngineError("the disk is full"), "housekeeping failed, retrying later: the disk is full"),
        (ZeroDivisionError(), "unexpected failure in housekeeping"),
    ],
)
async def test_housekeeping_goes_on_after_a_failure(failure, logged: str, monkeypatch, caplog):
    monkeypatch.setattr(opening, "_SWEEP_INTERVAL", 0.001)
    swept = asyncio.Event()

    async def fail_once() -> None:
        service.control.sweep = sweep_again
        raise failure

    async def sweep_again() -> None:
        swept.set()

    shared = SharedParts(Settings(), Extensions({}, admits_any=True), FEATURES)
    async with opening.open_service(shared, open_medium("sqlite://")) as service:
        monkeypatch.setattr(service.control, "sweep", fail_once)
        await asyncio.wait_for(swept.wait(), 10)

    assert logged in caplog.messages
