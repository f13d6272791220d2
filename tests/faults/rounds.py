"""How often to cause each fault."""

from __future__ import annotations

import os

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "2"))
