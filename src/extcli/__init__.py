"""The command line: starts the service, and drives it or a real deployment over HTTP."""

__version__ = "0.1.0"
