"""Runs a command next to its own service: the command's environment, the run, and the report of one that failed.

The report has the service's log, its metrics, its data and its journal.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from emulator.contract.names import CONTROL_TOKEN
from emulator.contract.parity import UNKNOWN
from extcli import atomic_file, bounded_json
from extcli.api.call import Call
from extcli.api.connection import authority, probe_id
from extcli.config.settings import DEFAULT_CLIENT_ID, SERVICE_SETTINGS, random_secret, write_secret
from extcli.config.urls import reachable, socket_of
from extcli.errors import CliError, ExitCode, UsageError, shortened
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible
from extcli.parity import SHAPE, Selection, lines_of
from extcli.reading import document_of, lines
from extcli.running.supervisor import Log, note

if sys.platform == "win32":
    from extcli.running.windows import WindowsSupervisor as SystemSupervisor
else:
    from extcli.running.unix import UnixSupervisor as SystemSupervisor

if TYPE_CHECKING:
    from extcli.api.http import Http

FIELDS = ("url", "ws_url", "host", "port", "client_id", "namespace")
"""What `--env` may contain, in braces."""
_IN_BRACES = re.compile(rf"{{{{|}}}}|{{(?:{'|'.join(FIELDS)})}}")
"""A field, or a literal brace, which is written twice."""
PARITY = "parity"
ON_FAILURE = "EXTCLI_ON_FAILURE"
"""The variable with the directory of the report. Tests that failed keep their namespaces for it."""
NAMESPACE_FOLDERS = "namespaces"
"""The folder in that directory with a folder for each namespace."""
_CONTENTS = ("snapshot.json", "journal.jsonl", "journal.har")
_TIMEOUT = 30.0
_NODE_TRUST = "NODE_EXTRA_CA_CERTS"
"""The variable with a file of authorities that Node.js trusts besides its own."""
_REMOVED = {each.variable for each in SERVICE_SETTINGS if each.variable}
_REMOVED |= {"EXTCLI_PROFILE", "EXTCLI_TOKEN", "EXTCLI_SECRET", "EXTCLI_CONTROL_TOKEN", ON_FAILURE}
"""Variables of the caller that would lead the command to another service, identity, channel or report."""


def template(argument: str) -> tuple[str, str]:
    """Return name and text of the variable `NAME=TEXT`. Raises `UsageError` unless its braces are around fields."""
    name, equals, text = argument.partition("=")
    if not equals or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"--env {shortened(argument)!r} is not NAME=TEXT", fix="for example --env API={url}/v1")
    if re.search("[{}]", _IN_BRACES.sub("", text)):
        problem = f"--env {name}: a field in braces must be one of {', '.join(FIELDS)}"
        raise UsageError(problem, fix="write {{ or }} for a literal brace")
    return name, text


def failing_rules(text: str, *, production: bool) -> Selection:
    """Return the rules that fail a run, of `parity`, `parity=RULE,…` or `parity=!RULE,…`. Raises `UsageError`."""
    name, _, rules = text.partition("=")
    if name != PARITY:
        raise UsageError(f"--fail-on {shortened(text)!r}: must be {PARITY} or {PARITY}=RULE,…")
    if production:
        raise UsageError("--fail-on: --production gives no verdicts, because it is production")
    return Selection(rules)


def _new_directory() -> Path:
    """Make a directory with mode 0700 among the system's temporary files, or in `TMPDIR`. Raises `UsageError`."""
    try:
        return Path(mkdtemp(prefix="extcli-", dir=os.environ.get("TMPDIR") or None))
    except OSError as error:
        raise UsageError(f"cannot create a temporary directory: {error.strerror}", fix="set TMPDIR") from None


