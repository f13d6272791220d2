"""How often each fault is brought about."""

from __future__ import annotations

import os

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "2"))
