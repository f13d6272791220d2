"""A detector of the secrets of a test, and a scenario that plants them."""

from __future__ import annotations

import pytest

from support.leak_detector import LeakDetector
from support.scenario import Scenario
from support.service import SECRET, LiveServer


@pytest.fixture
def seen() -> LeakDetector:
    seen = LeakDetector()
    seen.add_key(SECRET, "the extension's secret")
    return seen


@pytest.fixture
def scenario(live: LiveServer, seen: LeakDetector) -> Scenario:
    return Scenario(live, seen, SECRET)
