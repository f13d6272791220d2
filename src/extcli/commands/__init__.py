"""The commands: one file per noun, or for a few. A command parses its arguments, makes a call, and prints.

`clients` has the files that `connect` prints, `project` the templates of `new`.
"""
