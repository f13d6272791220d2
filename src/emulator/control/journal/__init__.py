"""The control API of the journal: `GET /_emulator/journal`, `…/entry` and `…/stream`."""
