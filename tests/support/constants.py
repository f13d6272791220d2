"""Ids and secrets that the tests agree on. Imports nothing of the program."""

from __future__ import annotations

SECRET = b"a secret of the tests, 32 bytes or more"
PREVIOUS_SECRET = b"the secret before the present one"
CLIENT_ID = "my-extension"
OTHER_ID, OTHER_SECRET = "other-extension", b"the secret of the other extension"
CHANNEL = "777"
CLOSED_URL = "http://127.0.0.1:1"
"""An address where no service listens."""
