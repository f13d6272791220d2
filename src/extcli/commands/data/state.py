"""`extcli state`: the state stores."""

from __future__ import annotations

from extcli.commands.data.stores import STATE, store_app

app = store_app(STATE)
