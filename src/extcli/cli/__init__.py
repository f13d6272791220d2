"""What commands need from Typer: shared options, fast parsing, confirmation and JSON arguments."""
