"""Limits that both packages check. Lengths are in characters, sizes in bytes."""

from __future__ import annotations

MAX_ID_LENGTH = 64
"""Characters in the id of a channel, poll, ranking, buffer, JSON store, or trivia question or option (ruling W8)."""
MAX_CLIENT_ID_LENGTH = 100
MAX_USER_LENGTH = 256
"""Characters in the id of a user, and in each id in a request for a token or for a call as any caller."""

LOWEST_VOTE = -99
HIGHEST_VOTE = 99
"""The values of a vote."""
MAX_PROMPT_BYTES = 256
MAX_OPTION_BYTES = 128
MAX_OPTIONS = 64
MAX_USER_DATA_BYTES = 1_024
MAX_DISTINCT_OPTIONS = 258
MAX_VOTES = 1_024
"""Votes of one user, in all and for one option."""

MAX_STORE_BYTES = 64 * 1024
"""The limit of compact JSON per store, of the bytes that a patch may copy, and of a patch for one record."""
MAX_JSON_STORE_BYTES = 2 * 1024
MAX_ANSWER_BYTES = 1_024
"""The limit of an answer of a ranking, in UTF-8 (ruling R1)."""

MAX_SETS = 10
MAX_SET_NAME_LENGTH = 256
MAX_CODES = 999_999
"""Codes in a set."""
MAX_CODE_LENGTH = 63

MAX_MESSAGE_BYTES = 4_096
"""The limit of a message: compact JSON, or base64 of its zlib compression (Limits; ruling B2)."""
MAX_UNCOMPRESSED_BYTES = 512 * 1024
"""The limit of compact JSON before compression. Games receive it uncompressed, and many accept at most 1 MiB."""

PIN_LIFETIME = 5 * 60_000
"""How long a PIN can be used, in ms (ruling T1)."""
MAX_UNDO_SECONDS = 600
"""How long a reset can be undone."""

MIN_SECRET_BYTES = 32
"""The least length of a secret for HS256 (RFC 7518, section 3.2)."""
