"""`extcli expect`: checks a condition now, or what production would have done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from typer.main import get_command

from extcli.cli import argument, command, flag, noun
from extcli.cli.shared_options import Group
from extcli.commands.checks.conditions import CONDITIONS, NOW
from extcli.commands.checks.wait import app as wait_app
from extcli.errors import ExpectationFailed, Refused, UsageError
from extcli.output.columns import Column, listing
from extcli.output.sanitize import visible
from extcli.parity import SHAPE, Selection, lines_of
from extcli.reading.shapes import document_of
from extcli.session import Session

VERDICTS = replace(
    listing(
        "rules",
        Column("rule", plain=str),
        Column("verdict", plain=str),
        Column("count", plain=str),
        Column("first request", lambda each: each["examples"][0]["request_id"]),
        Column("latest request", lambda each: each["examples"][-1]["request_id"]),
    ),
    table=lambda document: "",  # the error says it
)


def parity(
    session: Session,
    rules: str = argument(
        "RULE,…", "Check only these rules, or all but !RULE. `rate` is both rate limits. Default: all but unknown.", ""
    ),
    whole: bool = flag("--service", "Check all namespaces, since the service started."),
) -> None:
    """Expect that production would respond as the sandbox did.

    Otherwise exits 7, and lists what production would have done differently since the namespace was
    last reset. The rule `unknown` counts only if you name it: without --extensions, the service
    cannot tell whether production accepts a token.

    Plain output is $columns.

    \b
    Examples:
      extcli expect parity
      extcli expect parity stage,rate,unknown
      extcli expect parity '!lifetime'
    """
    selection = Selection(rules)
    try:
        response = session.control().read_parity("service" if whole else "namespace")
    except Refused as refused:
        if refused.status == 404:
            raise UsageError(
                f"{session.resolver.url()} gives no verdicts", why="only an emulator in sandbox does"
            ) from None
        raise
    found = selection.failures(document_of(response, SHAPE))
    session.output.show_value({"rules": found}, VERDICTS)
    if found:
        raise ExpectationFailed("production would have acted differently", details=[*map(visible, lines_of(found))])


class Expect(Group):
    """Also takes the conditions of `extcli wait`, with their options, and checks them without waiting."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        wait: Any = get_command(wait_app)
        for condition in CONDITIONS:
            self.add_command(wait.commands[condition])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, [NOW, *rest] if name in CONDITIONS else rest


app = noun(
    "Check a condition now: exits 7 if it is not met. `extcli wait CONDITION` explains each, and also waits for it.",
    cls=Expect,
)
command(app, prints=VERDICTS)(parity)
