"""Isolated services of one process, each with a name: which are open (`registry`), and their paths (`routing`)."""
