"""Completion in shells: the scripts, the table of commands, and live names. Imports neither Typer nor httpx."""
