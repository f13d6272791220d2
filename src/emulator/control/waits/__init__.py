"""Waits for a condition: `GET /_emulator/wait`, so that tests need not sleep."""
