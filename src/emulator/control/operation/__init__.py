"""A running service: readiness, metrics, the clock, reset and its undo: `/_emulator/…` (`operations.md`)."""
