"""Runs the service: processes, signals, the HTTP protocol, middleware and the startup log."""
