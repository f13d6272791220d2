"""Watching and controlling a running service (`operations.md`)."""
