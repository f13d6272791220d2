"""`extcli expect`: checks a condition now."""

from __future__ import annotations

from extcli.cli.shared_options import command, noun
from extcli.commands.checks.conditions import Condition, add_conditions
from extcli.commands.checks.parity import VERDICTS, parity
from extcli.session import Session

app = noun("Check a condition now: exits 7 if it is not met. `extcli wait` also waits for it.")


def _meet(session: Session, condition: Condition) -> None:
    from extcli.commands.checks.outcomes import meet

    meet(session, condition, 0)


add_conditions(app, "expect", "Expect", _meet)
command(app, prints=VERDICTS)(parity)
