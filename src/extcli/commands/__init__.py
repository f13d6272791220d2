"""The commands: one file per noun, in a folder for each section of `extcli --help`. A command parses its arguments,
calls one method of `api/client.py` or `api/control.py`, and prints. `access/clients` has the files that `connect`
prints, `access/project` the templates of `new`.
"""
