"""Runs a command next to its own service: the run's directory, the command's environment, and the run itself."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from emulator.contract.names import CONTROL_TOKEN
from extcli.config.run_variables import ON_FAILURE, write_secret
from extcli.config.settings import DEFAULT_CLIENT_ID, SERVICE_SETTINGS
from extcli.config.urls import reachable, socket_of
from extcli.errors import CliError, ExitCode, UsageError, shortened
from extcli.output.printer import write_stderr
from extcli.running.failure_report import FailureReport, Log

if sys.platform == "win32":
    from extcli.running.windows import Supervisor
else:
    from extcli.running.supervisor import Supervisor
if TYPE_CHECKING:
    from extcli.running.failure_report import FailOn


class RunDirectory:
    """A new directory with mode 0700 among the system's temporary files, or in `TMPDIR`."""

    def __init__(self) -> None:
        """Raises `UsageError`."""
        parent = os.environ.get("TMPDIR") or ("/tmp" if os.name == "posix" else gettempdir())
        self.path = os.path.join(parent, f"extcli-{os.urandom(8).hex()}")
        try:
            os.mkdir(self.path, 0o700)
        except OSError as error:
            raise UsageError(f"cannot create a directory in {parent}: {error.strerror}", fix="set TMPDIR") from None

    @property
    def variables(self) -> dict[str, str]:
        """Variables that keep commands from reading and writing the user's own files."""
        return {
            "EXTCLI_SECRET_FILE": os.path.join(self.path, "secret"),
            "EXTCLI_CONFIG": os.path.join(self.path, "config.toml"),
            "EXTCLI_STATE_DIR": os.path.join(self.path, "state"),
        }

    def write_secret(self, secret: str | None) -> None:
        """Write the secret file. Raises `UsageError`."""
        try:
            write_secret(self.variables["EXTCLI_SECRET_FILE"], secret)
        except OSError as error:
            raise UsageError(f"cannot write to {self.path}: {error.strerror}", fix="set TMPDIR") from None

    def remove(self) -> None:
        """Remove the directory with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def client_of_file(file: Path | None, client_id: str | None) -> tuple[str | None, str | None]:
    """Return a client id and its first secret from the extensions file. By default it is the file's first client id.

    A client id that the file lacks is returned without a secret. Raises `UsageError` for an invalid file.
    """
    if file is None:
        return client_id, None
    from extcli.extensions.registry import parsed, read_text

    tables = parsed(file, read_text(file)).tables
    chosen = client_id or next(iter(tables), None)
    table = tables.get(chosen or "", {})
    if table.get("secrets"):
        return chosen, table["secrets"][0]
    if table.get("secret_files"):
        return chosen, read_text(file.parent / table["secret_files"][0])
    return chosen, os.environ.get(table.get("secret_env", ""))


FIELDS = ("url", "ws_url", "host", "port", "client_id", "namespace")
"""What a template may contain, in braces."""
_NODE_TRUST = "NODE_EXTRA_CA_CERTS"
"""The variable with a file of authorities that Node.js trusts besides its own."""
REMOVED = {each.variable for each in SERVICE_SETTINGS if each.variable}
REMOVED |= {"EXTCLI_PROFILE", "EXTCLI_TOKEN", "EXTCLI_SECRET", "EXTCLI_CONTROL_TOKEN", ON_FAILURE}
"""Variables of the caller that would lead the command to another service, identity, channel or report."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True, slots=True)
class Template:
    """A variable of the command, with fields such as `{url}` in its text."""

    name: str
    text: str

    @classmethod
    def parse(cls, argument: str) -> Template:
        """Parse `NAME=TEXT`. Doubled braces stand for themselves. Raises `UsageError`, also for an unknown field."""
        name, equals, text = argument.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise UsageError(f"--env {shortened(argument)!r} is not NAME=TEXT", fix="for example --env API={url}/v1")
        for found in _PART.finditer(text):
            if found[0] in ("{", "}"):
                raise UsageError(
                    f"--env {name}: {found[0]!r} is not part of a field",
                    fix="write {{ or }} for a literal brace, or name a field such as {url}",
                )
            if found[1] is not None and found[1] not in FIELDS:
                meant = get_close_matches(found[1], FIELDS, 1)
                hint = f"did you mean {{{meant[0]}}}? " if meant else ""
                raise UsageError(
                    f"--env {name}: unknown field {{{shortened(found[1])}}}", fix=f"{hint}fields: {', '.join(FIELDS)}"
                )
        return cls(name, text)

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with the value of each field."""
        return _PART.sub(lambda found: found[0][0] if found[1] is None else values[found[1]], self.text)


def environment_of(
    caller: Mapping[str, str], url: str, directory: RunDirectory, client_id: str | None, templates: Iterable[Template]
) -> dict[str, str]:
    """Return the command's environment: the caller's without `REMOVED`, the service's address, and the templates.

    It has the control token of this service, if the caller gave one to the service, and never another service's token.
    """
    parts = urlsplit(url)
    token = caller.get(CONTROL_TOKEN, "").strip()
    values = {
        "url": url,
        "ws_url": socket_of(url),
        "host": parts.hostname or "",
        "port": str(parts.port),
        "client_id": client_id or DEFAULT_CLIENT_ID,
        "namespace": "default",
    }
    return {
        **{name: value for name, value in caller.items() if name not in REMOVED},
        "EXTCLI_URL": url,
        "EXTCLI_WS_URL": values["ws_url"],
        "EXTCLI_CLIENT_ID": values["client_id"],
        **({"EXTCLI_CONTROL_TOKEN": token} if token else {}),
        **(_trust_of_node(caller, directory) if parts.scheme == "https" else {}),
        **directory.variables,
        **{each.name: each.fill(values) for each in templates},
    }


def _trust_of_node(caller: Mapping[str, str], directory: RunDirectory) -> dict[str, str]:
    """Return the variable by which Node.js trusts the authority of `serve --tls` too, if there is one."""
    from extcli.api.trust import authority

    own, others = authority(), Path(caller.get(_NODE_TRUST, ""))
    if own.is_file() and others.is_file():
        both = Path(directory.path, "authorities.pem")
        both.write_bytes(own.read_bytes() + others.read_bytes())
        own = both
    return {_NODE_TRUST: str(own)} if own.is_file() else {}


@dataclass(frozen=True, slots=True)
class Plan:
    """The command to run, and the settings of the run."""

    command: Sequence[str]
    templates: Sequence[Template]
    client_id: str | None
    report: FailureReport | None
    quiet: bool
    extensions: Path | None
    fail_on: FailOn | None


def run(plan: Plan, serve: Callable[[int], int]) -> int:
    """Run the service and the command, and return the exit code. Raises `UsageError`.

    The exit code is the command's (128+n after a signal), or 5 if the service dies first. If the command succeeds, it
    is the code of the `--fail-on` check, then the service's.
    `serve` runs the service in the process that calls it, with the descriptor of a lifeline. It can be pickled.
    """
    directory = RunDirectory()
    log = Log(os.path.dirname(directory.path), shown=not plan.quiet)
    supervisor = Supervisor(log, _note)
    supervisor.start_service(serve, directory.remove)
    try:
        if not (url := supervisor.wait_until_ready()):
            return _end_without_command(plan, supervisor, log)
        url = reachable(url)
        code = _run_command(plan, supervisor, directory, url)
        if supervisor.has_lost_service and not supervisor.signaled:
            code = ExitCode.SERVICE_FAILED
        if not code and plan.fail_on:
            code = _check(plan.fail_on, url)
        if code and plan.report:
            _try_report(plan.report.fetch, url)
        served = supervisor.stop_service()
        if served and not supervisor.has_lost_service:
            _note(f"the service ended with exit code {served}")
        code = code or served
        if code and plan.report and _try_report(plan.report.write_log, log):
            _note(f"the report of this run is in {plan.report.directory}")
        return code
    finally:
        directory.remove()


def _run_command(plan: Plan, supervisor: Supervisor, directory: RunDirectory, url: str) -> int:
    try:
        client_id, secret = client_of_file(plan.extensions, plan.client_id)
        directory.write_secret(secret)
        environment = environment_of(os.environ, url, directory, client_id, plan.templates)
        if plan.report:
            environment.setdefault(ON_FAILURE, str(plan.report.directory.absolute()))
        return supervisor.run_command(plan.command, environment)
    except CliError as error:
        _note(error.what)
        return error.exit_code


def _check(fail_on: FailOn, url: str) -> int:
    try:
        return fail_on.check(url)
    except CliError as error:
        _note(error.what)
        return error.exit_code


def _end_without_command(plan: Plan, supervisor: Supervisor, log: Log) -> int:
    """End a run whose service is not ready, and return the exit code."""
    code = supervisor.stop_service()
    if supervisor.signaled:
        return 128 + supervisor.signaled
    log.show()
    if plan.report:
        _try_report(plan.report.write_log, log)
    return code or ExitCode.BUG


def _try_report(write: Callable[..., None], *args: object) -> bool:
    """Return whether a part of the report was written. One that cannot be written does not change the exit code."""
    try:
        write(*args)
    except OSError as error:
        _note(f"cannot write the report: {error}")
        return False
    return True


def _note(text: str) -> None:
    write_stderr([f"extcli exec: {text}"])
