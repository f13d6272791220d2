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
from extcli.config.urls import reachable_url, socket_of
from extcli.errors import CliError, ExitCode, UsageError, shortened
from extcli.output.printer import write_stderr
from extcli.output.sanitize import visible
from extcli.parity import VERDICTS_SHAPE, RuleSelection, verdict_lines
from extcli.reading import document_of, stream_lines
from extcli.running.supervisor import ServiceLog, print_note

if sys.platform == "win32":
    from extcli.running.windows import WindowsSupervisor as SystemSupervisor
else:
    from extcli.running.unix import UnixSupervisor as SystemSupervisor

if TYPE_CHECKING:
    from extcli.api.http import Http

TEMPLATE_FIELDS = ("url", "ws_url", "host", "port", "client_id", "namespace")
"""What `--env` may contain, in braces."""
_FIELD_OR_BRACE = re.compile(rf"{{{{|}}}}|{{(?:{'|'.join(TEMPLATE_FIELDS)})}}")
"""A field, or a literal brace, which is written twice."""
PARITY = "parity"
ON_FAILURE = "EXTCLI_ON_FAILURE"
"""The variable with the directory of the report. Tests that failed keep their namespaces for it."""
NAMESPACE_FOLDERS = "namespaces"
"""The folder in that directory with a folder for each namespace."""
_NAMESPACE_FILES = ("snapshot.json", "journal.jsonl", "journal.har")
_REQUEST_TIMEOUT = 30.0
_NODE_CA_VARIABLE = "NODE_EXTRA_CA_CERTS"
"""The variable with a file of authorities that Node.js trusts besides its own."""
_REMOVED_VARIABLES = {each.variable for each in SERVICE_SETTINGS if each.variable}
_REMOVED_VARIABLES |= {"EXTCLI_PROFILE", "EXTCLI_TOKEN", "EXTCLI_SECRET", "EXTCLI_CONTROL_TOKEN", ON_FAILURE}
"""Variables of the caller that would lead the command to another service, identity, channel or report."""


def parse_variable(argument: str) -> tuple[str, str]:
    """Return name and text of the variable `NAME=TEXT`. Raises `UsageError` unless its braces are around fields."""
    name, equals, text = argument.partition("=")
    if not equals or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"--env {shortened(argument)!r} is not NAME=TEXT", fix="for example --env API={url}/v1")
    if re.search("[{}]", _FIELD_OR_BRACE.sub("", text)):
        problem = f"--env {name}: a field in braces must be one of {', '.join(TEMPLATE_FIELDS)}"
        raise UsageError(problem, fix="write {{ or }} for a literal brace")
    return name, text


def parse_fail_on(text: str, *, production: bool) -> RuleSelection:
    """Return the rules that fail a run, of `parity`, `parity=RULE,…` or `parity=!RULE,…`. Raises `UsageError`."""
    name, _, rules = text.partition("=")
    if name != PARITY:
        raise UsageError(f"--fail-on {shortened(text)!r}: must be {PARITY} or {PARITY}=RULE,…")
    if production:
        raise UsageError("--fail-on does not work with --production: only a sandbox compares itself with production")
    return RuleSelection(rules)


