"""Refusals of votes, stores, broadcasts, codes, purchases and trivia."""

from __future__ import annotations

from typing import Final

from emulator.features.explanations.cases import cases

DATA: Final = (
    *cases(
        "Value out of bounds",
        rows=((r"", "P2", "The value is out of bounds", "Send an integer from -99 to 99."),),
    ),
    *cases(
        "Poll changed",
        rows=((r"", "P4", "Another edit of the poll came first", "Read `GET vote_config` again, and repeat the edit.",
               "the definition that the caller has read", "the present definition"),),
    ),
    *cases(
        "poll is closed",
        rows=(
            (r"", "P4", "The poll is closed", "Look at its times with `extcli vote config`, or open it: "
             "`extcli vote reopen`.", "a poll that has not started, has ended or is disabled", "an open poll"),
        ),
    ),
    *cases(
        "unacceptable vote",
        rows=(
            (r"^count: ", "P4", "The number of votes is out of range", "Send a count from 1 to 30."),
            (r"votes per user", "P4", "The vote exceeds what the poll allows a user",
             "Vote less often, or raise the limits: `extcli vote edit`.",
             "a user without that many votes left", "votes within the limits of the definition"),
            (r"share their identity", "P4", "Only users who share their identity may vote",
             "Use a token with user_id, or allow all users: `extcli vote edit`.",
             "a token without user_id", "a token with user_id"),
        ),
    ),
    *cases(
        "Store too large",
        rows=(
            (r"would be (?P<size>\d+) bytes of compact JSON; the limit is (?P<limit>2048)", "S5",
             "The JSON store would be too large", "Store less under one id.", "{size} bytes", "at most {limit} bytes"),
            (r"would be (?P<size>\d+) bytes of compact JSON; the limit is (?P<limit>\d+)", "S4",
             "The store would be too large", "Store less, or split it over several stores.",
             "{size} bytes of compact JSON", "at most {limit} bytes"),
        ),
    ),
    *cases(
        "Stores too large",
        rows=(
            (r"(?P<count>\d+) records have (?P<size>\d+) bytes; the limit is (?P<limit>\d+)", "W8",
             "The patched records are too large", "Patch fewer users at once.",
             "{count} records of {size} bytes", "at most {limit} bytes"),
        ),
    ),
    *cases(
        "Invalid store",
        rows=((r"", "S1", "There is no such store", "Name one of these stores."),),
    ),
    *cases(
        "Invalid patch",
        rows=(
            (r"^(?P<count>\d+) operations; the limit is (?P<limit>\d+)", "S2", "The patch has too many operations",
             "Split the patch.", "{count} operations", "at most {limit} operations"),
            (r"must stay a JSON object", "S2", "The patch would replace the store",
             "Patch members of the store, or replace it: `extcli state set`.",
             "a result that is not an object", "a result that is a JSON object"),
            (r"^the patch of (?P<id>.+) has (?P<size>\d+) bytes; the limit is (?P<limit>\d+)", "W8",
             "The patch of a user is too large", "Patch less of this user at once.",
             "{size} bytes for {id}", "at most {limit} bytes"),
            (r"^operation (?P<index>\d+): (?P<problem>.*means an array)", "S2", "The patch would create an array",
             "Add the array first, then its items.", "operation {index}: {problem}",
             "a parent that exists, or a path of names"),
            (r"^operation (?P<index>\d+): (?P<problem>.+); nothing was changed", "S2",
             "An operation of the patch fails",
             "Correct operation {index}; `extcli state get` shows the document.",
             "operation {index}: {problem}", "operations of RFC 6902 that fit the document"),
        ),
    ),
    *cases(
        "Invalid event",
        rows=((r"", "X8", "The event's name has the wrong form", "Choose a shorter name of printable characters."),),
    ),
    *cases(
        "Invalid target",
        rows=(
            (r"^target: (?P<target>.+) is neither", "B3", "The broadcast has no such target",
             "Send to all, or to one user: `extcli broadcast send EVENT DATA --to USER`.",
             "target {target}", "broadcast, or whisper-<user id>"),
        ),
    ),
    *cases(
        "Message too large",
        rows=(
            (r"^data: (?P<sizes>.+); the limit before compression is (?P<limit>\d+)", "B2", "The message is too large",
             "Send less; `extcli broadcast size` measures a message.", "{sizes}", "at most {limit} bytes of JSON"),
            (r"^data: (?P<sizes>.+); the limit is (?P<limit>\d+)", "B2", "The message is too large",
             "Send less; `extcli broadcast size` measures a message.",
             "{sizes}", "at most {limit} bytes, as JSON or compressed"),
            (r"", "X3", "The socket message is too large", "Send less, or raise --max-frame of `extcli serve`.",
             "a message over the limit", "at most 2 MiB; 4 KiB before authentication"),
        ),
    ),
    *cases(
        "Unknown prize",
        rows=(
            (r"there is no set at (?P<index>\S+); (?P<known>.+)", "C3", "There is no code set at this index",
             "Upload the set first: `extcli codes upload`; `extcli codes list` shows the indices.",
             "prize {index}", "a prize with a set; {known}"),
            (r"", "C5", "Code sets have the indices 0 to 9", "Redeem a prize from 0 to 9: `extcli codes redeem 0`."),
        ),
    ),
    *cases(
        "Invalid codes",
        rows=(
            (r"the set at (?P<index>\S+) has this name", "C2", "Another set has this name",
             "Choose another name; `extcli codes list` shows the names.",
             "a name that the set at {index} has", "a name that no active set has"),
            (r"are the same code", "C2", "A code occurs twice",
             "Remove the duplicates: `extcli codes check` finds them.",
             "{detail}", "codes that differ from each other"),
            (r"", "C2", "The code sets are malformed", "Correct them; `extcli codes check` finds errors in files."),
        ),
    ),
)  # fmt: skip