@dataclass(frozen=True, slots=True)
class Plan:
    """The command to run, and the settings of the run."""

    command: Sequence[str]
    templates: Mapping[str, str]
    """Texts of further variables by name, as `template` returns them."""
    client_id: str | None
    report: Path | None
    """The directory of the report. It is created when the first file is written, for its owner alone."""
    quiet: bool
    extensions: Path | None
    fail_on: Selection | None

    def client(self) -> tuple[str, str | None]:
        """Return the client id for the command, and its first secret if the extensions file has one.

        By default it is the file's first client id. Raises `UsageError` for an invalid file.
        """
        if self.extensions is None:
            return self.client_id or DEFAULT_CLIENT_ID, None
        from extcli.extensions import parsed, read_text

        file = parsed(self.extensions, read_text(self.extensions))
        chosen = self.client_id or next(iter(file.tables), DEFAULT_CLIENT_ID)
        secrets = file.secrets(chosen, os.environ) if chosen in file.tables else []
        return chosen, base64.b64encode(secrets[0].value).decode() if secrets else None

    def environment(self, url: str, client_id: str, directory: Path) -> dict[str, str]:
        """Return the variables of the command: the caller's without `_REMOVED`, the service's address, and templates.

        They have the control token of this service, if the caller gave one to the service, and never another service's.
        The files that they name keep commands from reading and writing the user's own.
        """
        parts, token = urlsplit(url), os.environ.get(CONTROL_TOKEN, "").strip()
        host, socket = parts.hostname or "", socket_of(url)
        values = dict(zip(FIELDS, (url, socket, host, str(parts.port), client_id, "default"), strict=True))
        found = {name: value for name, value in os.environ.items() if name not in _REMOVED}
        if self.report:
            found[ON_FAILURE] = str(self.report.absolute())
        if token:
            found["EXTCLI_CONTROL_TOKEN"] = token
        if parts.scheme == "https":
            found |= _trust_of_node(directory)
        return {
            **found,
            "EXTCLI_URL": url,
            "EXTCLI_WS_URL": socket,
            "EXTCLI_CLIENT_ID": client_id,
            "EXTCLI_SECRET_FILE": str(directory / "secret"),
            "EXTCLI_CONFIG": str(directory / "config.toml"),
            "EXTCLI_STATE_DIR": str(directory / "state"),
            **{name: text.format_map(values) for name, text in self.templates.items()},
        }


def _trust_of_node(directory: Path) -> dict[str, str]:
    """Return the variable by which Node.js trusts the authority of `serve --tls` too, if there is one."""
    own, others = authority(), Path(os.environ.get(_NODE_TRUST, ""))
    if own.is_file() and others.is_file():
        both = directory / "authorities.pem"
        both.write_bytes(own.read_bytes() + others.read_bytes())
        own = both
    return {_NODE_TRUST: str(own)} if own.is_file() else {}


def run(plan: Plan, serve: Callable[[int], int]) -> int:
    """Run the service and the command, and return the exit code. Raises `UsageError`.

    The exit code is the command's (128+n after a signal), or 5 if the service dies first. If the command succeeds, it
    is the code of the `--fail-on` check, then the service's.
    `serve` runs the service in the process that calls it, with the descriptor of a lifeline. It can be pickled.
    """
    if plan.report and plan.report.exists() and not plan.report.is_dir():
        raise UsageError(f"--on-failure {plan.report} is not a directory")
    directory = _new_directory()
    remove = partial(shutil.rmtree, directory, ignore_errors=True)
    log = Log(directory.parent, shown=not plan.quiet)
    supervisor = SystemSupervisor(log, serve, remove)
    try:
        url = supervisor.wait_until_ready()
        if not url:
            return _end_without_command(plan, supervisor, log)
        url = reachable(url)
        code = _try(partial(_run_command, plan, supervisor, directory, url))
        if supervisor.has_lost_service and not supervisor.first_signal:
            code = ExitCode.SERVICE_FAILED
        if not code and plan.fail_on:
            code = _try(partial(_check, plan.fail_on, url))
        if code and plan.report:
            _try(partial(_fetch_report, plan.report, url))
        served = supervisor.stop_service()
        if served and not supervisor.has_lost_service:
            note(f"the service ended with exit code {served}")
        code = code or served
        if code and plan.report and not _try(partial(_write_log, plan.report, log)):
            note(f"the report of this run is in {plan.report}")
        return code
    finally:
        remove()


def _run_command(plan: Plan, supervisor: SystemSupervisor, directory: Path, url: str) -> int:
    client_id, secret = plan.client()
    write_secret(directory / "secret", secret or random_secret())
    return supervisor.run_command(plan.command, plan.environment(url, client_id, directory))