def _new_directory() -> Path:
    """Make a directory with mode 0700 among the system's temporary files, or in `TMPDIR`. Raises `UsageError`."""
    try:
        return Path(mkdtemp(prefix="extcli-", dir=os.environ.get("TMPDIR") or None))
    except OSError as error:
        raise UsageError(f"cannot create a temporary directory: {error.strerror}", fix="set TMPDIR") from None


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The command to run, and the settings of the run."""

    command: Sequence[str]
    templates: Mapping[str, str]
    """Texts of further variables by name, as `template` returns them."""
    client_id: str | None
    report: Path | None
    """The directory of the report. It is created when the first file is written, for its owner alone."""
    quiet: bool
    extensions: Path | None
    fail_on: RuleSelection | None

    def client_id_and_secret(self) -> tuple[str, str | None]:
        """Return the client id for the command, and its first secret if the extensions file has one.

        By default it is the file's first client id. Raises `UsageError` for an invalid file.
        """
        if self.extensions is None:
            return self.client_id or DEFAULT_CLIENT_ID, None
        from extcli.extensions import read_file

        file = read_file(self.extensions)
        chosen = self.client_id or next(iter(file.tables), DEFAULT_CLIENT_ID)
        secrets = file.secrets(chosen, os.environ) if chosen in file.tables else []
        return chosen, base64.b64encode(secrets[0].value).decode() if secrets else None

    def environment(self, url: str, client_id: str, directory: Path) -> dict[str, str]:
        """Return the variables of the command: the caller's without `_REMOVED_VARIABLES`, the service's, and templates.

        They have the control token of this service, if the caller gave one to the service, and never another service's.
        The files that they name keep commands from reading and writing the user's own.
        """
        parts, token = urlsplit(url), os.environ.get(CONTROL_TOKEN, "").strip()
        host, socket = parts.hostname or "", socket_of(url)
        values = dict(zip(TEMPLATE_FIELDS, (url, socket, host, str(parts.port), client_id, "default"), strict=True))
        found = {name: value for name, value in os.environ.items() if name not in _REMOVED_VARIABLES}
        if self.report:
            found[ON_FAILURE] = str(self.report.absolute())
        if token:
            found["EXTCLI_CONTROL_TOKEN"] = token
        if parts.scheme == "https":
            found |= _node_ca_variable(directory)
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


def _node_ca_variable(directory: Path) -> dict[str, str]:
    """Return the variable by which Node.js trusts the authority of `serve --tls` too, if there is one."""
    own, others = authority(), Path(os.environ.get(_NODE_CA_VARIABLE, ""))
    if own.is_file() and others.is_file():
        both = directory / "authorities.pem"
        both.write_bytes(own.read_bytes() + others.read_bytes())
        own = both
    return {_NODE_CA_VARIABLE: str(own)} if own.is_file() else {}


def run_with_service(settings: RunSettings, serve: Callable[[int], int]) -> int:
    """Run the service and the command, and return the exit code. Raises `UsageError`.

    The exit code is the command's (128+n after a signal), or 5 if the service dies first. If the command succeeds, it
    is the code of the `--fail-on` check, then the service's.
    `serve` runs the service in the process that calls it, with the descriptor of a lifeline. It can be pickled.
    """
    if settings.report and settings.report.exists() and not settings.report.is_dir():
        raise UsageError(f"--on-failure {settings.report} is not a directory")
    directory = _new_directory()
    remove = partial(shutil.rmtree, directory, ignore_errors=True)
    log = ServiceLog(directory.parent, shown=not settings.quiet)
    supervisor = SystemSupervisor(log, serve, remove)
    try:
        url = supervisor.wait_until_ready()
        code = _run_command(settings, supervisor, directory, reachable_url(url)) if url else 0
        served = supervisor.stop_service()
        if not url and supervisor.first_signal:
            return 128 + supervisor.first_signal
        if not url:
            log.show()
            served = served or ExitCode.BUG
        elif served and not supervisor.has_lost_service:
            print_note(f"the service ended with exit code {served}")
        code = code or served
        if code and settings.report and not _exit_code_of(partial(_write_log, settings.report, log)):
            print_note(f"the report of this run is in {settings.report}")
        return code
    finally:
        remove()


def _run_command(settings: RunSettings, supervisor: SystemSupervisor, directory: Path, url: str) -> int:
    """Run the command, make the `--fail-on` check, download the report of a failure, and return the exit code."""

    def run() -> int:
        client_id, secret = settings.client_id_and_secret()
        write_secret(directory / "secret", secret or random_secret())
        return supervisor.run_command(settings.command, settings.environment(url, client_id, directory))

    code = _exit_code_of(run)
    if supervisor.has_lost_service and not supervisor.first_signal:
        code = ExitCode.SERVICE_FAILED
    if not code and settings.fail_on:
        code = _exit_code_of(partial(_check_parity, settings.fail_on, url))
    if code and settings.report:
        _exit_code_of(partial(_download_report, settings.report, url))
    return code


def _check_parity(rules: RuleSelection, url: str) -> int:
    """Report what production would have done differently, and return the exit code. Raises `CliError`."""
    from extcli.api.http import Http

    with closing(Http(url, timeout=_REQUEST_TIMEOUT)) as http:
        document = document_of(http.send("GET", "/_emulator/parity?of=service"), VERDICTS_SHAPE)
    if found := rules.failures(document):
        print_note("production would have acted differently (--fail-on):")
        write_stderr(f"  {visible(line)}" for line in verdict_lines(found))
        return ExitCode.EXPECTATION_NOT_MET
    if any(each["verdict"] == UNKNOWN for each in document["rules"]):
        print_note("cannot check the signatures of some requests: their secret is unknown; add --extensions FILE")
    return ExitCode.DONE


def _exit_code_of(step: Callable[[], int | None]) -> int:
    """Return the exit code of a step, 0 if it returns none. An error is noted."""
    try:
        return step() or ExitCode.DONE
    except CliError as error:
        print_note(error.what)
        return error.exit_code


# The report of a run that failed


def _download_report(directory: Path, url: str) -> None:
    """Write metrics, data and journal of the service at this URL. Raises `UsageError` if a file cannot be written.

    Each namespace that the command has not dropped has a folder of its own below `NAMESPACE_FOLDERS`.
    """
    from extcli.api.http import Http

    folder = directory / NAMESPACE_FOLDERS
    with atomic_file.write_errors(directory), closing(Http(url, timeout=_REQUEST_TIMEOUT)) as http:
        _write_contents(http, directory)
        _download(http, "/_emulator/metrics", directory / "metrics.txt")
        for old in folder.glob("*"):  # of earlier runs
            with suppress(OSError):  # other files may be there
                for name in _NAMESPACE_FILES:
                    (old / name).unlink(missing_ok=True)
                old.rmdir()
        with suppress(CliError):  # it may not list them
            for name in document_of(http.send("GET", "/_ns"), {"namespaces": [str]})["namespaces"]:
                _write_contents(http.at(f"{url}/_ns/{name}"), folder / name)


def _write_log(directory: Path, log: ServiceLog) -> None:
    """Write the service's log. Raises `UsageError` if it cannot be written."""
    with atomic_file.write_errors(directory):
        directory.mkdir(0o700, parents=True, exist_ok=True)
        with atomic_file.replacement_of(directory / "service.log", keep_mode=False) as file:
            file.writelines(log.parts())


