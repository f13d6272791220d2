"""How often to cause each fault."""

from __future__ import annotations

import os

KILLS = int(os.environ.get("FAULT_KILLS", "3"))
"""How often to kill each operation on the data as a whole."""
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "1"))