def _check(rules: Selection, url: str) -> int:
    """Report what production would have done differently, and return the exit code. Raises `CliError`."""
    from extcli.api.http import Http

    with closing(Http(url, timeout=_TIMEOUT, trace=None)) as http:
        document = document_of(http.send("GET", "/_emulator/parity?of=service"), SHAPE)
    if found := rules.failures(document):
        note("production would have acted differently (--fail-on):")
        write_stderr(f"  {visible(line)}" for line in lines_of(found))
        return ExitCode.EXPECTATION_NOT_MET
    if any(each["verdict"] == UNKNOWN for each in document["rules"]):
        note("no verdict on some requests: no secret is known to check their signatures; add --extensions FILE")
    return ExitCode.DONE


def _try(step: Callable[[], int | None]) -> int:
    """Return the exit code of a step, 0 if it returns none. An error is noted."""
    try:
        return step() or ExitCode.DONE
    except CliError as error:
        note(error.what)
        return error.exit_code


def _end_without_command(plan: Plan, supervisor: SystemSupervisor, log: Log) -> int:
    """End a run whose service is not ready, and return the exit code."""
    code = supervisor.stop_service()
    if supervisor.first_signal:
        return 128 + supervisor.first_signal
    log.show()
    if plan.report:
        _try(partial(_write_log, plan.report, log))
    return code or ExitCode.BUG


# The report of a run that failed


def _fetch_report(directory: Path, url: str) -> None:
    """Write metrics, data and journal of the service at this URL. Raises `UsageError` if a file cannot be written.

    Each namespace that the command has not dropped has a folder of its own below `NAMESPACE_FOLDERS`.
    """
    from extcli.api.http import Http

    folder = directory / NAMESPACE_FOLDERS
    with atomic_file.write_errors(directory), closing(Http(url, timeout=_TIMEOUT, trace=None)) as http:
        _create_private(directory)
        _fetch(http, "/_emulator/metrics", directory / "metrics.txt")
        _write_contents(http, directory)
        for old in folder.glob("*"):  # of earlier runs
            with suppress(OSError):  # other files may be there
                for name in _CONTENTS:
                    (old / name).unlink(missing_ok=True)
                old.rmdir()
        with suppress(CliError):  # it may not list them
            for name in document_of(http.send("GET", "/_ns"), {"namespaces": [str]})["namespaces"]:
                _create_private(folder / name)
                _write_contents(http.at(f"{url}/_ns/{name}"), folder / name)


def _write_log(directory: Path, log: Log) -> None:
    """Write the service's log. Raises `UsageError` if it cannot be written."""
    with atomic_file.write_errors(directory):
        _create_private(directory)
        with atomic_file.replacing(directory / "service.log", keep_mode=False) as file:
            file.writelines(log.parts())


def _create_private(directory: Path) -> None:
    """Create a directory, with mode 0700; one that exists keeps its mode."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)


def _write_contents(http: Http, directory: Path) -> None:
    """Write the data of one namespace, and its journal as JSON lines and as an HTTP Archive, if the service keeps one.

    Raises `OSError`.
    """
    from extcli.journal.views import har_lines

    data, journal, archive = (directory / name for name in _CONTENTS)
    _fetch(http, "/_emulator/snapshot", data)
    _fetch(http, "/_emulator/journal/stream?since=0&timeout=0", journal, _entries)
    archive.unlink(missing_ok=True)
    if journal.exists():
        with journal.open("rb") as written, atomic_file.replacing(archive) as target:
            entries = (bounded_json.decoded(line) for line in written if line.startswith(b'{"number"'))
            target.writelines(f"{line}\n".encode() for line in har_lines(entries, http.url))


def _entries(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of the journal's stream, without the mark at its end."""
    for line in lines(pieces, "the journal"):
        if not line.startswith(b'{"mark"'):
            yield line + b"\n"


def _fetch(
    http: Http,
    path: str,
    file: Path,
    chosen: Callable[[Iterator[bytes]], Iterable[bytes]] = iter,
) -> None:
    """Write what is chosen of a response with status 200 to a file. Otherwise there is no file, not even an old one.

    Raises `OSError` if the file cannot be written.
    """
    file.unlink(missing_ok=True)
    with (
        suppress(CliError),
        atomic_file.replacing(file) as target,
        http.stream(Call("GET", path), limit=None, extra={"x-request-id": probe_id()}) as response,
    ):
        if response.status_code != 200:
            raise CliError(f"{path} is not to be had")  # which deletes the file
        target.writelines(chosen(response.iter_bytes()))
