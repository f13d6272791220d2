"""`extcli store-config`: the config stores. (`extcli config` shows the settings of extcli itself.)"""

from __future__ import annotations

from extcli.commands.data.stores import CONFIG, store_app

app = store_app(CONFIG)
