"""`extcli datastream`: events from pages to the games of their channel."""

from __future__ import annotations

from extcli.cli import argument, command, noun
from extcli.cli.json_input import read_json
from extcli.output import views
from extcli.session import VIEWER, Session

app = noun("The datastream: events that pages send to the games of their channel. Nothing is stored.")


@command(app)
def send(session: Session, event: str = argument("JSON|-|@FILE", "The event: any JSON.")) -> None:
    """Send an event to the channel's games that follow the datastream. Acts as viewer:U1.

    `extcli socket send subscribe datastream --data '{}' --wait 1` receives one.

    Example: extcli datastream send '{"click": [10, 20]}'
    """
    session.output.show(session.service(VIEWER).post_event(read_json(event, "the event")), views.NOTHING)
    session.output.note("sent to the games that listen now")