def _write_contents(http: Http, directory: Path) -> None:
    """Write the data of one namespace, and its journal as JSON lines and as an HTTP Archive, if the service keeps one.

    Raises `OSError`.
    """
    from extcli.journal.views import har_lines

    directory.mkdir(0o700, parents=True, exist_ok=True)
    data, journal, archive = (directory / name for name in _NAMESPACE_FILES)
    _download(http, "/_emulator/snapshot", data)
    _download(http, "/_emulator/journal/stream?since=0&timeout=0", journal, _journal_entries)
    archive.unlink(missing_ok=True)
    if journal.exists():
        with journal.open("rb") as written, atomic_file.replacement_of(archive) as target:
            entries = map(bounded_json.decoded, written)
            target.writelines(f"{line}\n".encode() for line in har_lines(entries, http.url))


def _journal_entries(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of the journal's stream, without the mark at its end."""
    for line in stream_lines(pieces):
        if not line.startswith(b'{"mark"'):
            yield line + b"\n"


def _download(http: Http, path: str, file: Path, chosen: Callable[[Iterator[bytes]], Iterable[bytes]] = iter) -> None:
    """Write what is chosen of a response with status 200 to a file. Otherwise there is no file, not even an old one.

    Raises `OSError` if the file cannot be written.
    """
    file.unlink(missing_ok=True)
    probe = {"x-request-id": probe_id()}
    with suppress(CliError), http.stream(Call("GET", path), limit=None, extra=probe) as response:
        if response.status_code == 200:
            with atomic_file.replacement_of(file) as target:
                target.writelines(chosen(response.iter_bytes()))
