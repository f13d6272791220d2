"""`extcli reset`: empties the emulator."""

from __future__ import annotations

from emulator.contract.limits import MAX_UNDO_SECONDS
from extcli.cli import flag, option, shared
from extcli.cli.confirm import Yes, guard
from extcli.errors import UsageError
from extcli.output import times, views
from extcli.session import Session


@shared
def reset(
    session: Session,
    undo: bool = flag("--undo", "Restore the data and the clock from before the latest reset."),
    keep: str | None = option("--keep DURATION", "Keep the old data for --undo for this long, at most 10m."),
    yes: Yes = False,
) -> None:
    """Delete all data of the emulator, and reset its clock to real time.

    Also deletes the stored links to it: they are no longer valid.

    With --keep, or after a reset in the dashboard, `extcli reset --undo` brings everything back.
    Data written since the reset is lost then. --keep does not work on Redis.

    \b
    Examples:
      extcli reset
      extcli reset --keep 1m && extcli reset --undo
    """
    from extcli.realtime import login

    if undo and keep is not None:
        raise UsageError("--undo and --keep exclude each other")
    seconds = _seconds(keep)
    loss = "all data is replaced, and the clock may move" if undo else "all data is deleted"
    guard(session, loss, yes=yes, is_control=True)
    if undo:
        session.output.show(session.control().undo_reset(), views.NOTHING)
        session.output.note("the data and the clock are back")
        return
    session.output.show(session.control().reset(seconds), views.NOTHING)
    session.output.note("deleted all data; the clock shows real time")
    if keep is None:  # else `--undo` brings the links back
        login.delete_links(session)


def _seconds(keep: str | None) -> int:
    """Return whole seconds; 0 if the data is not kept. Raises `UsageError`."""
    if keep is None:
        return 0
    seconds, rest = divmod(times.duration(keep), 1_000)
    if rest or not 1 <= seconds <= MAX_UNDO_SECONDS:
        raise UsageError(f"--keep: {keep} is not a time of whole seconds from 1s to 10m")
    return seconds
