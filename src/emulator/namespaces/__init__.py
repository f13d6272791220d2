"""Isolated services of one process, each with a name: which are open (`registry`), which requests are led into one
(`routing`), and calls about them (`http`)."""
