"""Refusals of the control API, of namespaces, and failures of the service."""

from __future__ import annotations

from typing import Final

from emulator.features.explanations.cases import cases

CONTROL: Final = (
    *cases(
        "Forbidden",
        rows=(
            (r"does not answer to the host (?P<host>.+?); allow", "W5", "The control API does not know this host",
             "Use a loopback address, or start `extcli serve --control-host NAME`.",
             "Host {host}", "a loopback host, or one of --control-host"),
            (r"proxy whose client is on another machine", "W5", "A client on another machine called the control API",
             "Call it on this machine, or start `extcli serve --control-host NAME`.",
             "a proxy with a client elsewhere", "a client on this machine"),
            (r"only with the control token", "W5", "A client on another machine called the control API",
             "Set EXTCLI_CONTROL_TOKEN to the token that `extcli serve` printed at its start.",
             "a client on another machine without the token", "the control token, or a client on this machine"),
            (r"web pages of another origin", "W5", "A web page of another origin called the control API",
             "Call it from a program or from a page of the service itself.",
             "Origin or Sec-Fetch-Site of another site", "a request without them, or of the same origin"),
            (r"--workers over 1", "docs: Control", "This does not work with several workers",
             "Start `extcli serve --workers 1`.",
             "several workers", "one worker"),
        ),
    ),
    *cases(
        "Cannot fork",
        rows=(
            (r"namespaces on (?P<engine>\S+) cannot", "docs: Namespaces", "This storage cannot copy a namespace",
             "Start `extcli serve --data sqlite://`.", "data on {engine}", "data on SQLite"),
            (r"", "docs: Namespaces", "The namespace cannot be forked", "Start `extcli serve --workers 1` on SQLite.",
             "{detail}", "one worker and data on SQLite"),
        ),
    ),
    *cases(
        "Cannot undo",
        rows=(
            (r"", "docs: Control", "This service cannot keep the data for an undo",
             "Reset without undo, or start `extcli serve --workers 1 --data sqlite://`.",
             "data on Redis, or several workers", "one worker and data on SQLite"),
        ),
    ),
    *cases(
        "Fault",
        rows=(
            (r"^fault (?P<fault>\S+) (?P<deed>.+); remove it", "docs: Faults", "A fault that you added caused this",
             "Remove it: `extcli fault rm {fault}`.", "fault {fault}: it {deed}", "no fault that matches"),
        ),
    ),
    *cases(
        "No such fault",
        rows=(
            (r"no fault (?P<fault>'.*?'|\".*?\");", "docs: Faults", "There is no fault with this id",
             "List the faults: `extcli fault list`.", "fault {fault}", "the id of a fault"),
        ),
    ),
    *cases(
        "No faults",
        rows=(
            (r"", "docs: Faults", "Faults need a service with one process",
             "Start `extcli serve --workers 1` on SQLite.", "several workers, or data on Redis",
             "one worker and data on SQLite"),
        ),
    ),
    *cases(
        "Too many faults",
        rows=(
            (r"", "docs: Faults", "There are too many faults",
             "Remove some: `extcli fault rm ID`.", "{detail}", "at most 100 faults"),
        ),
    ),
    *cases(
        "Nothing to undo",
        rows=(
            (r"earlier reset", "docs: Control", "Only the latest reset can be undone",
             "Undo the latest reset: `extcli reset --undo`.", "the token of an earlier reset",
             "the token of the latest reset"),
            (r"", "docs: Control", "No reset can be undone now",
             "Keep the data at the next reset: `extcli reset --keep 1m`.",
             "no reset that kept its data", "a reset that kept its data, not too long ago"),
        ),
    ),
    *cases(
        "No such namespace",
        rows=(
            (r"^(?P<name>\S+): a web page", "docs: Namespaces", "The namespace does not exist, and a page creates none",
             "Create it before the page loads: `extcli ns new {name}`.", "namespace {name}, which does not exist",
             "a namespace that exists"),
            (r"no namespace (?P<source>\S+) in use", "docs: Namespaces", "The source namespace is not in use",
             "Fork a namespace that `extcli ns list` names.", "namespace {source}, not in use", "a namespace in use"),
        ),
    ),
    *cases(
        "Namespace in use",
        rows=(
            (r"namespace (?P<name>\S+) cannot become", "docs: Namespaces", "The namespace cannot be a copy of itself",
             "Choose another name.", "namespace {name}, the source of the copy", "another name"),
            (r"namespace (?P<name>\S+) is being (?P<what>\w+)", "docs: Namespaces", "The namespace is being {what}",
             "Repeat the call when that is done.", "namespace {name}, being {what}",
             "a namespace that no other call copies or drops"),
            (r"namespace (?P<name>\S+) has data", "docs: Namespaces", "The namespace has data",
             "Drop it first, `extcli ns rm {name}`, or choose another name.",
             "namespace {name}, with data", "an empty or new namespace"),
        ),
    ),
    *cases(
        "Too many namespaces",
        rows=(
            (r"limit of (?P<limit>\d+)", "docs: Namespaces", "Too many namespaces are open",
             "Drop some, `extcli ns rm NAME`, or start `extcli serve --namespace-idle 30m`.",
             "{limit} open namespaces", "fewer than {limit}"),
        ),
    ),
    *cases(
        "Invalid namespace",
        rows=(
            (r"", "docs: Namespaces", "The name of the namespace has the wrong form", "Choose another name.",
             "another name", "1 to 64 letters, digits, - and _"),
        ),
    ),
    *cases(
        "Too many waits",
        rows=(
            (r"^(?P<limit>\d+) requests wait", "docs: Waits", "Too many requests wait for a condition",
             "Send the request again when one of them has ended.", "{limit} waiting requests", "fewer than {limit}"),
        ),
    ),
    *cases(
        "No journal",
        rows=(
            (r"", "docs: Journal", "The service keeps no journal",
             "Start `extcli serve --workers 1`, without --journal 0.",
             "a service with --journal 0, or several workers", "a journal and one worker"),
        ),
    ),
    *cases(
        "No such entry",
        rows=(
            (r"^id: the journal has no (?P<id>.+?);", "docs: Journal", "The journal has no such entry",
             "List what it has: `extcli logs`.", "id {id}", "an entry that the journal still keeps"),
        ),
    ),
    *cases(
        "Invalid seed",
        rows=(
            (r"reads version (?P<known>\d+) of seeds, not (?P<found>\S+)", "docs: Seeds",
             "The seed has another version", "Set its field extcli to {known}; `extcli seed example` prints a seed.",
             "version {found}", "version {known}"),
            (r"", "docs: Seeds", "The seed is invalid", "Correct it; `extcli seed check FILE` finds the line.",
             "{held}", "{needed}"),
        ),
    ),
    *cases(
        "Invalid snapshot",
        rows=(
            (r"line (?P<line>\d+): (?P<problem>.+)", "docs: Snapshots", "The snapshot is invalid",
             "Save it again, `extcli snapshot save FILE`; line {line} cannot be read.", "line {line}: {problem}",
             "a snapshot as it was saved"),
            (r"", "docs: Snapshots", "The snapshot is invalid", "Save it again: `extcli snapshot save FILE`.",
             "{detail}", "a snapshot as it was saved"),
        ),
    ),
    *cases(
        "Service Unavailable",
        rows=(
            (r"is starting", "docs: Restarts", "The service is starting",
             "Wait until it is ready: `extcli wait`.",
             "a service that is starting", "a service that is ready"),
            (r"wait ended early", "docs: Waits", "The wait ended early", "Wait again.",
             "a service that stops, or a dropped namespace", "a service that goes on"),
            (r"", "docs: Storage", "The storage does not answer",
             "Check the disk or Redis, then repeat the call; `extcli doctor` looks for the cause.",
             "storage that fails", "storage that answers"),
        ),
    ),
    *cases(
        "Internal Service Error",
        rows=(
            (r"", "docs: Storage", "The service has a bug, or something outside it failed",
             "Find the request id in the service's log, and report the traceback.", "an unexpected failure",
             "a call without a failure"),
        ),
    ),
)  # fmt: skip
