"""Logs, request ids, metrics and redaction."""
