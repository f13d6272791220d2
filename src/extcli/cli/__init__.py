"""Extends Typer for the commands: shared options, fast parsing, confirmation and JSON arguments."""
